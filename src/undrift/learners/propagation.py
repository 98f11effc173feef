"""Propagation: ridge regression on a fixed function of the graph, so that nothing can drift."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.propagation.bank import Bank, PerturbedValidation, Samples, updated_bank
from undrift.learners.parts.propagation.feature_map import FeatureMap, check_widths, samples_of
from undrift.learners.parts.propagation.propagated import Mix, Propagated
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = [
    "TELLING_FROM",
    "Propagation",
    "PropagationLearned",
    "pattern_of_neighbours",
    "trust_in_neighbours",
]

_PRIOR_EDGES = 20.0  # a few labelled edges prove nothing: belief starts at 1 and weighs this much
_FULL_FROM = 0.25  # adjusted homophily from which neighbours are believed fully

TELLING_FROM = 0.3
"""The pattern from which neighbours tell a node's class although they are of another: more than
the 0.25 that three classes have when neighbours are merely never of a node's own."""


def trust_in_neighbours(task: Task) -> float:
    """From 0 (neighbours say nothing about a node's class) to 1 (believe them).

    Over the m edges between training nodes, h is the share that joins one class and h0 what
    chance would give with the same degrees per class. The adjusted homophily
    `a = (h - h0) / (1 - h0)` is pulled toward 1 by 20 edges of belief; trust is `a / 0.25`, cut
    to 0..1. A task graph that is purer than the whole graph does not raise it, because chance
    within the task is what it is measured against. A task of one class says nothing: 1.
    """
    ours, theirs = _labelled_ends(task)
    m = ours.numel() / 2  # an edge stands there in both directions
    if len(task.classes) < 2 or m == 0:
        return 1.0
    classes = torch.tensor(task.classes, device=ours.device)
    shares = (ours.unsqueeze(1) == classes).double().mean(dim=0)
    chance = float(shares.square().sum())
    if chance > 1 - 1e-9:
        return 1.0
    adjusted = (float((ours == theirs).double().mean()) - chance) / (1 - chance)
    believed = (m * adjusted + _PRIOR_EDGES) / (m + _PRIOR_EDGES)
    return min(max(believed / _FULL_FROM, 0.0), 1.0)


def pattern_of_neighbours(task: Task, least_classes: int = 3) -> float:
    """From 0 (a neighbour's class says nothing) to 1 (it gives a node's own class away).

    Cramer's V squared of the two ends of the m edges between training nodes: with P the share
    of edges that join classes a and b, and p its sums, `sum P_ab^2 / (p_a p_b) - 1` over
    (C - 1), less what m edges give by chance, `C (C - 1) / 2m`, and pulled toward 0 by 20 edges.
    It does not ask whether the ends agree: classes that link only to the next one have a
    pattern, classes that link to all others alike have almost none, `1 / (C - 1)^2`. With two
    classes the two cannot be told apart, so it is 0 under `least_classes`.
    """
    ours, theirs = _labelled_ends(task)
    m = ours.numel() / 2
    classes = torch.tensor(task.classes, device=ours.device)
    table = _one_hot(ours, classes).T @ _one_hot(theirs, classes) / max(2 * m, 1)
    share = table.sum(dim=1)
    table, share = table[share > 0][:, share > 0], share[share > 0]
    count = share.numel()
    if count < max(least_classes, 2):
        return 0.0
    above = float((table.square() / torch.outer(share, share)).sum()) - 1
    measured = (above - count * (count - 1) / (2 * m)) / (count - 1)
    return min(max(measured, 0.0) * m / (m + _PRIOR_EDGES), 1.0)


def _labelled_ends(task: Task) -> tuple[Tensor, Tensor]:
    """The classes at both ends of every edge between training nodes, in both directions."""
    labels = task.graph.labels
    assert labels is not None  # noqa: S101  # a task has labels
    known = task.train.to(labels.device)
    edges = task.graph.adjacency
    receivers = torch.repeat_interleave(
        torch.arange(edges.shape[0], device=edges.device), edges.indptr.diff().long()
    )
    senders = edges.indices.long()
    both = known[receivers] & known[senders]
    return labels[receivers[both]], labels[senders[both]]


def _one_hot(labels: Tensor, classes: Tensor) -> Tensor:
    return (labels.unsqueeze(1) == classes).double()


_DOUBT = 0.5  # trust under which it is asked whether neighbours tell something by differing
_DENSE = 1024  # dense features of at most so many columns are no words: hops may get their own
_BETTER = 0.02  # by which a column per hop must be right more often, on validation nodes


@dataclass(frozen=True, eq=False)
class PropagationLearned:
    """What is kept: the banks, each two sums, the gamma they chose, and the weights.

    `banks["mix"]` is always there. `apart`: rows in which neighbours have columns of their own,
    as long as every task has shown that neighbours differ in a way that tells. `hops`: a column
    per hop, for narrow dense features. `answers` names the bank that scores come from.
    """

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    trust: float
    banks: dict[str, Bank]
    answers: str

    @property
    def bank(self) -> Bank:
        """The bank that answers."""
        return self.banks[self.answers]


@dataclass(kw_only=True)
class Propagation(Learner):
    """Class-balanced ridge on propagated features; needs no hyperparameter from the user.

    Features are a fixed function of the graph (`Propagated`), so the sums R and Q are those of
    joint training, whatever the order of the tasks, and old classes can only lose to new ones
    that compete. Every class weighs the same. `gamma`, relative to the mean diagonal of R, is
    chosen again after every task by the squared error over every validation node ever seen,
    from the sums (R_val, Q_val, n_val) alone; in a history without any validation node by
    leave-one-out on the task at hand; a later task without keeps the last. A number fixes it,
    and then no validation sums are kept.

    `mix`, `hops`, `words`: see `Propagated`. `trust`: how far neighbours are believed, 0 to 1;
    without a number it is measured on the labelled edges of the first task and kept
    (`trust_in_neighbours`), so a graph whose neighbours disagree falls back to plain ridge. If
    trust is under 0.5 and neighbours differ in a way that tells (`pattern_of_neighbours`), a
    second bank keeps what neighbours say in columns of its own (mix `apart`, two hops), and is
    believed as long as every task shows the pattern; then it is dropped for good. Dense
    features of at most 1,024 columns are no words, and own ones may be mostly noise: a bank with
    a column per hop (`concat`, two hops) stands beside, and answers while it is right more often
    by two points on validation nodes, each class in the task that brought it, in
    graphs that are made impure on purpose (`PerturbedValidation`).
    `sketch`: rows of more columns are count-sketched to this many (`Sketch`), 0 never does.
    `fourier`: random Fourier features beside the propagated ones; without a number
    min(2048, 16 d) where rows have at most 1,024 columns, else none. `structure`: columns of
    degrees (`structural_columns`). `balanced=False`: every node weighs the same.

    With D the width of a row, at most max(`sketch`, 1024 + 2048) by default: memory
    16 D^2 + 24 D C bytes, 8 D^2 + 16 D C with a fixed gamma, whatever the number of nodes (the
    second bank, where there is one, as much again for its own D). Time per task with n training
    and validation nodes: n D^2 for the sums (nnz D where rows stay sparse), mostly one
    factorisation of D^3 / 3; scores cost 2 nnz(X) C + 2 hops nnz(A) C, with Fourier features
    2 nodes d D more. Scores without Fourier features are right up to a positive factor per node
    (`Propagated.spread`), which no prediction depends on.
    """

    name: ClassVar[str] = "propagation"
    display: ClassVar[str] = "Propagation"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "R and Q of the training and of the validation nodes"
    learned_type: ClassVar[type] = PropagationLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"words": (1e3, 1e4, 1e5)}

    gamma: float | None = None
    mix: Mix = "adaptive"
    hops: int = 8
    words: float = 1e4
    trust: float | None = None
    fourier: int | None = None
    sketch: int = 3072
    structure: bool = False
    balanced: bool = True

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        check_widths(self.fourier, self.sketch)
        self.rows_of("mix", 1.0 if self.trust is None else self.trust)

    def _learn(self, task: Task, progress: Progress) -> PropagationLearned:
        return self.further(self.learned_, task, progress)[0]

    def further(
        self,
        before: PropagationLearned | None,
        task: Task,
        progress: Progress,
        probe: PerturbedValidation | None = None,
    ) -> tuple[PropagationLearned, dict[str, Samples]]:
        """What is known after one more task, and the rows that each bank saw of it.

        Banks are probed if a probe is given or there are several.
        """
        graph = task.graph.to(self.device)
        classes = (*(before.classes if before else ()), *task.classes)
        trust = before.trust if before else self._trust(task)
        names = self._banks(before, task, graph, trust)
        if probe is None and len(names) > 1 and self.gamma is None:
            probe = PerturbedValidation.of(task, graph, classes, self.seed)
        banks: dict[str, Bank] = {}
        samples: dict[str, Samples] = {}
        for name in names:
            progress("accumulate", 0, 1)
            rows = self.rows_of(name, trust)
            samples[name] = samples_of(rows, task, graph, classes, balanced=self.balanced)
            progress("solve", 0, 1)
            seen = before.banks[name] if before else None
            width = rows.width(graph.num_features)
            bank = updated_bank(seen, rows, width, samples[name], self.gamma)
            hits = seen.hits if seen else 0.0
            if probe is not None:
                hits += probe.hits(rows.scored(part, bank.weights) for part in probe.rows(rows))
            banks[name] = replace(bank, hits=hits)
            progress("solve", 1, 1)
        learned = PropagationLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=before.tasks + 1 if before else 1,
            trust=trust,
            banks=banks,
            answers=_answering(banks, len(classes)),
        )
        return learned, samples

    def _banks(
        self, before: PropagationLearned | None, task: Task, graph: Graph, trust: float
    ) -> list[str]:
        """The banks that there are after this task; none appears after the first."""
        listens, separates = self._listens(before, task, trust), self._separates(before, graph)
        return ["mix", *(["apart"] if listens else []), *(["hops"] if separates else [])]

    def rows_of(self, bank: str, trust: float) -> FeatureMap:
        """The rows of a bank: `mix`, `apart` or `hops`."""
        propagated, fourier = {
            "mix": (Propagated(self.mix, self.hops, self.words, trust), self.fourier),
            "apart": (Propagated("apart", hops=2), self.fourier),
            "hops": (Propagated("concat", hops=2, trust=trust), 0),
        }[bank]
        return FeatureMap(propagated, self.sketch, fourier, self.seed, self.structure)

    def _separates(self, before: PropagationLearned | None, graph: Graph) -> bool:
        """Whether features are narrow and dense, so that own ones may be mostly noise."""
        if before is not None:
            return "hops" in before.banks
        asked = self.mix == "adaptive" and self.hops > 0 and self.gamma is None
        dense = isinstance(graph.features, Tensor) and graph.num_features <= _DENSE
        return asked and dense

    def _listens(self, before: PropagationLearned | None, task: Task, trust: float) -> bool:
        """Whether this task and every one before it show that neighbours tell by differing."""
        if before is None:
            asked = self.mix == "adaptive" and self.trust is None and self.hops > 0
            return asked and trust < _DOUBT and pattern_of_neighbours(task) >= TELLING_FROM
        # the first task had three classes or more; two are enough to see the same again
        return "apart" in before.banks and pattern_of_neighbours(task, 2) >= TELLING_FROM

    def _trust(self, task: Task) -> float:
        return trust_in_neighbours(task) if self.trust is None else self.trust

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        rows = self.rows_of(learned.answers, learned.trust)
        return rows.spread(graph.to(self.device), learned.bank.weights)


def _answering(banks: dict[str, Bank], classes: int) -> str:
    """The bank that scores come from."""
    if "apart" in banks:
        return "apart"
    better = "hops" in banks and banks["hops"].hits > banks["mix"].hits + _BETTER * classes
    return "hops" if better else "mix"
