"""`AdditiveLearner`: a plan, sums over rows, and what they come to; every verb follows from these.

A method says three things, each a pure function:

    plan      what rows depend on, decided once, by the first batch
    sums      the sums over some rows of a batch
    solve     what sums come to

Observing adds a batch's sums, forgetting subtracts them, revising does both with the rows within
reach of a change, merging adds another learner's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import Linear
from undrift.analytic.statistics import one_hot
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Ids, Learner, Revision
from undrift.learners.kept import Inventory, of_class_sums
from undrift.sharing import once
from undrift.storage.state import State, pack, unpack
from undrift.streams.changes import changed_nodes, is_digest_of, within_reach
from undrift.streams.task import Task, isolating, joined
from undrift.typing import Progress, Rows, silent

_DRAWS = 3


class RowPlan(Protocol):
    """What rows depend on beside their batch: a frozen dataclass."""

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""
        ...

    @property
    def sees_all_edges(self) -> bool:
        """Whether every row depends on all edges of its batch."""
        ...

    @property
    def trained_on(self) -> str | None:
        """The digest (`is_digest_of`) of a batch that the feature map itself was trained on."""
        ...

    def reach(self, graph: Graph) -> Tensor:
        """For every node, how many hops away its row looks."""
        ...

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        ...


class Sums(Protocol):
    """What a method sums over rows: a group, with a column per class (`Additive`)."""

    @property
    def counts(self) -> Tensor:
        """How many training rows each class has."""
        ...

    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, other: Self) -> Self: ...
    def select(self, columns: Sequence[int]) -> Self:
        """The same sum with these classes in this order; -1 is a class without rows."""
        ...

    def emptied(self) -> Self:
        """The sum of no rows and no classes, over the same columns."""
        ...


P = TypeVar("P", bound=RowPlan)
S = TypeVar("S", bound=Any)  # `Sums`, which no union of classes is for a type checker
A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class Known(Generic[P, S, A]):
    """What such a learner knows: the plan, the sums over all rows, and what they come to.

    `solution` is None until it is needed: many small batches cost one solution, not one each.
    """

    classes: tuple[int, ...]
    plan: P
    sums: S
    solution: A | None = None

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""
        return self.plan.num_features

    @property
    def answer(self) -> A:
        """The solution, of a learner that has settled."""
        assert self.solution is not None  # noqa: S101  # scores and state settle first
        return self.solution


class AdditiveLearner(Learner, ABC, Generic[P, S, A]):
    """A learner whose knowledge is a sum over rows that are a fixed function of their batch.

    What is known is a function of the rows that are in, to rounding. A method says on its class
    what it can (`returns`, `forgets`, `merges`), as tables read it there, and what its state is
    made of (`learned_type`, a `Known`). Validation nodes are not used.
    """

    validates: ClassVar[bool] = False
    planned: ClassVar[tuple[str, ...]] = ()  # hyperparameters that say nothing beyond the plan

    # what a method implements ------------------------------------------------------------

    @abstractmethod
    def _plan(self, task: Task, progress: Progress) -> P:
        """What rows depend on beside their batch: every decision, made once, by the first batch."""

    @abstractmethod
    def _sums(
        self,
        plan: P,
        task: Task,
        classes: tuple[int, ...],
        rows: Tensor | None,
        progress: Progress,
    ) -> S:
        """The sums of a batch over the labelled rows in the mask `rows`; None takes all.

        What is counted beside rows (such as edges) is counted in the whole batch either way.
        """

    @abstractmethod
    def _solve(self, plan: P, classes: tuple[int, ...], sums: S, progress: Progress) -> A:
        """What these sums come to."""

    def _linear(self, known: Known[P, S, A]) -> Linear | None:
        """What scores are linear in; None where sums are more than rounding away from the rows."""
        return None

    # what is known -----------------------------------------------------------------------

    @property
    def known(self) -> Known[P, S, A]:
        """What was learned, of a learner that has observed something."""
        found: Known[P, S, A] = self.learned_
        return found

    def settle(self, *, progress: Progress = silent) -> Self:
        """Solve what was put off; predicting and saving do it on their own."""
        if self.learned_ is not None and self.known.solution is None:
            known = self.known
            solution = self._solve(known.plan, known.classes, known.sums, progress)
            self.learned_ = replace(known, solution=solution)
        return self

    def exactness(self) -> float | None:
        """How far rounding may have moved scores, over the largest score of a class's mean.

        Measured, not proved: the sums count their own rounding, and are solved three more times
        with noise that is larger. So it covers every step from sums to scores, the choice of gamma
        among them, for rows like those that were learned (docs/methods/propagation.md). Infinite
        where rounding decides which bank is used, or whether there is a solution. Cost: three
        solutions.
        """
        told = self._linear(self.settle().known) if self.classes_ else None
        if told is None:
            return None
        known, noise, found = self.known, torch.Generator().manual_seed(0), 0.0
        for _ in range(_DRAWS):
            sums = known.sums.shaken(noise)
            try:
                solution = self._solve(known.plan, known.classes, sums, silent)
            except InputError:  # the system is not even positive definite any more
                return math.inf
            other = self._linear(replace(known, sums=sums, solution=solution))
            found = max(found, math.inf if other is None else told.moved(other))
        return found

    # the verbs ---------------------------------------------------------------------------

    def _learn(self, task: Task, progress: Progress) -> Known[P, S, A]:
        plan = self._plan(task, progress) if self.learned_ is None else self.known.plan
        classes = joined(self.classes_, task.classes)
        sums = self._sums(plan, task, classes, None, progress)
        return self._with(plan, classes, sums)

    def take(
        self, plan: P, classes: tuple[int, ...], sums: S, *, progress: Progress = silent
    ) -> Self:
        """Add the sums of a batch that were made elsewhere, such as from a graph in pieces.

        `plan` is what its rows depend on: of the first batch, or as it is known here. The columns
        of `sums` are `classes`. No batch is known to be in by that (`batches_`).
        """
        every = joined(self.classes_, classes)
        self.learned_ = self._with(plan, every, _columns(sums, classes, every))
        self.batches_ = replace(self._ledger(), complete=False)
        return self

    def _with(self, plan: P, classes: tuple[int, ...], more: S) -> Known[P, S, A]:
        """What is known with more sums; learners side by side share them."""
        if self.learned_ is None:
            return Known(classes, plan, more)
        sums = self.known.sums
        return Known(classes, plan, once(lambda: sums + more, "both sums", sums, more))

    def give_back(self, classes: tuple[int, ...], sums: S, *, progress: Progress = silent) -> Self:
        """Subtract the sums of a batch that were made elsewhere: the other way of `take`."""
        self._must("forgets", "forget")
        gone = _columns(sums, classes, self.known.classes)
        self.learned_ = self._left(self.known.classes, self.known.sums - gone)
        return self

    def _forgotten(self, task: Task, progress: Progress) -> Known[P, S, A]:
        known = self.known
        self._check_forgettable(task)
        gone = self._sums(known.plan, task, known.classes, None, progress)
        return self._left(known.classes, known.sums - gone)

    def _revised(
        self, before: Task, after: Task, ids: tuple[Ids, Ids] | None, progress: Progress
    ) -> tuple[Known[P, S, A], Revision]:
        plan = self.known.plan
        self._check_forgettable(before)
        changed = changed_nodes(before, after, ids)
        if plan.sees_all_edges:
            everyone = (torch.ones_like(before.train), torch.ones_like(after.train))
            return self._exchanged((before, after), everyone, progress)
        reached = [
            within_reach(task.graph, touched, plan.reach(task.graph))
            for task, touched in zip((before, after), changed, strict=True)
        ]
        return self._exchanged((before, after), (reached[0], reached[1]), progress)

    def _without(self, task: Task, nodes: Tensor, progress: Progress) -> Known[P, S, A]:
        """Without a comparison of two graphs, where edges go both ways."""
        if not task.graph.adjacency.symmetric:
            return self._revised(task, isolating(task, nodes), None, progress)[0]
        self._check_forgettable(task)
        seen = torch.zeros(task.graph.num_nodes, dtype=torch.bool, device=task.graph.device)
        if self.known.plan.sees_all_edges:
            seen[:] = True
        else:
            seen[self._rows_that_see(task.graph, nodes)] = True
        still = seen.clone()
        still[nodes] = False
        both = task, isolating(task, nodes)
        return self._exchanged(both, (seen, still), progress)[0]

    def _rows_that_see(self, graph: Graph, nodes: Tensor) -> Tensor:
        """The nodes whose rows change if these vanish, and these; edges go both ways.

        Their neighbours' degrees change, so a row changes that looks as far as one of those. A
        row that looks k + 1 hops away lies behind one that looks k hops in the same direction, as
        evidence grows with every hop, so the search goes ring by ring.
        """
        reached: Tensor = torch.unique(torch.cat([nodes, graph.adjacency.columns_of(nodes)]))
        ring, hops = reached, 0
        while ring.numel():
            hops += 1
            around = torch.unique(graph.adjacency.columns_of(ring))
            around = around[~torch.isin(around, reached, assume_unique=True)]
            ring = around[self.known.plan.looks(graph, around, hops)]
            reached = torch.unique(torch.cat([reached, ring]))
        return reached

    def _exchanged(
        self, tasks: tuple[Task, Task], reached: tuple[Tensor, Tensor], progress: Progress
    ) -> tuple[Known[P, S, A], Revision]:
        """What is known with some rows of the one task in the place of some of the other."""
        known = self.known
        before, after = tasks
        classes = joined(known.classes, after.classes)
        old = self._sums(known.plan, before, classes, reached[0], progress)
        new = self._sums(known.plan, after, classes, reached[1], progress)
        learned = self._left(classes, known.sums - old + new)
        subtracted, added = (
            int((mask & task.train).sum()) for mask, task in zip(reached, tasks, strict=True)
        )
        return learned, Revision(subtracted, added, int(after.train.sum()))

    def _check_forgettable(self, task: Task) -> None:
        base = self.known.plan.trained_on
        if base is not None and is_digest_of(base, task):
            raise InputError(
                f"the encoder of {self.display} was trained on this batch and would remember it; "
                "learn anew without it, or use propagation, which trains no encoder"
            )

    def _left(self, classes: tuple[int, ...], sums: S) -> Known[P, S, A]:
        """What is known from a sum of which something was subtracted."""
        if sums.below_zero(self.known.sums):
            raise InputError(
                "what is to be forgotten was never observed like this: fewer rows than none would "
                "be left; give the batch exactly as it was observed (nothing was changed)"
            )
        kept = [i for i, count in enumerate(sums.counts.tolist()) if count > 0.5]
        if not kept:
            sums = sums - sums  # without the rounding that is left of it
        left = tuple(classes[i] for i in kept)
        return Known(left, self.known.plan, sums.select(kept))

    def _merged(self, other: Any) -> Known[P, S, A]:
        mine, theirs = self.known, other.known
        if self.map_digest() != other.map_digest():
            raise InputError(
                "rows mean different things to the two learners: each fixed its feature map by its "
                "own first batch; make one the sibling() of the other before it observes anything, "
                "or give both one plan"
            )
        classes = joined(mine.classes, theirs.classes)
        sums = _columns(theirs.sums, theirs.classes, classes)
        return Known(classes, mine.plan, mine.sums + _to(sums, self.device))

    def _emptied(self) -> Known[P, S, A]:
        return Known((), self.known.plan, self.known.sums.emptied())

    def map_digest(self) -> str:
        """A SHA-256 of what rows depend on: learners with the same one can merge."""
        from hashlib import sha256

        if self.learned_ is None:
            raise InputError("what rows depend on is fixed by the first batch; observe one first")
        tensors, values = pack(self.known.plan)
        told = {"device", *self.planned}
        params = {key: value for key, value in self.params().items() if key not in told}
        digest = sha256(repr((self.name, sorted(params.items()), sorted(values.items()))).encode())
        if self.scaling_ is not None:
            digest.update(repr(self.scaling_).encode())
        for name in sorted(tensors):
            digest.update(name.encode())
            digest.update(tensors[name].detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def load(self, state: State) -> Self:
        """Go on from a state of the same method with the same hyperparameters.

        A state of before there was a plan in it has the same parts under other names; what was
        solved is solved again.
        """
        return super().load(self._renamed(state) if "fixed.@" in state.values else state)

    def _renamed(self, state: State) -> State:
        def kept(parts: dict[str, Any]) -> dict[str, Any]:
            found = {}
            for key, value in parts.items():
                first, _, rest = key.partition(".")
                if first == "fixed":
                    found[f"plan.{rest}"] = value
                elif first in ("classes", "sums") or first.startswith("@"):
                    found[key] = value
            return found

        values = {"solution": None, **self._then_decided(), **kept(state.values)}
        return State(state.method, state.params, kept(state.tensors), values)

    def _then_decided(self) -> dict[str, Any]:
        """What a state of before lacks of the plan, as values by their path."""
        return {}


def _columns(sums: Any, classes: tuple[int, ...], every: tuple[int, ...]) -> Any:
    """Sums over some classes with a column for every one of others, in their order."""
    if classes == every:
        return sums
    place = {c: i for i, c in enumerate(classes)}
    return sums.select([place.get(c, -1) for c in every])


def _to(sums: Any, device: str) -> Any:
    """The sums on a device; a learner's own are where its others are."""
    if torch.device(device) == sums.counts.device:
        return sums
    tensors, values = pack(sums)
    return unpack(type(sums), {k: t.to(device) for k, t in tensors.items()}, values)


# sums over plain rows, and one linear classifier -----------------------------------------


@dataclass(frozen=True)
class HopPlan:
    """The plan of rows that only the graph and the seed decide: each looks so many hops away."""

    num_features: int
    hops: int

    @property
    def sees_all_edges(self) -> bool:
        """No row depends on more than its surroundings."""
        return False

    @property
    def trained_on(self) -> str | None:
        """Nothing was trained."""
        return None

    def reach(self, graph: Graph) -> Tensor:
        """The same for every node."""
        return torch.full((graph.num_nodes,), self.hops, device=graph.device)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """The same for every node."""
        return torch.full(nodes.shape, hops <= self.hops, device=nodes.device)


@dataclass(frozen=True, eq=False)
class Classifier:
    """Scores are `z W + b`; without an offset b is zero."""

    weights: Tensor
    offset: Tensor | None = None

    def scores(self, rows: Rows) -> Tensor:
        """Of these rows."""
        found: Tensor = rows @ self.weights
        return found if self.offset is None else found + self.offset


class LinearLearner(AdditiveLearner[P, ClassSums, Classifier], ABC, Generic[P]):
    """Plain sums over rows, and a linear classifier that they come to.

    A method says what its rows are (`rows`) and what its sums come to (`classifier`). No dataclass
    itself: what is annotated here are fields.
    """

    @abstractmethod
    def rows(self, plan: P, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """The rows of all nodes or of these (indices or a mask), in float64."""

    @abstractmethod
    def rows_depend_on(self, plan: P) -> tuple[object, ...]:
        """What rows depend on beside their graph: learners side by side that agree share them."""

    @abstractmethod
    def classifier(self, sums: ClassSums) -> Classifier:
        """What these sums come to."""

    def _sums(
        self,
        plan: P,
        task: Task,
        classes: tuple[int, ...],
        rows: Tensor | None,
        progress: Progress,
    ) -> ClassSums:
        progress("accumulate", 0, 1)
        train = task.train if rows is None else task.train & rows

        def make() -> ClassSums:
            found = self.rows(plan, task.graph, train)
            return ClassSums.of(found, one_hot(task.labels[train], classes))

        inputs = self.name, self.rows_depend_on(plan), task, classes, rows
        sums = once(make, "class sums", *inputs)
        progress("accumulate", 1, 1)
        return sums

    def _solve(
        self, plan: P, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        progress("classify", 0, 1)
        found = self.classifier(sums)
        progress("classify", 1, 1)
        return found

    def _linear(self, known: Known[P, ClassSums, Classifier]) -> Linear | None:
        return Linear(known.sums, known.answer.weights, known.answer.offset)

    def _inventory(self, learned: Known[P, ClassSums, Classifier]) -> Inventory:
        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            return self.rows(learned.plan, graph, nodes).double().to_dense()

        kept = of_class_sums("classifier", learned.sums, rows, learned.classes, ("sums",))
        return Inventory((kept,), rest=("plan", "solution"))

    def _scores(self, learned: Known[P, ClassSums, Classifier], graph: Graph) -> Tensor:
        return learned.answer.scores(self.rows(learned.plan, graph.to(self.device)))

    def _scores_of(
        self, learned: Known[P, ClassSums, Classifier], graph: Graph, nodes: Tensor
    ) -> Tensor:
        there = graph.to(self.device)
        return learned.answer.scores(self.rows(learned.plan, there, nodes.to(self.device)))


class SeededLearner(LinearLearner[HopPlan], ABC):
    """A linear classifier on rows that nothing is trained for, so that every verb is exact."""

    @abstractmethod
    def rows_of(self, graph: Graph) -> Rows:
        """A row for every node, in float64."""

    @property
    @abstractmethod
    def settings(self) -> tuple[object, ...]:
        """The hyperparameters that rows depend on."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many hops away a row looks."""

    def _plan(self, task: Task, progress: Progress) -> HopPlan:
        return HopPlan(task.graph.num_features, self.reach)

    def _then_decided(self) -> dict[str, Any]:
        return {"plan.hops": self.reach}

    def rows_depend_on(self, plan: HopPlan) -> tuple[object, ...]:
        """No batch decides anything."""
        return self.settings

    def rows(self, plan: HopPlan, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """Made of the whole graph, once for learners side by side."""
        every = once(lambda: self.rows_of(graph), "rows", self.name, self.settings, graph)
        if nodes is None:
            return every
        return every[nodes.nonzero().flatten() if nodes.dtype == torch.bool else nodes]

    def _hops(self, learned: Known[HopPlan, ClassSums, Classifier]) -> int | None:
        return learned.plan.hops
