"""Propagation: ridge regression on a fixed function of the graph, so that nothing can drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.analytic.rounding import Linear
from undrift.errors import InputError
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.additive import AdditiveLearner, Known
from undrift.learners.base import Verb
from undrift.learners.kept import Inventory, KeptSum, facts_of, of_class_sums
from undrift.learners.parameters import check_positive
from undrift.learners.parts.propagation.bank import AnySums, Solved, candidate, summed
from undrift.learners.parts.propagation.denoise import GAMMA, denoised
from undrift.learners.parts.propagation.feature_map import samples_of
from undrift.learners.parts.propagation.labelled_edges import (
    PRIOR_EDGES,
    association_of,
    edges_between,
    homophily_of,
)
from undrift.learners.parts.propagation.plan import (
    INFORMATIVE_FROM,
    Plan,
    decided,
    decides_badly,
    read_plan,
)
from undrift.learners.parts.propagation.private import (
    HOMOPHILY,
    WIDTH,
    ClassList,
    Level,
    Private,
    PrivateSums,
)
from undrift.learners.parts.propagation.propagated import Mix, Propagated
from undrift.learners.parts.propagation.size import First, Size, Wanted
from undrift.noise.accountant import Accountant
from undrift.noise.sampling import Normal, system_normal
from undrift.streams.task import Task
from undrift.typing import Progress, silent

_PINNED = (
    "mix",
    "hops",
    "evidence_threshold",
    "homophily",
    "fourier",
    "sketch",
    "rank",
    "budget",
    "structure",
)  # what a plan decides: with one given, these are not
_MARGIN = 0.02  # by which another bank's mean expected accuracy must be higher to be selected


def homophily_weight(task: Task) -> float:
    """How far neighbours resemble a node, 0 to 1 (`homophily_of`)."""
    return homophily_of(edges_between(task, task.classes))


def label_association(task: Task, least_classes: int = 3) -> float:
    """How much a neighbour's class tells of a node's, 0 to 1 (`association_of`)."""
    return association_of(edges_between(task, task.classes), least_classes)


@dataclass(frozen=True, eq=False)
class PropagationSums(Additive):
    """The sums over all rows in each bank, and `edges[a, b]`: labelled edges from class b to a.

    Edges are counted where there is a bank with ego and neighbour channels.
    """

    per_pair: ClassVar[tuple[str, ...]] = ("edges",)

    banks: dict[str, AnySums]
    edges: Tensor

    @property
    def counts(self) -> Tensor:
        """Rows per class."""
        return self.banks["mix"].counts

    def below_zero(self, before: PropagationSums) -> bool:
        """Whether more was subtracted from `before` than it held, as far as sums can tell."""
        held: Any = before.banks["mix"]
        return self.banks["mix"].below_zero(held)

    def shaken(self, noise: torch.Generator) -> PropagationSums:
        """The same sums with noise that is larger than their rounding."""
        banks: dict[str, AnySums] = {n: bank.shaken(noise) for n, bank in self.banks.items()}
        return PropagationSums(banks, self.edges)

    def eligible(self) -> tuple[str, ...]:
        """The banks that may be selected.

        Ego and neighbour channels only while every class was seen beside others: labelled edges to
        other classes are 0.3 of all its edges or more, with 20 more to the same class. A class
        that came alone has learned nothing of the neighbours that it has in the world.
        """
        every = self.edges.sum(dim=1)
        share = (every - self.edges.diagonal()) / (every + PRIOR_EDGES)
        seen = bool((share >= INFORMATIVE_FROM).all())
        return tuple(name for name in self.banks if name != "separate" or seen)


AnyPropagationSums = PropagationSums | PrivateSums
"""With `epsilon`, those of noisy releases."""

PropagationKnown = Known[Plan, AnyPropagationSums, Solved]
"""What is kept: sums, what their rows depend on, and the solution of the selected bank."""


@dataclass(kw_only=True)
class Propagation(AdditiveLearner[Plan, AnyPropagationSums, Solved]):
    """Class-balanced ridge regression on propagated features; needs no hyperparameter.

        Z = sum_k D_k A^k X,    W = (R + gamma mean(diag R) I)^-1 Q

    Z is a fixed function of the graph (`Propagated`). What is kept are plain sums over its rows
    (`ClassSums`), and R and Q are made from them when solving, so that every class weighs the same.
    So W is the solution of joint training, whatever the order of batches, and classes may come
    back, batches be forgotten or revised, and learners merged.

    `gamma`: chosen by generalised cross-validation, from the sums; a number fixes it. Validation
    nodes are not used. `mix`, `hops`, `evidence_threshold`: see `Propagated`. `homophily`: damping
    of each hop, 0 to 1; measured on the first task if not given (`homophily_weight`). `structure`:
    see `FeatureMap`. `balanced=False`: every node weighs the same, not every class.

    How much is kept follows the first batch (`Wanted.size`) or a `budget`: bytes, or a text such as
    `4MB`. `rank`: directions through which the Gram is seen (`ThinSums`); 0 keeps all of it.
    `sketch`: the whole Gram of rows that are cut to this many columns, 0 for all. `fourier`: random
    Fourier features.

    Two more banks are kept where the default mix may fail: with ego and neighbour channels where
    the first batch shows informative heterophily (`label_association`), and with a channel per
    hop for narrow dense features. One of them is selected where its sums tell of an accuracy two
    points higher (`expected_accuracy`).

    `plan`: every decision that the first batch makes otherwise (`Plan`, its JSON text, or a file of
    it). Sites that are given one plan can merge whatever they observe, in any order. `plan_` is the
    plan that is in force. A plan holds `mix`, `hops`, `sketch` and the like, so those are not given
    beside it.

    `epsilon`: differential privacy (docs/privacy/differential-privacy.md). Each batch is released
    once, as sums with noise, and what is kept is (epsilon, `delta`) private for every node that is
    in one batch at most. `level="node"`: with or without a node, its features, edges and label;
    training rows are then nodes' own features, and predictions propagate. `level="row"`: with or
    without a node's label, in a graph that is known; training rows are propagated. `class_list`:
    the classes that may ever come, as ids or as names, whose ids are their places in the list. The
    noise is the system's; `testing=True` draws it from `seed`, which is not private.

    Cost, for rows of D <= 3072 columns, n nodes and rank r <= 512: 4 n D r + 6 D r^2 operations per
    task and 8 D (r + 2 C) bytes per bank. Predictions cost 2 nnz(X) C + 2 hops nnz(A) C where rows
    are sketched; else, and for scores and probabilities, the rows are formed, n D numbers. See
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
    keeps: ClassVar[str] = "sums over training nodes: R or a part of it, Q, counts"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    learned_type: ClassVar[type] = PropagationKnown
    renamed: ClassVar[dict[str, str]] = {"words": "evidence_threshold", "trust": "homophily"}
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"evidence_threshold": (1e3, 1e4, 1e5)}
    planned: ClassVar[tuple[str, ...]] = ("plan", *_PINNED, "seed")

    gamma: float | None = None
    mix: Mix = "adaptive"
    hops: int = 8
    evidence_threshold: float = 1e4
    homophily: float | None = None
    fourier: int | None = None
    sketch: int | None = None
    rank: int | None = None
    budget: float | str | None = None
    structure: bool = False
    balanced: bool = True
    plan: str | Plan | None = None
    epsilon: float | None = None
    delta: float = 1e-6
    level: Level = "node"
    class_list: ClassList = ()
    testing: bool = False
    draw_: Normal = field(
        default_factory=lambda: system_normal, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        self._wanted()
        damping = 1.0 if self.homophily is None else self.homophily
        mix = Propagated(self.mix, self.hops, self.evidence_threshold, damping)
        pinned = read_plan(self.plan)
        self.plan = None if pinned is None else pinned.to_json()  # as params and states have it
        beside = [name for name in _PINNED if getattr(self, name) != getattr(type(self), name)]
        if pinned is not None and beside:
            raise InputError(
                f"a plan decides {beside[0]} already; leave {beside[0]} away, or change it in the "
                "plan"
            )
        if self.private is not None and pinned is not None:
            raise InputError(
                "with epsilon no batch decides anything, so sites agree without a plan; leave out "
                "plan, and give every site the same settings"
            )
        if self.private is not None and (self.rank or self.budget):
            raise InputError(
                f"with epsilon the whole Gram of at most {WIDTH} columns is kept; give neither "
                "rank nor budget, but sketch for fewer columns"
            )
        if self.private is not None and (self.structure or mix.blocks > 1):
            raise InputError(
                "epsilon is for rows of a node's features alone; leave structure=False and take a "
                "mix without channels: adaptive, mean or hop"
            )

    @property
    def private(self) -> Private | None:
        """How batches are released; None without `epsilon`."""
        if self.epsilon is None:
            return None
        test_seed = self.seed if self.testing else None
        how = self.epsilon, self.delta, self.level, self.class_list
        return Private(*how, self.draw_, test_seed)

    @property
    def account_(self) -> Accountant | None:
        """What was spent of epsilon; None without it."""
        if self.private is None:
            return None
        return self.private.account if self.learned_ is None else self.learned_.sums.account

    def _hindrance(self, verb: Verb) -> str | None:
        if self.epsilon is None or verb != "forgets":
            return None
        return (
            "what was released with noise is out, and tells of any one node no more than "
            f"epsilon={self.epsilon:g} allows, whether it is forgotten or not; to be without it, "
            "learn anew"
        )

    @property
    def plan_(self) -> Plan | None:
        """Every decision of the first batch, or the plan that was given; None before either."""
        return self.known.plan if self.learned_ is not None else read_plan(self.plan)

    def _may_differ(self, other: Propagation) -> tuple[str, ...]:
        same = self.plan_ is not None and self.plan_ == other.plan_
        return self.planned if same else ()

    def plan_note(self, task: Task) -> str | None:
        """What is wrong with this first batch, where it decides a plan and tells too little."""
        if self.plan_ is not None or self.epsilon is not None:
            return None
        why = decides_badly(len(task.classes), task.graph.num_edges, int(task.train.sum()))
        return why and (
            f"the first batch decides for good how rows are made, and {why}; learn a larger one "
            "first, or pin a plan made of one: undrift learner new DIR --plan OTHER/plan.json"
        )

    def _plan(self, task: Task, progress: Progress) -> Plan:
        width = task.graph.num_features
        given = self._given(width)
        if given is not None:
            return given
        return self.plan_by(width, edges_between(task, task.classes), First.of(task))

    def plan_by(self, num_features: int, edges: Tensor, first: First) -> Plan:
        """What a first batch decides: its features, its labelled edges by class, and its size."""
        given = self._given(num_features)
        if given is not None:
            return given
        told = self._blank(num_features), self._wanted(), edges, first
        return decided(*told, homophily=self.homophily, gamma=self.gamma)

    def _given(self, num_features: int) -> Plan | None:
        """The plan where no batch decides it: one that is pinned, or with `epsilon`."""
        pinned = read_plan(self.plan)
        if pinned is None:
            return None if self.private is None else self._blank(num_features)
        if pinned.num_features != num_features:
            raise InputError(
                f"the plan is for {pinned.num_features} features per node, this batch has "
                f"{num_features}; give the same columns, or another plan"
            )
        return pinned

    def _blank(self, num_features: int) -> Plan:
        """The plan before anything is measured, which is all of it with `epsilon`."""
        given = HOMOPHILY if self.homophily is None else self.homophily
        size = Size(min(self.sketch or WIDTH, WIDTH), self.fourier or 0, 0)
        how = self.mix, self.hops, self.evidence_threshold, given, ("mix",), (size,)
        return Plan(num_features, *how, structure=self.structure, seed=self.seed)

    def _wanted(self) -> Wanted:
        return Wanted(self.sketch, self.fourier, self.rank, self.budget)

    def _sums(
        self,
        plan: Plan,
        task: Task,
        classes: tuple[int, ...],
        rows: Tensor | None,
        progress: Progress,
    ) -> AnyPropagationSums:
        banks = {}
        progress("accumulate", 0, len(plan.banks) + 1)
        maps = list(plan.maps())
        samples = samples_of(maps, task, classes, rows)
        for k, (name, features) in enumerate(zip(plan.banks, maps, strict=True), start=1):
            progress("accumulate", k, len(plan.banks) + 1)
            banks[name] = summed(features, features.width(plan.num_features), samples.pop(0))
        progress("accumulate", len(plan.banks) + 1, len(plan.banks) + 1)
        return PropagationSums(banks, class_edges(plan, task, classes))

    def _learn(self, task: Task, progress: Progress) -> PropagationKnown:
        if self.private is None:
            return super()._learn(task, progress)
        before: Any = self.learned_
        plan: Plan = before.plan if before else self._plan(task, progress)
        progress("accumulate", 0, 1)
        batch = self.private.summed(plan.feature_map("mix"), plan.num_features, task)
        known = (before.classes, before.sums) if before else None
        classes, sums = self.private.learned(batch, known)
        progress("accumulate", 1, 1)
        return Known(classes, plan, sums)

    def take(
        self,
        plan: Plan,
        classes: tuple[int, ...],
        sums: AnyPropagationSums,
        *,
        progress: Progress = silent,
    ) -> Self:
        """Add sums that were made elsewhere; with `epsilon` there are none, as they lack noise."""
        if self.private is not None:
            raise InputError(
                "sums that were made elsewhere have no noise; with epsilon, observe the batch in "
                "memory"
            )
        return super().take(plan, classes, sums, progress=progress)

    def _solve(
        self,
        plan: Plan,
        classes: tuple[int, ...],
        sums: AnyPropagationSums,
        progress: Progress,
    ) -> Solved:
        progress("solve", 0, 1)
        if isinstance(sums, PrivateSums):
            clean = denoised(sums, len(self.class_list))
            answer = candidate(clean, self.gamma or GAMMA, balanced=self.balanced).selected()
        else:
            answers = {
                name: candidate(sums.banks[name], self.gamma, balanced=self.balanced)
                for name in sums.eligible()
            }
            selected = selected_bank({name: each.accuracy for name, each in answers.items()})
            answer = answers[selected].selected(selected)
        progress("solve", 1, 1)
        return answer

    def _then_decided(self) -> dict[str, Any]:
        names = ("mix", "hops", "evidence_threshold", "structure", "seed")
        return {f"plan.{name}": getattr(self, name) for name in names}

    def _linear(self, known: PropagationKnown) -> Linear | None:
        if isinstance(known.sums, PrivateSums):
            return None
        return Linear(known.sums.banks[known.answer.bank], known.answer.weights)

    def _inventory(self, learned: PropagationKnown) -> Inventory:
        sums = learned.sums
        if isinstance(sums, PrivateSums):
            kept = [self._noisy(learned, sums)]
        else:
            kept = list(kept_banks(learned.plan, sums, learned.classes, "sums"))
        return Inventory(tuple(kept), rest=("solution",))

    def _noisy(self, learned: PropagationKnown, sums: PrivateSums) -> KeptSum:
        """Releases with noise, attacked as if they had none."""
        features = learned.plan.feature_map("mix")
        if self.private is not None:
            features = self.private.of_training(features)
        return KeptSum(
            "noisy",
            features.rows_of,
            int(sums.gram.shape[0]),
            int(sums.counts.sum()),
            learned.classes,
            ("sums",),
            make_gram=lambda: sums.gram,
            make_means=lambda: sums.moment,
            counts=sums.counts,
            column_facts=lambda: facts_of(sums.gram),
            exact=False,
        )

    def _scores(self, learned: PropagationKnown, graph: Graph) -> Tensor:
        return self._scores_of(learned, graph, torch.arange(graph.num_nodes))

    def _scores_of(self, learned: PropagationKnown, graph: Graph, nodes: Tensor) -> Tensor:
        features = learned.plan.feature_map(learned.answer.bank)
        rows = features.plain(graph.to(self.device), nodes.to(self.device))
        return features.scored(rows, learned.answer.weights)

    def _field(
        self, learned: PropagationKnown, graph: Graph, nodes: Tensor
    ) -> ReceptiveField | None:
        return learned.plan.feature_map(learned.answer.bank).field(graph, nodes)

    def _ranking(self, learned: PropagationKnown, graph: Graph, nodes: Tensor | None) -> Tensor:
        features, there = learned.plan.feature_map(learned.answer.bank), graph.to(self.device)
        asked = torch.arange(graph.num_nodes) if nodes is None else nodes
        return features.ranking(there, learned.answer.weights, asked.to(self.device))

    def _temperature(self, learned: PropagationKnown) -> float | None:
        return learned.answer.temperature


def kept_banks(
    plan: Plan, sums: PropagationSums, classes: tuple[int, ...], where: str
) -> Iterator[KeptSum]:
    """The sum of every bank, which stand at `where` in the state."""
    for name, bank in sums.banks.items():
        features = plan.feature_map(name)
        yield of_class_sums(
            name,
            bank,
            features.rows_of,
            classes,
            (f"{where}.banks.{name}", f"{where}.edges"),
            linear=replace(features, fourier=0).width(plan.num_features),
        )


def class_edges(plan: Plan, task: Task, classes: tuple[int, ...]) -> Tensor:
    """`PropagationSums.edges` of a batch."""
    if "separate" in plan.banks:
        return edges_between(task, classes)
    none = (len(classes), len(classes))
    return torch.zeros(none, dtype=torch.float64, device=task.graph.device)


def selected_bank(accuracies: Mapping[str, Sequence[float | None]]) -> str:
    """The bank that scores come from: another than `mix` where it is right more often.

    `accuracies`: of every class, as each bank's sums tell them.
    """
    means = {name: mean_accuracy(each) for name, each in accuracies.items()}
    best = max(means, key=lambda name: means[name])
    return best if means[best] > means["mix"] + _MARGIN else "mix"


def mean_accuracy(accuracies: Sequence[float | None]) -> float:
    """Over the classes that have one; 0 without any."""
    known = [value for value in accuracies if value is not None]
    return fmean(known) if known else 0.0
