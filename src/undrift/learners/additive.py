"""`AdditiveLearner`: a plan, sums over rows, and what they come to; every verb follows from these.

A method says three things, each a pure function:

    plan      what rows depend on, decided once, by the first batch: a value that makes rows
    sums      the sums over some rows of a batch
    solve     what sums come to: a value that scores rows

Observing adds a batch's sums, forgetting subtracts them, revising does both with the rows within
reach of a change, merging adds another learner's. Reading is the plan's rows, and the solution's
scores of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Generic, Self, TypeVar, final

import torch
from torch import Tensor

from undrift.analytic.additive import arranged
from undrift.analytic.class_drift import ClassDrift
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.gram import chunks
from undrift.analytic.groups import grouped
from undrift.analytic.novelty import NoveltyReport, Strangeness
from undrift.analytic.rounding import Linear
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner, Nodes, Replacement, Revision, Strange
from undrift.learners.kept import Inventory, of_class_sums
from undrift.learners.novelty import drifts, moved_classes, seen, strange_of, strangeness
from undrift.learners.old_states import as_of_today
from undrift.sharing import once
from undrift.storage.state import State, pack, unpack
from undrift.streams.changes import changed_nodes, is_digest_of, within_reach
from undrift.streams.task import Task, joined
from undrift.typing import Progress, Rows, silent

_DRAWS = 3
_AT_ONCE_MB = 8.0  # of rows whose squares are made: they stay in the cache


class RowPlan(ABC):
    """What rows depend on beside their batch: a frozen dataclass that makes the rows of nodes.

    A plan that was trained on a batch has its digest as `trained_on`: that batch cannot be
    forgotten.
    """

    num_features: int

    @abstractmethod
    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """The rows of all nodes or of these (indices), in float64."""

    @property
    @abstractmethod
    def furthest(self) -> int:
        """How many hops away a row looks."""

    @property
    def sees_all_edges(self) -> bool:
        """Whether every row depends on all edges of its batch."""
        return False

    def reach(self, graph: Graph) -> Tensor:
        """For every node, how many hops away its row looks."""
        return torch.full((graph.num_nodes,), self.furthest, device=graph.device)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        return torch.full(nodes.shape, hops <= self.furthest, device=nodes.device)

    def score_hops(self, solution: Any, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        """How many hops away the scores of these nodes look; None: at much of the graph."""
        return self.furthest

    def scores(
        self, solution: Any, graph: Graph, nodes: Tensor | None, *, ranked: bool = False
    ) -> Tensor:
        """Scores of all or these nodes; `ranked`: up to a positive factor per node, for less."""
        found: Tensor = solution.scores(self.rows_of(graph, nodes))
        return found

    def novelty_sums(self, sums: Any, solution: Any) -> ClassSums | ThinSums | None:
        """The sums over the rows that are scored; None: there are none of this kind."""
        return sums if isinstance(sums, ClassSums | ThinSums) else None

    def noise_rows(self, graph: Graph, nodes: Tensor, noise: Tensor) -> Tensor:
        """About the rows of these nodes, were every node's features noise: the mean over hops."""
        held, total = noise, noise.clone()
        for _ in range(self.furthest):
            held = graph.operator.times(held)
            total += held
        return total[nodes]

    def seen(
        self, solution: Any, graph: Graph, nodes: Tensor | None, weights: Tensor, rare: Tensor
    ) -> Tensor:
        """`[Z V, (Z o Z) w]` of all or these nodes, what `Strangeness` asks of rows."""
        return seen_of(self.rows_of(graph, nodes), weights, rare)

    def inventory(self, sums: Any, classes: tuple[int, ...]) -> Inventory:
        """Which tensors of the state are sums over rows, and which are not."""

        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            return self.rows_of(graph, nodes).double().to_dense()

        kept = of_class_sums("classifier", sums, rows, classes, ("sums",))
        return Inventory((kept,), rest=("plan", "solution"))


def seen_of(rows: Rows, weights: Tensor, rare: Tensor) -> Tensor:
    """`[Z V, (Z o Z) w]`, some rows at a time."""
    parts = [weights.new_zeros(0, weights.shape[1] + 1)]
    for _, part in chunks(rows, _AT_ONCE_MB):
        exact = part.double()
        squares = exact.square() @ rare.unsqueeze(1)
        parts.append(torch.cat([exact @ weights, squares], dim=1))
    return torch.cat(parts)


P = TypeVar("P", bound=RowPlan)
S = TypeVar("S", bound=Any)  # `Additive`, which no union of classes is for a type checker
A = TypeVar("A", bound=Any)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A solution whose scores are `z W + b`; without an offset b is zero."""

    weights: Tensor
    offset: Tensor | None = None

    @property
    def temperature(self) -> float | None:
        """Scores of ridge regression are no logits."""
        return None

    def scores(self, rows: Rows) -> Tensor:
        """Of these rows."""
        found: Tensor = rows @ self.weights
        return found if self.offset is None else found + self.offset

    def linear(self, sums: Any) -> Linear | None:
        """What scores are linear in; None where sums are more than rounding away from the rows."""
        plain = isinstance(sums, ClassSums)
        return Linear(sums, self.weights, self.offset) if plain else None


@dataclass(frozen=True, eq=False)
class Known(Generic[P, S, A]):
    """What such a learner knows: a plan, sums, and what they come to (None until it is needed)."""

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

    @cached_property
    def strange(self) -> Strangeness | None:
        """How strange rows look to the sums; None where they are no class sums."""
        told = self.plan.novelty_sums(self.sums, self.answer)
        return None if told is None else Strangeness.of(told)


Found = tuple[tuple[int, ...], S]
"""Classes, and sums with a column for each."""


class AdditiveLearner(Learner, Generic[P, S, A]):
    """A learner whose knowledge is a sum over rows that are a fixed function of their batch.

    What is known is a function of the rows that are in, to rounding. Validation nodes are not
    used.
    """

    validates: ClassVar[bool] = False

    # what a method implements ------------------------------------------------------------

    @abstractmethod
    def _plan(self, task: Task, progress: Progress) -> P:
        """What rows depend on beside their batch: every decision, made once, by the first batch."""

    def _sums(self, plan: P, task: Task, within: Tensor | None, progress: Progress) -> Found[S]:
        """The classes and sums of a batch, over the labelled rows in the mask `within` (None:
        all).

        What is counted beside rows (such as edges) is counted in the whole batch either way.
        Without a function of its own a method has `ClassSums` of the plan's rows.
        """
        progress("accumulate", 0, 1)
        train = task.train if within is None else task.train & within
        nodes = train.nonzero().flatten()

        def make() -> ClassSums:
            return ClassSums.of(
                plan.rows_of(task.graph, nodes), one_hot(task.labels[nodes], task.classes)
            )

        told: Any = plan
        settings = tuple(getattr(plan, f.name) for f in fields(told))
        sums: Any = once(make, "class sums", type(plan).__name__, settings, task, within)
        progress("accumulate", 1, 1)
        return task.classes, sums

    @abstractmethod
    def _solve(self, plan: P, classes: tuple[int, ...], sums: S, progress: Progress) -> A:
        """What these sums come to: a value with `scores`, `temperature` and `linear`."""

    # reading -----------------------------------------------------------------------------

    @property
    def known(self) -> Known[P, S, A]:
        """What was learned, of a learner that has observed something."""
        found: Known[P, S, A] = self.learned_
        return found

    def ranking(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """Scores up to a positive factor per node, where that costs less."""
        graph, index = self._narrowed(graph, nodes)
        with torch.no_grad():
            return self._read(self.known, graph, index, ranked=True).cpu()

    def strangeness(
        self, graph: Any, nodes: Nodes | None = None, *, kind: Strange | None = None
    ) -> Tensor:
        """The relative Mahalanobis distance, averaged over neighbours twice (docs/novelty.md).

        `kind`: a baseline of the field instead, as of trained methods.
        """
        told = strange_of(self, graph) if kind is None else None
        if told is None:
            return super().strangeness(graph, nodes, kind=kind)
        return strangeness(self, told, graph, nodes)

    def novelty(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """One minus the share of nodes of known classes that would look at least as strange."""
        told = strange_of(self, graph)
        if told is None:
            return super().novelty(graph, nodes)
        return told.novelty(strangeness(self, told, graph, nodes).to(told.weights.device)).cpu()

    def groups(self, graph: Any, nodes: Nodes) -> Tensor:
        """A group number for each of these nodes, 0 for the largest: a guess at new classes."""
        told = strange_of(self, graph)
        if told is None:
            return super().groups(graph, nodes)
        return grouped(told.places(seen(self, told, graph, nodes))).cpu()

    def novelty_report(self, alarms: float = 0.05) -> NoveltyReport | None:
        """What would be detected of each class if it were unknown; None: sums do not tell.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> len(Propagation().observe(first).observe(second).novelty_report().detected)
        4
        """
        told = self.settle().known.strange if self.classes_ else None
        return None if told is None else told.report(alarms)

    @final
    def _scores(self, learned: Known[P, S, A], graph: Graph, nodes: Tensor | None) -> Tensor:
        return self._read(learned, graph, nodes)

    @final
    def _read(
        self, known: Known[P, S, A], graph: Graph, nodes: Tensor | None, *, ranked: bool = False
    ) -> Tensor:
        there = None if nodes is None else nodes.to(self.device)
        return known.plan.scores(known.answer, graph.to(self.device), there, ranked=ranked)

    @final
    def _hops(self, learned: Known[P, S, A], graph: Graph, nodes: Tensor) -> int | Tensor | None:
        return learned.plan.score_hops(learned.answer, graph, nodes)

    @final
    def _temperature(self, learned: Known[P, S, A]) -> float | None:
        told: float | None = learned.answer.temperature
        return told

    @final
    def _inventory(self, learned: Known[P, S, A]) -> Inventory:
        return learned.plan.inventory(learned.sums, learned.classes)

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
        with noise that is larger (docs/methods/propagation.md). Infinite where rounding decides
        which feature variant is used, or whether there is a solution. Cost: three solutions.
        """
        told = self.settle().known.answer.linear(self.known.sums) if self.classes_ else None
        if told is None:
            return None
        known, noise, found = self.known, torch.Generator().manual_seed(0), 0.0
        for _ in range(_DRAWS):
            sums = known.sums.shaken(noise)
            try:
                solution = self._solve(known.plan, known.classes, sums, silent)
            except InputError:  # the system is not even positive definite any more
                return math.inf
            found = max(found, told.moved(solution.linear(sums)))
        return found

    def class_drift(self, batch: Any) -> dict[int, ClassDrift]:
        """How far the known classes of a batch have moved; the batch is not learned.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> task = tiny_stream().task(0)
        >>> Propagation().observe(task).class_drift(task)[0].moved
        0.0
        """
        return moved_classes(self, batch)

    def drift_since(self, before: Known[P, S, A] | None, batch: Any) -> dict[int, ClassDrift]:
        """How far a batch that was added since has moved each class; no row is made anew."""
        if before is None or before.solution is None or self.learned_ is None:
            return {}
        return drifts(before, self.known, self._moved(self.as_task(batch)))

    # the verbs ---------------------------------------------------------------------------

    @final
    def _learn(self, task: Task, progress: Progress) -> Known[P, S, A]:
        plan = self._plan(task, progress) if self.learned_ is None else self.known.plan
        return self._with(plan, *self._sums(plan, task, None, progress))

    def take(
        self, plan: P, classes: tuple[int, ...], sums: S, *, progress: Progress = silent
    ) -> Self:
        """Add the sums of a batch that were made elsewhere, such as from a graph in pieces.

        `plan` is what its rows depend on, `classes` are the columns of `sums`. No batch is known
        to be in by that (`batches_`).
        """
        self.learned_ = self._with(plan, classes, sums)
        self.batches_ = replace(self._ledger(), complete=False)
        return self

    def give_back(self, classes: tuple[int, ...], sums: S, *, progress: Progress = silent) -> Self:
        """Subtract the sums of a batch that were made elsewhere: the other way of `take`."""
        self._must("forgets", "forget")
        known = self.known
        self.learned_ = self._left(
            known.classes, known.sums - arranged(sums, classes, known.classes)
        )
        return self

    @final
    def _with(self, plan: P, found: tuple[int, ...], sums: S) -> Known[P, S, A]:
        """What is known with more sums; learners side by side share them."""
        classes = joined(self.classes_, found)
        if self.learned_ is None:
            return Known(classes, plan, arranged(sums, found, classes))
        before = self.known.sums

        inputs = before, sums, found, classes
        both = once(lambda: before + arranged(sums, found, classes), "both sums", *inputs)
        return Known(classes, plan, both)

    @final
    def _replaced(self, change: Replacement, progress: Progress) -> tuple[Known[P, S, A], Revision]:
        """With the rows within reach of the change computed again, in both batches."""
        known, before, after = self.known, change.before, change.after
        base = getattr(known.plan, "trained_on", None)
        if base is not None and is_digest_of(base, before):
            raise InputError(
                f"the encoder of {self.display} was trained on this batch and would remember it; "
                "learn anew without it, or use propagation, which trains no encoder"
            )
        if after is None:
            gone = self._sums(known.plan, before, None, progress)
            left = known.sums - arranged(gone[1], gone[0], known.classes)
            return self._left(known.classes, left), Revision(int(before.train.sum()), 0, 0)
        reached = self._reached(change, after)
        classes = joined(known.classes, after.classes)
        sums = known.sums
        found, old = self._sums(known.plan, before, reached[0], progress)
        sums = sums - arranged(old, found, classes)
        found, new = self._sums(known.plan, after, reached[1], progress)
        sums = sums + arranged(new, found, classes)
        subtracted, added = (
            int((mask & task.train).sum())
            for mask, task in zip(reached, (before, after), strict=True)
        )
        revision = Revision(subtracted, added, int(after.train.sum()))
        return self._left(classes, sums), revision

    @final
    def _reached(self, change: Replacement, after: Task) -> tuple[Tensor, Tensor]:
        """The nodes of both batches whose rows the change may have moved, as masks."""
        plan, before, gone = self.known.plan, change.before, change.isolated
        if plan.sees_all_edges:
            return torch.ones_like(before.train), torch.ones_like(after.train)
        if gone is not None and before.graph.adjacency.symmetric:  # no need to compare two graphs
            seen = torch.zeros_like(before.train)
            seen[self._rows_that_see(before.graph, gone)] = True
            still = seen.clone()
            still[gone] = False
            return seen, still
        was, now = changed_nodes(before, after, change.ids)
        return (
            within_reach(before.graph, was, plan.reach(before.graph)),
            within_reach(after.graph, now, plan.reach(after.graph)),
        )

    @final
    def _rows_that_see(self, graph: Graph, nodes: Tensor) -> Tensor:
        """The nodes whose rows change if these vanish, and these; edges go both ways.

        A row that looks k + 1 hops away lies behind one that looks k hops in the same direction,
        as evidence grows with every hop. So the search goes ring by ring.
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

    @final
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

    @final
    def _merged(self, other: Any) -> Known[P, S, A]:
        mine, theirs = self.known, other.known
        if self.map_digest() != other.map_digest():
            raise InputError(
                "rows mean different things to the two learners: each fixed its feature map by its "
                "own first batch; make one the sibling() of the other before it observes anything, "
                "or give both one plan"
            )
        classes = joined(mine.classes, theirs.classes)
        sums = _to(arranged(theirs.sums, theirs.classes, classes), self.device)
        return Known(classes, mine.plan, mine.sums + sums)

    @final
    def _emptied(self) -> Known[P, S, A]:
        return Known((), self.known.plan, self.known.sums.emptied())

    def map_digest(self) -> str:
        """A SHA-256 of what rows depend on: learners with the same one can merge."""
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

    # states of before --------------------------------------------------------------------

    def load(self, state: State) -> Self:
        """Go on from a state of the same method with the same hyperparameters.

        States of before have parts under other names, and hyperparameters that are now in the
        plan.
        """
        return super().load(as_of_today(self, state))


def _to(sums: Any, device: str) -> Any:
    """The sums on a device; a learner's own are where its others are."""
    if torch.device(device) == sums.counts.device:
        return sums
    tensors, values = pack(sums)
    return unpack(type(sums), {k: t.to(device) for k, t in tensors.items()}, values)
