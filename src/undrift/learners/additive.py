"""`AdditiveLearner`: a plan, sums over rows, and what they come to; every verb follows from these.

A method says three things, each a pure function:

    plan      what rows depend on, decided once, by the first batch: a value that makes rows
    sums      the sums over some rows of a batch
    solve     what sums come to: a value that scores rows

Observing adds a batch's sums, forgetting subtracts them, revising does both with the rows within
reach of a change, merging adds another learner's. Scores are the solution's of the plan's rows.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast, final

import torch
from torch import Tensor

from undrift.analytic.additive import Counted, arranged
from undrift.analytic.class_drift import ClassDrift
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.novelty import Strangeness
from undrift.analytic.rounding import Linear
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import AnySums
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner, Revision
from undrift.learners.kept import Inventory, kept_sums
from undrift.learners.nodes import Nodes, every_node
from undrift.learners.novelty import NoisyRows, Novel, drifts
from undrift.sharing import once
from undrift.storage.state import pack, unpack
from undrift.streams.task import Masks, Task, is_digest_of, joined
from undrift.typing import Progress, Rows, silent


class Answer(Protocol):
    """What sums come to; with `weights`, and perhaps `offset`, where scores are linear in them."""

    @property
    def temperature(self) -> float | None:
        """What scores are divided by to be logits; None: they are none."""

    def scores(self, rows: Rows) -> Tensor:
        """A column per class."""


S = TypeVar("S", bound=Counted)
A = TypeVar("A", bound=Answer)
Found = tuple[tuple[int, ...], S]
"""Classes, and sums with a column for each."""


class RowPlan(NoisyRows, Generic[A]):
    """What rows depend on beside their batch: a frozen dataclass that makes the rows of nodes.

    A plan must say `rows_of` and `furthest`. It may say four things more: what each node looks at
    (`looks`), which rows are scored (`scored_rows`), how noise reaches them (`noise_rows`), and
    whether a row in columns that others hardly have is strange (`rare_columns`). One that was
    trained on a batch has its digest as `trained_on`: that batch cannot be forgotten.
    """

    num_features: int

    @abstractmethod
    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """The rows of all nodes or of these (indices), in float64."""

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        return torch.full(nodes.shape, hops <= (self.furthest or 0), device=nodes.device)

    def scored_rows(
        self, solution: A, graph: Graph, nodes: Tensor | None, dtype: torch.dtype = torch.float64
    ) -> ScoredRows[A]:
        """The rows by which a solution scores these nodes (None: all): all columns, or some."""
        return ScoredRows(self, solution, graph, nodes, dtype)

    @final
    def within_reach(self, graph: Graph, changed: Tensor) -> Tensor:
        """A mask of the nodes whose rows look at one of these (a mask), and these.

        A row that looks k + 1 hops away lies behind one that looks k hops in the same direction,
        as evidence grows with every hop. So the search goes ring by ring. It is not that of a
        `ReceptiveField`: it goes against the edges, and each ring asks who looks on.
        """
        if self.furthest is None:
            return torch.ones_like(changed)
        links, seen, hops = graph.adjacency.t(), changed.clone(), 0
        ring = changed.nonzero().flatten()
        while ring.numel():
            hops += 1
            around = links.columns_of(ring)
            around = torch.unique(around[~seen[around]])
            ring = around[self.looks(graph, around, hops)]
            seen[ring] = True
        return seen


@dataclass(frozen=True, eq=False)
class ScoredRows(Generic[A]):
    """The rows by which a solution scores some nodes (None: all), made when they are used."""

    plan: RowPlan[A]
    solution: A
    graph: Graph
    nodes: Tensor | None
    dtype: torch.dtype

    @property
    @final
    def asked(self) -> Tensor:
        """The nodes by their numbers, all of them too."""
        return every_node(self.graph) if self.nodes is None else self.nodes

    def hops(self) -> int | Tensor | None:
        """How many hops away they look, all or each; None: at much of the graph."""
        return self.plan.furthest

    def scores(self, *, ranked: bool = False) -> Tensor:
        """A row of scores per node; `ranked`: up to a positive factor per node, for less."""
        return self.solution.scores(self.rows)

    def pieces(self) -> Iterable[Rows]:
        """The rows, some at a time."""
        return (self.rows,)

    @cached_property
    def rows(self) -> Rows:
        """All of them at once."""
        return self.plan.rows_of(self.graph, self.nodes)


P = TypeVar("P", bound=RowPlan[Any])


@dataclass(frozen=True, eq=False)
class Classifier:
    """A solution whose scores are `z W + b`; without an offset b is zero."""

    temperature: ClassVar[float | None] = None  # scores of ridge regression are no logits

    weights: Tensor
    offset: Tensor | None = None

    def scores(self, rows: Rows) -> Tensor:
        """Of these rows."""
        found: Tensor = rows @ self.weights
        return found if self.offset is None else found + self.offset


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

    @property
    def scored_sums(self) -> AnySums | None:
        """The class sums over the rows that the solution scores; None: there are none."""
        found: AnySums | None = self.sums.scored(self.answer)
        return found

    def scored_rows(
        self, graph: Graph, nodes: Tensor | None, dtype: torch.dtype = torch.float64
    ) -> ScoredRows[A]:
        """The rows by which the solution scores these nodes (None: all)."""
        there, plan = None if nodes is None else nodes.to(graph.device), cast(RowPlan[A], self.plan)
        return plan.scored_rows(self.answer, graph, there, dtype)

    @cached_property
    def strange(self) -> Strangeness | None:
        """How strange rows look to the sums; None where they are no class sums."""
        sums = self.scored_sums
        return None if sums is None else Strangeness.of(sums, rarity=self.plan.rare_columns)

    def plus(self, found: tuple[int, ...], sums: S) -> Known[P, S, A]:
        """With more sums, whose columns are these classes; learners side by side share them."""
        classes, before = joined(self.classes, found), self.sums
        inputs = before, sums, found, classes
        both = once(lambda: before + arranged(sums, found, classes), "both sums", *inputs)
        return Known(classes, self.plan, both)

    def less(self, old: Found[S], new: Found[S] | None = None) -> Known[P, S, A]:
        """Without the old sums of a batch, and with its new ones, if there are any."""
        classes = self.classes if new is None else joined(self.classes, new[0])
        sums = self.sums - arranged(old[1], old[0], classes)
        if new is not None:
            sums = sums + arranged(new[1], new[0], classes)
        if sums.below_zero(self.sums):
            raise InputError(
                "what is to be forgotten was never observed like this: fewer rows than none would "
                "be left; give the batch exactly as it was observed (nothing was changed)"
            )
        kept = [i for i, count in enumerate(sums.counts.tolist()) if count > 0.5]
        if not kept:
            sums = sums - sums  # without the rounding that is left of it
        return Known(tuple(classes[i] for i in kept), self.plan, sums.select(kept))


class AdditiveLearner(Novel, Learner, Generic[P, S, A]):
    """A learner whose knowledge is a sum over rows that are a fixed function of their batch.

    What is known is a function of the rows that are in, to rounding: so it has every verb.
    Validation nodes are not used. A method writes `_plan`, `_sums` and `_solve`, and no other verb;
    each is a pure function of its arguments. Two methods depart from it, and say so: the published
    form of `ds-al`, in which the order of batches counts, has a `_learn` of its own, and
    `private_propagation` draws noise in its `_sums`.
    """

    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    validates: ClassVar[bool] = False
    solving: ClassVar[str] = "classify"  # what progress and costs call `_solve`

    # what a method implements ------------------------------------------------------------

    @abstractmethod
    def _plan(self, task: Task, progress: Progress) -> P:
        """What rows depend on beside their batch: every decision, made once, by the first batch."""

    def _sums(self, plan: P, task: Task, within: Tensor | None, progress: Progress) -> Found[S]:
        """Classes and sums of a batch, over the labelled rows in the mask `within` (None: all).

        What is counted beside rows (such as edges) is counted in the whole batch either way.
        A method without a function of its own has `ClassSums` of the plan's rows.
        """
        nodes = task.training(within)
        targets, inputs = one_hot(task.labels[nodes], task.classes), (plan, task, within)
        rows = partial(plan.rows_of, task.graph, nodes)
        sums = once(lambda: ClassSums.of(rows(), targets), "class sums", *inputs)
        return task.classes, cast("S", sums)

    @abstractmethod
    def _solve(self, plan: P, classes: tuple[int, ...], sums: S, progress: Progress) -> A:
        """What these sums come to."""

    # reading -----------------------------------------------------------------------------

    @property
    @final
    def known(self) -> Known[P, S, A]:
        """What was learned, of a learner that has observed something."""
        return cast("Known[P, S, A]", self.learned_)

    @property
    def plan_(self) -> P | None:
        """What rows depend on, decided by the first batch; None before."""
        return None if self.learned_ is None else self.known.plan

    @final
    def ranking(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """Scores up to a positive factor per node, where that costs less."""
        graph, index = self._narrowed(graph, nodes)
        with torch.no_grad():
            rows = self.known.scored_rows(graph.to(self.device), index)
            return rows.scores(ranked=True).cpu()

    @final
    def _scores(self, learned: Known[P, S, A], graph: Graph, nodes: Tensor | None) -> Tensor:
        return learned.scored_rows(graph.to(self.device), nodes).scores()

    @final
    def _hops(self, learned: Known[P, S, A], graph: Graph, nodes: Tensor) -> int | Tensor | None:
        return learned.scored_rows(graph, nodes).hops()

    @final
    def _temperature(self, learned: Known[P, S, A]) -> float | None:
        return learned.answer.temperature

    @final
    def _inventory(self, learned: Known[P, S, A]) -> Inventory:
        kept = kept_sums(learned.plan, learned.sums, learned.classes)
        return Inventory(tuple(kept), rest=("plan", "solution"))

    @final
    def settle(self, *, progress: Progress = silent) -> Self:
        """Solve what was put off; predicting and saving do it on their own."""
        if self.learned_ is not None and self.known.solution is None:
            known = self.known
            progress(self.solving, 0, 1)
            solution = self._solve(known.plan, known.classes, known.sums, progress)
            progress(self.solving, 1, 1)
            self.learned_ = replace(known, solution=solution)
        return self

    @final
    def exactness(self) -> float | None:
        """How far rounding may have moved scores, over the largest score of a class's mean.

        Measured, not proved: the sums count their own rounding, and are solved three more times
        with noise that is larger (docs/methods/propagation.md). Infinite where rounding decides
        which feature variant is used, or whether there is a solution. Cost: three solutions.
        """
        known = self.settle().known if self.classes_ else None
        sums = None if known is None else known.scored_sums
        if known is None or sums is None or not hasattr(known.answer, "weights"):
            return None
        noise = torch.Generator().manual_seed(0)
        answers: list[Any] = [known.answer]  # with weights
        try:
            for _ in range(3):
                shaken = known.sums.shaken(noise)
                answers.append(self._solve(known.plan, known.classes, shaken, silent))
        except InputError:  # the system is not even positive definite any more
            return math.inf
        usual, *others = (Linear(sums, a.weights, getattr(a, "offset", None)) for a in answers)
        return max(usual.moved(other) for other in others)

    @final
    def drift_since(self, before: Known[P, S, A] | None, batch: Any) -> dict[int, ClassDrift]:
        """How far a batch that was learned after `before` was known has moved each class of it."""
        if before is None or before.solution is None or self.learned_ is None:
            return {}
        return drifts(before, self.known, self._moved(self.as_task(batch)))

    # the verbs ---------------------------------------------------------------------------

    def _learn(self, task: Task, progress: Progress) -> Known[P, S, A]:
        if self.learned_ is None:
            plan = self._plan(task, progress)
            classes, sums = self._summed(plan, task, None, progress)
            return Known(classes, plan, sums)
        return self.known.plus(*self._summed(self.known.plan, task, None, progress))

    @final
    def _summed(self, plan: P, task: Task, within: Tensor | None, progress: Progress) -> Found[S]:
        progress("accumulate", 0, 1)
        found = self._sums(plan, task, within, progress)
        progress("accumulate", 1, 1)
        return found

    def take(self, plan: P, classes: tuple[int, ...], sums: S) -> Self:
        """Add the sums of a batch that were made elsewhere, such as from a graph in pieces.

        `classes` are the columns of `sums`. The batch is not known to be in by that (`batches_`).
        """
        known = self.known.plus(classes, sums) if self.learned_ else Known(classes, plan, sums)
        self.learned_, self.batches_ = known, replace(self._ledger(), complete=False)
        return self

    @final
    def give_back(self, classes: tuple[int, ...], sums: S) -> Self:
        """Subtract the sums of a batch that were made elsewhere: the other way of `take`."""
        self._must("forgets", "forget")
        self.learned_ = self.known.less((classes, sums))
        return self

    @final
    def _replaced(
        self, before: Task, after: Task | None, changed: Masks | None, progress: Progress
    ) -> tuple[Known[P, S, A], Revision]:
        """With the rows within reach of the change computed again, in both batches."""
        known, plan = self.known, self.known.plan
        base = getattr(plan, "trained_on", None)
        if base is not None and is_digest_of(base, before):
            raise InputError(
                f"the encoder of {self.display} was trained on this batch and would remember it; "
                "learn anew without it, or use propagation, which trains no encoder"
            )
        if after is None or changed is None:
            old = self._summed(plan, before, None, progress)
            return known.less(old), Revision(int(before.train.sum()), 0, 0)
        was, now = map(plan.within_reach, (before.graph, after.graph), changed)
        old = self._summed(plan, before, was, progress)
        new = self._summed(plan, after, now, progress)
        rows = (was & before.train, now & after.train, after.train)
        return known.less(old, new), Revision(*(int(mask.sum()) for mask in rows))

    @final
    def _merged(self, other: Self) -> Known[P, S, A]:
        if _digest_of(self.known.plan) != _digest_of(other.known.plan):
            plan, both = "", ""
            if "plan" in self.params():
                plan, both = " or plans", ", or give both the same plan"
            raise InputError(
                f"these learners were built from different first batches{plan}, so their sums "
                f"cannot be added; make one with first.sibling() before it learns{both}"
            )
        sums = other.known.sums
        if sums.counts.device != torch.device(self.device):
            tensors, values = pack(sums)
            here = {name: tensor.to(self.device) for name, tensor in tensors.items()}
            sums = unpack(type(sums), here, values)
        return self.known.plus(other.known.classes, sums)

    @final
    def _emptied(self) -> Known[P, S, A]:
        return Known((), self.known.plan, self.known.sums.emptied())


def _digest_of(plan: RowPlan[Any]) -> str:
    """A SHA-256 of all values and tensors of a plan, on whatever device they are."""
    tensors, values = pack(plan)
    digest = sha256(repr(sorted(values.items())).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
