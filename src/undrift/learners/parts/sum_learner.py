"""`SumLearner`: a fixed function of the graph, sums over its rows, and a closed-form solution."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor

from undrift.analytic.rounding import Linear
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Ids, Learned, Learner, Revision
from undrift.storage.state import pack
from undrift.streams.changes import changed_nodes, within_reach
from undrift.streams.digest import is_digest_of
from undrift.streams.task import Task, isolating, joined
from undrift.typing import Progress, silent

_DRAWS = 3


class Sums(Protocol):
    """What a method sums over rows: a group, with a column per class."""

    @property
    def counts(self) -> Tensor:
        """How many training rows each class has."""
        ...

    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, other: Self) -> Self: ...
    def select(self, columns: Sequence[int]) -> Self:
        """The same sum with these classes in this order; -1 is a class without rows."""
        ...

    def below_zero(self, before: Self) -> bool:
        """Whether more was subtracted from `before` than it held, as far as a sum can tell."""
        ...

    def shaken(self, noise: torch.Generator) -> Self:
        """The same sums with noise that is larger than their rounding."""
        ...


class SummedLearned(Learned, Protocol):
    """What such a learner knows: what rows depend on, their sums, and what is solved from them."""

    @property
    def fixed(self) -> Any:
        """What rows depend on, decided by the first batch: a frozen dataclass."""
        ...

    @property
    def sums(self) -> Any:
        """The sums over all rows."""
        ...


class SumLearner(Learner, ABC):
    """A learner whose knowledge is a sum over rows that are a fixed function of their batch.

    A method says what rows depend on (`_fixed`), sums a batch's rows (`_sums`), and solves
    (`_solution`). All verbs follow: observing adds a batch's sums, forgetting subtracts them,
    revising does both with the rows within reach of a change, merging adds another learner's.
    What is known is a function of the rows that are in, to rounding. A method says so on its class
    (`returns`, `forgets`, `merges`), as tables read them there. Validation nodes are not used.
    """

    validates: ClassVar[bool] = False

    @abstractmethod
    def _fixed(self, task: Task, progress: Progress) -> Any:
        """What rows depend on beside their batch and the hyperparameters, from the first batch."""

    @abstractmethod
    def _sums(
        self,
        fixed: Any,
        task: Task,
        classes: tuple[int, ...],
        rows: Tensor | None,
        progress: Progress,
    ) -> Any:
        """The sums of a batch over the labelled rows in the mask `rows`; None takes all.

        What is counted beside rows (such as edges) is counted in the whole batch either way.
        """

    @abstractmethod
    def _solution(
        self, fixed: Any, classes: tuple[int, ...], sums: Any, progress: Progress
    ) -> Learned:
        """What is known from these sums, a pure function of them."""

    def _known(
        self, fixed: Any, classes: tuple[int, ...], sums: Any, progress: Progress
    ) -> Learned:
        """What is known before it is asked for: the solution, or the sums to solve later.

        A method that puts solving off returns what it learned with `solved` as None, and `settle`
        solves. Many small batches then cost one solution, not one each.
        """
        return self._solution(fixed, classes, sums, progress)

    def settle(self, *, progress: Progress = silent) -> Self:
        """Solve what was put off; predicting and saving do it on their own."""
        known: Any = self.learned_
        if known is not None and getattr(known, "solved", known) is None:
            self.learned_ = self._solution(known.fixed, known.classes, known.sums, progress)
        return self

    def _linear(self, learned: Any) -> Linear | None:
        """What scores are linear in; None where sums are more than rounding away from the rows."""
        return None

    def exactness(self) -> float | None:
        """How far rounding may have moved scores, over the largest score of a class's mean.

        Measured, not proved: the sums count their own rounding, and are solved three more times
        with noise that is larger. So it covers every step from sums to scores, the choice of gamma
        among them, for rows like those that were learned (docs/methods/propagation.md). Infinite
        where rounding decides which bank is used, or whether there is a solution. Cost: three
        solutions.
        """
        known: Any = self.settle().learned_
        told = self._linear(known) if self.classes_ else None
        if told is None:
            return None
        noise, found = torch.Generator().manual_seed(0), 0.0
        for _ in range(_DRAWS):
            sums = known.sums.shaken(noise)
            try:
                other = self._linear(self._solution(known.fixed, known.classes, sums, silent))
            except InputError:  # the system is not even positive definite any more
                return math.inf
            found = max(found, math.inf if other is None else told.moved(other))
        return found

    @abstractmethod
    def _reach(self, fixed: Any, graph: Graph) -> Tensor:
        """For every node, how many hops away its row looks."""

    def _looks(self, fixed: Any, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        return self._reach(fixed, graph)[nodes] >= hops

    def _sees_all_edges(self, fixed: Any) -> bool:
        """Whether every row depends on all edges of its batch."""
        return False

    def _trained_on(self, fixed: Any) -> str | None:
        """The digest (`is_digest_of`) of a batch that the feature map itself was trained on."""
        return None

    def _added(self, sums: Any, more: Any) -> Any:
        """Both sums in one; for a method whose learners side by side can share it."""
        return sums + more

    # the verbs ---------------------------------------------------------------------------

    def _learn(self, task: Task, progress: Progress) -> Learned:
        before: SummedLearned | None = self.learned_
        fixed = before.fixed if before else self._fixed(task, progress)
        classes = joined(before.classes if before else (), task.classes)
        sums = self._sums(fixed, task, classes, None, progress)
        if before is not None:
            sums = self._added(before.sums, sums)
        return self._known(fixed, classes, sums, progress)

    def take(
        self, fixed: Any, classes: tuple[int, ...], sums: Any, *, progress: Progress = silent
    ) -> Self:
        """Add the sums of a batch that were made elsewhere, such as from a graph in pieces.

        `fixed` is what its rows depend on: of the first batch, or as it is known here. The columns
        of `sums` are `classes`. No batch is known to be in by that (`batches_`).
        """
        before: SummedLearned | None = self.learned_
        every = joined(before.classes if before else (), classes)
        sums = _columns(sums, classes, every)
        if before is not None:
            sums = self._added(before.sums, sums)
        self.learned_ = self._known(fixed, every, sums, progress)
        self.batches_ = replace(self._ledger(), complete=False)
        return self

    def give_back(
        self, classes: tuple[int, ...], sums: Any, *, progress: Progress = silent
    ) -> Self:
        """Subtract the sums of a batch that were made elsewhere: the other way of `take`."""
        self._must("forgets", "forget")
        known: SummedLearned = self.learned_
        gone = _columns(sums, classes, known.classes)
        self.learned_ = self._left(known.classes, known.sums - gone, progress)
        return self

    def _forgotten(self, task: Task, progress: Progress) -> Learned:
        known: SummedLearned = self.learned_
        self._check_forgettable(task)
        gone = self._sums(known.fixed, task, known.classes, None, progress)
        return self._left(known.classes, known.sums - gone, progress)

    def _revised(
        self, before: Task, after: Task, ids: tuple[Ids, Ids] | None, progress: Progress
    ) -> tuple[Learned, Revision]:
        known: SummedLearned = self.learned_
        self._check_forgettable(before)
        changed = changed_nodes(before, after, ids)
        if self._sees_all_edges(known.fixed):
            everyone = (torch.ones_like(before.train), torch.ones_like(after.train))
            return self._exchanged((before, after), everyone, progress)
        reached = [
            within_reach(task.graph, touched, self._reach(known.fixed, task.graph))
            for task, touched in zip((before, after), changed, strict=True)
        ]
        return self._exchanged((before, after), (reached[0], reached[1]), progress)

    def _without(self, task: Task, nodes: Tensor, progress: Progress) -> Learned:
        """Without a comparison of two graphs, where edges go both ways."""
        if not task.graph.adjacency.symmetric:
            return super()._without(task, nodes, progress)
        self._check_forgettable(task)
        seen = torch.zeros(task.graph.num_nodes, dtype=torch.bool, device=task.graph.device)
        if self._sees_all_edges(self.learned_.fixed):
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
            ring = around[self._looks(self.learned_.fixed, graph, around, hops)]
            reached = torch.unique(torch.cat([reached, ring]))
        return reached

    def _exchanged(
        self, tasks: tuple[Task, Task], reached: tuple[Tensor, Tensor], progress: Progress
    ) -> tuple[Learned, Revision]:
        """What is known with some rows of the one task in the place of some of the other."""
        known: SummedLearned = self.learned_
        before, after = tasks
        classes = joined(known.classes, after.classes)
        old = self._sums(known.fixed, before, classes, reached[0], progress)
        new = self._sums(known.fixed, after, classes, reached[1], progress)
        learned = self._left(classes, known.sums - old + new, progress)
        subtracted, added = (
            int((mask & task.train).sum()) for mask, task in zip(reached, tasks, strict=True)
        )
        return learned, Revision(subtracted, added, int(after.train.sum()))

    def _check_forgettable(self, task: Task) -> None:
        base = self._trained_on(self.learned_.fixed)
        if base is not None and is_digest_of(base, task):
            raise InputError(
                f"the encoder of {self.display} was trained on this batch and would remember it; "
                "learn anew without it, or use propagation, which trains no encoder"
            )

    def _left(self, classes: tuple[int, ...], sums: Any, progress: Progress) -> Learned:
        """What is known from a sum of which something was subtracted."""
        if sums.below_zero(self.learned_.sums):
            raise InputError(
                "what is to be forgotten was never observed like this: fewer rows than none would "
                "be left; give the batch exactly as it was observed (nothing was changed)"
            )
        kept = [i for i, count in enumerate(sums.counts.tolist()) if count > 0.5]
        if not kept:
            sums = sums - sums  # without the rounding that is left of it
        left = tuple(classes[i] for i in kept)
        return self._known(self.learned_.fixed, left, sums.select(kept), progress)

    def _merged(self, other: Any) -> Learned:
        mine: SummedLearned = self.learned_
        theirs: SummedLearned = other.learned_
        if self.map_digest() != other.map_digest():
            raise InputError(
                "rows mean different things to the two learners: each fixed its feature map by its "
                "own first batch; make one the sibling() of the other before it observes anything"
            )
        classes = joined(mine.classes, theirs.classes)
        sums = _columns(theirs.sums, theirs.classes, classes)
        return self._known(mine.fixed, classes, mine.sums + _to(sums, self.device), silent)

    def _emptied(self) -> Learned:
        known: SummedLearned = self.learned_
        return self._known(known.fixed, (), known.sums.emptied(), silent)

    def map_digest(self) -> str:
        """A SHA-256 of what rows depend on: learners with the same one can merge."""
        from hashlib import sha256

        if self.learned_ is None:
            raise InputError("what rows depend on is fixed by the first batch; observe one first")
        tensors, values = pack(self.learned_.fixed)
        params = {key: value for key, value in self.params().items() if key != "device"}
        digest = sha256(repr((self.name, sorted(params.items()), sorted(values.items()))).encode())
        if self.scaling_ is not None:
            digest.update(repr(self.scaling_).encode())
        for name in sorted(tensors):
            digest.update(name.encode())
            digest.update(tensors[name].detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def _columns(sums: Any, classes: tuple[int, ...], every: tuple[int, ...]) -> Any:
    """Sums over some classes with a column for every one of others, in their order."""
    place = {c: i for i, c in enumerate(classes)}
    return sums.select([place.get(c, -1) for c in every])


def _to(sums: Any, device: str) -> Any:
    """The sums on a device; a learner's own are where its others are."""
    from undrift.storage.state import unpack

    if torch.device(device) == sums.counts.device:
        return sums
    tensors, values = pack(sums)
    return unpack(type(sums), {k: t.to(device) for k, t in tensors.items()}, values)
