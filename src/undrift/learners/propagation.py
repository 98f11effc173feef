"""Propagation: ridge regression on a fixed function of the graph, so that nothing can drift."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.propagation.bank import (
    Bank,
    PerturbedValidation,
    TaskRows,
    best_temperature,
    updated_bank,
    validation_losses,
)
from undrift.learners.parts.propagation.feature_map import FeatureMap, check_widths, samples_of
from undrift.learners.parts.propagation.propagated import Mix, Propagated
from undrift.streams.task import Task
from undrift.typing import Progress

# what these numbers rest on: docs/methods/propagation.md
_PRIOR_EDGES = 20.0  # weight of the prior in both measures: a few labelled edges prove nothing
_FULL_FROM = 0.25  # adjusted homophily from which the homophily weight is 1
_HETEROPHILY_UNDER = 0.5  # homophily weight under which informative heterophily is looked for
INFORMATIVE_FROM = 0.3  # label association from which it is found
_NARROW = 1024  # dense features of at most so many columns get a bank with a channel per hop
_MARGIN = 0.02  # by which that bank's mean validation accuracy must be higher to be selected


def homophily_weight(task: Task) -> float:
    """How far neighbours resemble a node, 0 to 1: the adjusted homophily of a task, over 0.25.

    Over the m edges between training nodes, h is the share within a class and h0 that share by
    chance at the same degrees. `a = (h - h0) / (1 - h0)` (Platonov et al., "Characterizing graph
    datasets for node classification", NeurIPS 2023) is shrunk towards 1 with the weight of 20
    edges, divided by 0.25 and cut to 0..1. A task of one class gives 1.
    """
    ours, theirs = _labelled_edges(task)
    m = ours.numel() / 2  # an edge stands there in both directions
    if len(task.classes) < 2 or m == 0:
        return 1.0
    classes = torch.tensor(task.classes, device=ours.device)
    shares = (ours.unsqueeze(1) == classes).double().mean(dim=0)
    chance = float(shares.square().sum())
    if chance > 1 - 1e-9:
        return 1.0
    adjusted = (float((ours == theirs).double().mean()) - chance) / (1 - chance)
    shrunk = (m * adjusted + _PRIOR_EDGES) / (m + _PRIOR_EDGES)
    return min(max(shrunk / _FULL_FROM, 0.0), 1.0)


def label_association(task: Task, least_classes: int = 3) -> float:
    """How much a neighbour's class tells of a node's, 0 to 1, whether or not the two agree.

    Cramer's V squared over the m edges between training nodes: with P_ab the share of edges that
    join classes a and b, and p its marginal, `(sum_ab P_ab^2 / (p_a p_b) - 1) / (C - 1)`, less its
    expectation under independence, `C / 2m`, and shrunk towards 0 with the weight of 20 edges.
    Classes that link only to the next one give 1, classes that link to all others alike
    `1 / (C - 1)^2`. Two classes cannot tell the two cases apart: 0 under `least_classes`.
    """
    ours, theirs = _labelled_edges(task)
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


def _labelled_edges(task: Task) -> tuple[Tensor, Tensor]:
    """The classes at both ends of every edge between training nodes, in both directions."""
    labels, known, edges = task.labels, task.train, task.graph.adjacency
    receivers, senders = edges.row_of_entry(), edges.indices.long()
    both = known[receivers] & known[senders]
    return labels[receivers[both]], labels[senders[both]]


def _one_hot(labels: Tensor, classes: Tensor) -> Tensor:
    return (labels.unsqueeze(1) == classes).double()


@dataclass(frozen=True, eq=False)
class PropagationLearned:
    """What is kept: a few banks of sums, and which of them is selected.

    `banks["mix"]` is always there; `separate` as long as every task shows informative
    heterophily; `hops`, a channel per hop, for narrow dense features.
    """

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    homophily: float
    banks: dict[str, Bank]
    selected: str

    @property
    def bank(self) -> Bank:
        """The selected bank: scores come from it."""
        return self.banks[self.selected]


@dataclass(kw_only=True)
class Propagation(Learner):
    """Class-balanced ridge regression on propagated features; needs no hyperparameter.

        Z = sum_k D_k A^k X,    W = (R + gamma mean(diag R) I)^-1 Q

    with `R = sum z z^T / n_c` and `Q = sum z y^T / n_c` over all training nodes (n_c: those of the
    node's class). Z is a fixed function of the graph (`Propagated`), so W is the solution of
    joint training, in any order of the tasks.

    `gamma`: chosen after every task by the squared error on all validation nodes so far, from
    their sums; by leave-one-out where there are none; a number fixes it. `mix`, `hops`,
    `evidence_threshold`: see `Propagated`. `homophily`: damping of each hop, 0 to 1; measured on
    the first task if not given (`homophily_weight`). `fourier`, `sketch`, `structure`: see
    `FeatureMap`. `balanced=False`: every node weighs the same, not every class.

    Two more banks are kept where the default mix may fail: with ego and neighbour channels under
    informative heterophily (`label_association`), and with a channel per hop for narrow dense
    features, selected by validation accuracy (`PerturbedValidation`).

    Cost, for rows of D <= 3072 columns and n nodes: n D^2 + D^3 / 3 operations per task and
    16 D^2 + 24 D C bytes per bank. Predictions cost 2 nnz(X) C + 2 hops nnz(A) C where there are
    no Fourier features; scores and probabilities form the rows, n D numbers. See
    docs/methods/propagation.md.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Propagation().observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "propagation"
    display: ClassVar[str] = "Propagation"
    family: ClassVar[str] = "analytic"
    keeps: ClassVar[str] = "R and Q of the training and of the validation nodes"
    learned_type: ClassVar[type] = PropagationLearned
    renamed: ClassVar[dict[str, str]] = {"words": "evidence_threshold", "trust": "homophily"}
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"evidence_threshold": (1e3, 1e4, 1e5)}

    gamma: float | None = None
    mix: Mix = "adaptive"
    hops: int = 8
    evidence_threshold: float = 1e4
    homophily: float | None = None
    fourier: int | None = None
    sketch: int = 3072
    structure: bool = False
    balanced: bool = True

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        check_widths(self.fourier, self.sketch)
        self.feature_map("mix", 1.0 if self.homophily is None else self.homophily)

    def _learn(self, task: Task, progress: Progress) -> PropagationLearned:
        return self.further(self.learned_, task, progress)[0]

    def further(
        self,
        before: PropagationLearned | None,
        task: Task,
        progress: Progress,
        validation: PerturbedValidation | None = None,
    ) -> tuple[PropagationLearned, dict[str, TaskRows]]:
        """What is known after one more task, and the task's rows in each bank.

        Accuracy is measured if `validation` is given or there are several banks.
        """
        graph = task.graph
        classes = (*(before.classes if before else ()), *task.classes)
        homophily = before.homophily if before else self._homophily(task)
        names = self._banks(before, task, graph, homophily)
        if validation is None and len(names) > 1 and self.gamma is None:
            validation = PerturbedValidation.of(task, classes, self.seed)
        banks: dict[str, Bank] = {}
        rows: dict[str, TaskRows] = {}
        for name in names:
            progress("accumulate", 0, 1)
            features = self.feature_map(name, homophily)
            samples = samples_of(features, task, classes, balanced=self.balanced)
            progress("solve", 0, 1)
            old = before.banks[name] if before else None
            width = features.width(graph.num_features)
            bank = updated_bank(old, features, width, samples, self.gamma)
            accuracy = old.accuracy if old else 0.0
            perturbed = validation.rows(features) if validation else []
            if validation:
                each = (features.scored(part, bank.weights) for part in perturbed)
                accuracy += validation.summed_accuracy(each)
            losses, val = old.losses if old else (), samples[1]
            if len(val):
                scores = features.scored(val.rows, bank.weights)
                losses = validation_losses(losses, scores, val.targets)
            banks[name] = replace(bank, accuracy=accuracy, losses=losses)
            rows[name] = TaskRows(*samples, perturbed)
            progress("solve", 1, 1)
        learned = PropagationLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=before.tasks + 1 if before else 1,
            homophily=homophily,
            banks=banks,
            selected=_selected(banks, len(classes)),
        )
        return learned, rows

    def feature_map(self, bank: str, homophily: float) -> FeatureMap:
        """The features of a bank: `mix`, `separate` or `hops`."""
        mix = Propagated(self.mix, self.hops, self.evidence_threshold, homophily)
        propagated, fourier = {
            "mix": (mix, self.fourier),
            "separate": (Propagated("separate", hops=2), self.fourier),
            "hops": (Propagated("concat", hops=2, homophily=homophily), 0),
        }[bank]
        return FeatureMap(propagated, self.sketch, fourier, self.seed, self.structure)

    def _homophily(self, task: Task) -> float:
        return homophily_weight(task) if self.homophily is None else self.homophily

    def _banks(
        self, before: PropagationLearned | None, task: Task, graph: Graph, homophily: float
    ) -> list[str]:
        """The banks that there are after this task; none is added after the first."""
        if before is not None:
            # the first task had three classes or more; two are enough to see the same again
            lost = "separate" in before.banks and label_association(task, 2) < INFORMATIVE_FROM
            return [name for name in before.banks if name != "separate" or not lost]
        names = ["mix"]
        if self.mix != "adaptive" or self.hops == 0:
            return names
        if self.homophily is None and homophily < _HETEROPHILY_UNDER:
            names += ["separate"] if label_association(task) >= INFORMATIVE_FROM else []
        dense = graph.features.layout == torch.strided and graph.num_features <= _NARROW
        return [*names, "hops"] if dense and self.gamma is None else names

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        return self._scores_of(learned, graph, torch.arange(graph.num_nodes))

    def _scores_of(self, learned: Any, graph: Graph, nodes: Tensor) -> Tensor:
        features = self.feature_map(learned.selected, learned.homophily)
        rows = features.plain(graph.to(self.device), nodes.to(self.device))
        return features.scored(rows, learned.bank.weights)

    def _ranking(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        features = self.feature_map(learned.selected, learned.homophily)
        scores = features.spread(graph.to(self.device), learned.bank.weights)
        return scores if nodes is None else scores[nodes.to(scores.device)]

    def _temperature(self, learned: Any) -> float | None:
        return best_temperature(learned.bank.losses)


def _selected(banks: dict[str, Bank], classes: int) -> str:
    """The bank that scores come from."""
    if "separate" in banks:
        return "separate"
    better = "hops" in banks and banks["hops"].accuracy > banks["mix"].accuracy + _MARGIN * classes
    return "hops" if better else "mix"
