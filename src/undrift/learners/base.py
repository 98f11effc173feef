"""`Learner`: the contract of every method, and the part of it that all methods share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, cast, final

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Encoding, Graph, Scaling
from undrift.learners.kept import Inventory
from undrift.learners.ledger import HeldBatch, Ledger, check_still_in
from undrift.learners.nodes import Ids, Nodes, node_index, places_in_other
from undrift.learners.reading import Learned, Reading
from undrift.learners.small_classes import LEAST_ROWS, bounded, check_class_rows, has_noise
from undrift.sharing import once
from undrift.storage.files import save_state
from undrift.storage.state import SCALING, State, packed_bytes, unpack
from undrift.streams.task import (
    Masks,
    Task,
    as_task,
    batch_digest,
    changed_by_isolating,
    changed_nodes,
    digest_of_rows,
    isolating,
    without,
)
from undrift.typing import Progress, silent

_UNFIT = (
    "the state is damaged: its parts do not fit each other; restore it from a copy or learn again"
)
_BETWEEN_PARTS = {
    *("as_task", "can", "check_param", "give_back", "judged", "kinds", "known"),
    *("plan_by", "plan_note", "probabilities_of", "ranking", "scaled", "settle", "take"),
}
_SIBLING = "make one the sibling() of the other before it observes anything"
_COLUMNS = "@columns"  # among the values of a state: the names of columns


class Revision(NamedTuple):
    """How many labelled rows a change of a batch reached: subtracted, added, and in the batch."""

    subtracted: int
    added: int
    rows: int


@dataclass(kw_only=True)
class Learner(Reading):
    """A method of class-incremental learning: observe tasks, classify every class ever seen.

    A method is a dataclass of its hyperparameters with two pure functions, `_learn` and `_scores`.
    What else it can do it says on its class (`AnyLearner`).

    `batches_`: which batches are in, so that none is counted or subtracted twice. `again=True` goes
    by your word in place of it: `observe` and `merge` count a batch once more (not with `epsilon`),
    `forget` and `revise` subtract one that came in other parts, and pass over nodes that are out. A
    learner without its list, as out of a folder, needs that for what it has not observed since.
    `notes_`: what to know of batches that were observed here, as of a first one that tells too
    little for what it decides. `seed`: the only source of randomness.

    >>> sorted(Learner.__abstractmethods__)  # what a method must write
    ['_learn', '_scores']
    """

    validates: ClassVar[bool] = True  # whether validation nodes are of any use to it
    learned_type: ClassVar[Any]
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {}  # what a search tries, by parameter
    planned: ClassVar[tuple[str, ...]] = ()  # hyperparameters that say nothing beyond `plan_`
    listed: ClassVar[tuple[str, ...]] = (  # by `help`; docs/api.md has the rest
        *("observe", "forget", "revise", "merge"),
        *("predict", "predict_proba", "scores", "score", "novelty", "save", "classes_"),
    )

    notes_: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)

    def __dir__(self) -> list[str]:
        """What users set and call: no facts of a class, and nothing that its parts ask it."""
        hints = [vars(kind).get("__annotations__", {}) for kind in type(self).__mro__]
        facts = {name for some in hints for name, hint in some.items() if "ClassVar" in str(hint)}
        return [name for name in super().__dir__() if name not in facts | _BETWEEN_PARTS]

    # what a method implements: two functions, and six more if it can say or do more ------------

    @abstractmethod
    def _learn(self, task: Task, progress: Progress) -> Learned:
        """What is known after `task`. Must not change `self`."""

    def _inventory(self, learned: Any) -> Inventory:
        """Which tensors of the state are sums over rows; without it an audit does not judge."""
        return Inventory()

    def _replaced(
        self, before: Task, after: Task | None, changed: Masks | None, progress: Progress
    ) -> tuple[Learned, Revision]:
        """What is known with another batch (None: none) for one; `changed` nodes of both."""
        raise NotImplementedError

    def _merged(self, other: Self) -> Learned:
        """What is known with all that another learner of this class knows."""
        raise NotImplementedError

    def _emptied(self) -> Learned:
        """What `sibling` starts from: what rows depend on, and the sum of none."""
        raise NotImplementedError

    # the verbs ---------------------------------------------------------------------------

    @final
    def observe(self, batch: Any, *, again: bool = False, progress: Progress = silent) -> Self:
        """Learn a batch; afterwards its data may be deleted. A rejected batch changes nothing.

        Nodes without a label are context. A method that `validates` keeps a fifth of the labels of
        a `Graph` for it (`as_task`). What is in is an error, unless `again=True` (see `Learner`).
        """
        again_ = self._again(again)
        task = self.as_task(batch)
        self._check_task(task)
        moved = self._moved(task)
        known = self._ledger().observed(
            batch_digest(moved), alike=digest_of_rows(moved), again=again_
        )
        units = task.graph.encoding if self.learned_ is None else self.scaling_
        note = self.plan_note(task)
        self.learned_, self.batches_ = self._learn(moved, progress), known
        self.notes_ += (note,) if note else ()
        self.scaling_ = units or self.scaling_
        self.columns_ = self.columns_ or task.graph.names.columns
        return self

    @final
    def forget(
        self,
        batch: Any,
        nodes: Nodes | None = None,
        *,
        again: bool = False,
        progress: Progress = silent,
    ) -> Self:
        """Be as if this batch had never been observed; it must be given as it was then.

        `nodes`: only these, with their edges; later it may be given with or without them. What the
        first batch fixed for all stays. What is not in is an error, unless `again=True`.
        """
        self._must("forgets", "forget")
        moved = self._moved(self.as_task(batch))
        asked = () if nodes is None else node_index(nodes, moved.graph).unique().tolist()
        digest = batch_digest(moved)
        held, out, there = self._held(moved, digest, asked, again=again)
        gone = (*out, *check_still_in(asked, out, again=again))
        if nodes is not None and gone == out:
            return self
        left = None if nodes is None else without(moved, _index(moved, gone))
        if left is None:  # nothing of it is left
            self._exchange(there, None, None, self._ledger().forgotten(held), progress)
            return self
        after = _isolating(moved, gone)  # of a table, all at once: links are made anew
        changed = changed_by_isolating(there, after, _index(there, gone[len(out) :]))
        known = self._ledger().exchanged(held, digest, gone, batch_digest(left), again=True)
        self._exchange(there, after, changed, known, progress)
        return self

    @final
    def revise(
        self,
        before: Any,
        after: Any,
        *,
        ids: tuple[Ids, Ids] | None = None,
        again: bool = False,
        progress: Progress = silent,
    ) -> Revision:
        """Put a corrected batch in the place of one that was observed; how many rows it reached.

        `ids` names the nodes of both; without it node i is node i in both. Who is out stays out.
        """
        self._must("forgets", "revise")
        was, now = (self._moved(self.as_task(batch)) for batch in (before, after))
        self._check_task(now)
        held, out, there = self._held(was, batch_digest(was), again=again)
        still = places_in_other(out, ids, now.graph)
        digests = batch_digest(now), digest_of_rows(now)
        known = self._ledger().exchanged(held, digests[0], still, alike=digests[1], again=again)
        then = _isolating(now, still)
        return self._exchange(there, then, changed_nodes(there, then, ids), known, progress)

    @final
    def _exchange(
        self,
        before: Task,
        after: Task | None,
        changed: Masks | None,
        batches: Ledger,
        progress: Progress,
    ) -> Revision:
        """Put one batch in the place of another, all of it or nothing."""
        learned, revision = self._replaced(before, after, changed, progress)
        self.learned_, self.batches_ = learned, batches
        return revision

    @final
    def merge(self, other: Self, *, again: bool = False) -> Self:
        """Add what another learner knows, as if this one had observed its batches as well.

        Rows must mean the same to both: make one the `sibling` of the other before it observes
        anything, or give both one `plan`. A batch of both is an error, unless `again=True`.
        """
        self._must("merges", "merge")
        again_ = self._again(again)
        same = bool(self.planned) and self.plan_ is not None and self.plan_ == other.plan_
        known = self._with_batches_of(other, self.planned if same else (), again=again_)
        if other.scaling_ != self.scaling_ and self.learned_ is not None:
            what = "these learners scale their columns differently, so their sums cannot be added"
            raise InputError(f"{what}; {_SIBLING}")
        if self.columns_ and other.columns_ and self.columns_ != other.columns_:
            what = "the two learners learned other columns, or in another order"
            raise InputError(f"{what}; {_SIBLING}")
        if other.learned_ is not None:
            self.learned_ = other.learned_ if self.learned_ is None else self._merged(other)
            self.scaling_, self.columns_ = other.scaling_, self.columns_ or other.columns_
            self.batches_ = known
        return self

    @final
    def sibling(self) -> Self:
        """An empty learner for which rows mean the same, so that the two can `merge`.

        Before its first batch a learner must have been given a plan.
        """
        self._must("merges", "have a sibling")
        if self.plan_ is None and self.learned_ is None:
            pin = ", or give a plan" if "plan" in self.params() else ""
            raise InputError(
                "what rows depend on is fixed by the first batch; observe one, then make a sibling"
                f"{pin}"
            )
        made = self.clone()
        made.learned_ = None if self.learned_ is None else self._emptied()
        made.scaling_, made.columns_ = self.scaling_, self.columns_
        made.batches_ = self._ledger().sibling()
        return made

    # what is kept ------------------------------------------------------------------------

    @property
    def plan_(self) -> Any:
        """Every decision about rows, as a value to share, where a method has one; else None."""
        return None

    def plan_note(self, task: Task) -> str | None:
        """What is wrong with this first batch, where it decides a plan and tells too little."""
        return None

    @property
    def kinds(self) -> Mapping[Any, type]:
        """Which class a protocol in `learned_type` stands for, such as a rule chosen by name."""
        return {}

    @final
    def state(self, *, batches: bool = True) -> State:
        """Everything needed to go on, as named tensors and plain values.

        `batches=False` leaves out which batches are in, and so does `epsilon`: a digest would tell
        of single nodes.
        """
        self.settle()
        values: dict[str, Any] = {}
        if self.scaling_ is not None:
            values[SCALING] = self.scaling_.as_plain()
        if self.columns_ is not None:
            values[_COLUMNS] = list(self.columns_)
        return self._state(self.learned_, values, batches=batches and not has_noise(self))

    @final
    def save(self, path: str | Path, *, least_rows: int = LEAST_ROWS) -> None:
        """Write the learner as one file, whole or not at all; `undrift.load` reads it.

        A class of fewer training nodes than `least_rows` is an error: its sums would tell of them.
        """
        check_class_rows(self.class_rows(), least_rows)
        save_state(path, self.state())

    @final
    def load(self, state: State) -> Self:
        """Go on from a state of the same method with the same hyperparameters."""
        state, known = self._loaded(state)
        learned, values = None, state.values
        scaling, columns = _scaling(values.pop(SCALING, None)), values.pop(_COLUMNS, None)
        if state.tensors or values:
            tensors = {key: tensor.to(self.device) for key, tensor in state.tensors.items()}
            learned = unpack(self.learned_type, tensors, values, kinds=self.kinds)
        self.learned_, self.batches_, self.scaling_ = learned, known, scaling
        self.columns_ = tuple(map(str, columns)) if columns else None
        if self.classes_:
            self._check_fit()
        return self

    @final
    def class_rows(self) -> dict[int, int] | None:
        """How many training nodes stand behind each class; None where it is not told."""
        if bounded(self):
            return None
        known: Any = self.learned_
        parts = (known, *(getattr(known, name, None) for name in ("sums", "moments", "prototypes")))
        counts = next((part.counts for part in parts if hasattr(part, "counts")), None)
        if counts is None:
            return None
        return dict(zip(self.classes_, (round(float(n)) for n in counts), strict=True))

    @final
    def inventory(self) -> Inventory:
        """What the state is made of: sums over rows, and the rest. Nothing large is made for it."""
        return Inventory() if self.learned_ is None else self._inventory(self.learned_)

    def exactness(self) -> float | None:
        """How far rounding may have moved scores (`AdditiveLearner`); None: no promise."""
        return None

    @final
    def nbytes(self) -> int:
        """Bytes of all tensors in `state()`: the size of what is kept."""
        return 0 if self.learned_ is None else packed_bytes(self.settle().learned_)

    # batches and graphs as the method sees them ------------------------------------------------

    @final
    def as_task(self, batch: Any, ids: Ids | None = None) -> Task:
        """A batch as this learner sees it: the function `as_task`, with its seed."""
        return as_task(batch, self.seed, ids, validation=self.validates)

    @final
    def scaled(self, task: Task) -> Task:
        """The task as the method sees it: its columns in the units of `scaling_`."""
        if not isinstance(self.scaling_, Scaling):  # an encoding: rows came in its units
            return task
        graph = task.graph.scaled(self.scaling_)
        return Task(graph, task.train, task.val, task.test, task.classes)

    @final
    def _moved(self, task: Task) -> Task:
        task = self.scaled(task)
        return once(lambda: task.to(self.device), "task", task, self.device)

    @final
    def _held(
        self, task: Task, digest: str, nodes: Sequence[int] = (), *, again: bool
    ) -> tuple[HeldBatch, tuple[int, ...], Task]:
        """The entry of a batch that is in, the nodes that are out of it, and it without them."""
        held, out = self._ledger().find(digest, nodes, again=again)
        there = _isolating(task, out)
        self._check_known(there)
        return held, out, there

    # checks ------------------------------------------------------------------------------

    @final
    def _check_fit(self) -> None:
        """Predict a node without features: parts of a state that do not fit each other fail."""
        try:
            known = cast(Learned, self.learned_)
            probe = Graph.from_arrays(np.zeros((1, known.num_features)), [[], []])
            if self.scores(probe).shape != (1, len(self.classes_)):
                raise ValueError("scores of another shape")
        except Exception as error:  # whatever torch makes of such parts
            raise InputError(_UNFIT) from error

    @final
    def _check_task(self, task: Task) -> None:
        if self.learned_ is None:
            return
        seen = [c for c in task.classes if c in self.classes_]
        if seen and not self.can("returns"):
            raise InputError(
                f"class {seen[0]} was observed before, and {self.display} takes new classes only "
                f"(observed so far: {list(self.classes_)}); {self._way_out('returns')}"
            )
        self._check_width(task.graph)
        if self.encoding_ is not None and task.graph.encoding is None:
            raise InputError(
                "tables were learned, and this graph is none; make it with Graph.from_table(frame, "
                "encoding=learner.encoding_)"
            )

    @final
    def _again(self, again: bool) -> bool | None:
        """As a ledger takes it: None where nobody may say so."""
        if again and has_noise(self):
            raise InputError(
                "with epsilon a batch counts once, as that uses up the epsilon of its nodes; leave "
                "out again=True"
            )
        return None if has_noise(self) else again

    @final
    def _check_known(self, task: Task) -> None:
        """Reject a batch that cannot have been observed."""
        if self.learned_ is None:
            raise InputError("nothing was observed yet, so there is nothing to forget or revise")
        strange = [c for c in task.classes if c not in self.classes_]
        if strange:
            raise InputError(
                f"class {strange[0]} was never observed (observed: {list(self.classes_)}); "
                "forget and revise need a batch as it was observed"
            )
        self._check_width(task.graph)


def at_nodes(rows: Tensor, nodes: Tensor | None) -> Tensor:
    """Of a row per node those of these nodes; None takes all."""
    return rows if nodes is None else rows[nodes.to(rows.device)]


def _scaling(value: Any) -> Scaling | Encoding | None:
    """What a state says of the units of columns."""
    try:
        if isinstance(value, dict):
            return Encoding.of({}, value)
        return None if value is None else Scaling(*(tuple(map(float, each)) for each in value))
    except (TypeError, ValueError, InputError) as error:
        raise InputError(_UNFIT) from error


def _index(task: Task, nodes: Sequence[int]) -> Tensor:
    return torch.tensor(nodes, dtype=torch.int64, device=task.graph.device)


def _isolating(task: Task, nodes: Sequence[int]) -> Task:
    return isolating(task, _index(task, nodes)) if nodes else task
