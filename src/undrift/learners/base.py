"""`Learner`: the contract of every method, and the part of it that all methods share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, final

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph, ReceptiveField, Scaling
from undrift.learners.kept import Inventory
from undrift.learners.ledger import Ledger, check_still_in
from undrift.learners.parameters import Parameters
from undrift.learners.registry import recorded_name
from undrift.learners.small_classes import LEAST_ROWS, bounded, check_class_rows, has_noise
from undrift.machine import check_device
from undrift.sharing import is_shared, once
from undrift.sparse import row_index
from undrift.storage.files import save_state
from undrift.storage.state import SCALING, State, pack, packed_bytes, unpack
from undrift.streams.any_graph import as_graph
from undrift.streams.changes import batch_digest
from undrift.streams.task import Task, as_task, isolating, without
from undrift.typing import Progress, silent

Nodes = Sequence[int] | Sequence[bool] | np.ndarray[Any, Any] | Tensor
"""Some nodes of a graph: their numbers, or a mask."""

Ids = Sequence[int] | Sequence[str] | np.ndarray[Any, Any]
"""An id per node of a graph, none twice."""

EXACT = 1e-9
"""How far scores may be from those of one training, over the largest, and be called exact."""

UNKNOWN = -1
"""What `predict(unknown=...)` answers for a node that looks like no known class.

>>> import torch
>>> from undrift import UNKNOWN
>>> int((torch.tensor([2, -1, 0]) == UNKNOWN).sum())  # of three predictions
1
"""

Verb = Literal["returns", "forgets", "merges"]
Strange = Literal["energy", "softmax"]

_BATCHES = "@batches"  # where the ledger is among the values of a state; no field is called so


class Revision(NamedTuple):
    """How many labelled rows a change of a batch reached: subtracted, added, and in the batch."""

    subtracted: int
    added: int
    rows: int


class Replacement(NamedTuple):
    """A batch that is in, and what comes in its place; None is nothing.

    `isolated` are the nodes of a batch that it loses with their edges, where nothing else changes.
    """

    before: Task
    after: Task | None
    ids: tuple[Ids, Ids] | None = None
    isolated: Tensor | None = None


Learned = Any
"""What a method knows: its own frozen dataclass, with `classes` in order and `num_features`."""


@dataclass(kw_only=True)
class Learner(Parameters):
    """A method of class-incremental learning: observe tasks, classify every class ever seen.

    A method is a dataclass whose fields are its hyperparameters. It implements two pure functions:
    `_learn(task, progress)` returns what is known after the task, and `_scores(learned, graph,
    nodes)` reads from it. This class does the rest: checks, the single assignment that makes
    `observe` all or nothing, prediction, state, clone.

    What a method can do beyond that it says on its class: `returns` (a batch may bring known
    classes), `forgets` (`forget` and `revise` are exact), `merges` (`merge` equals training on
    both). `verbs_need` is a setting without which it cannot, such as `cleansing=False`, and
    `why_not` the reason.

    `batches_` knows which batches are in (`Ledger`), so that none is counted or subtracted twice.
    `seed` is the only source of randomness. `scaling_`: the units that columns are put into; None:
    as given.

    >>> sorted(Learner.__abstractmethods__)  # what a method must write
    ['_learn', '_scores']
    """

    name: ClassVar[str]
    display: ClassVar[str]  # in tables and figures; the name without it
    family: ClassVar[str] = "other"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "-"  # what is kept, in a few words
    keeps_examples: ClassVar[bool] = False  # nodes as such; what sums give away: docs/privacy
    returns: ClassVar[bool] = False
    forgets: ClassVar[bool] = False
    merges: ClassVar[bool] = False
    verbs_need: ClassVar[str] = ""
    why_not: ClassVar[str] = ""
    validates: ClassVar[bool] = True  # whether validation nodes are of any use to it
    learned_type: ClassVar[Any]
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {}  # what a search tries, by parameter
    planned: ClassVar[tuple[str, ...]] = ()  # hyperparameters that say nothing beyond `plan_`
    listed: ClassVar[tuple[str, ...]] = (  # by `help`; docs/api.md has the rest
        *("observe", "forget", "revise", "merge"),
        *("predict", "predict_proba", "score", "novelty", "classes_"),
    )

    seed: int = 0
    device: str = "cpu"
    learned_: Any = field(default=None, init=False, repr=False, compare=False)
    scaling_: Scaling | None = field(default=None, init=False, repr=False, compare=False)
    batches_: Ledger | None = field(default=None, init=False, repr=False, compare=False)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" in vars(cls) and "display" not in vars(cls):
            cls.display = cls.name

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "device" and isinstance(value, str):  # `Parameters` says what else is wrong
            check_device(value)
        super().__setattr__(name, value)

    # what a method implements: two functions, and six more if it can say or do more ------------

    @abstractmethod
    def _learn(self, task: Task, progress: Progress) -> Learned:
        """What is known after `task`. Must not change `self`."""

    @abstractmethod
    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Scores of these nodes (indices; None: all), columns as in `learned.classes`."""

    def _hops(self, learned: Any, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        """How many hops away the scores of these nodes look, or for each; None: the whole graph."""
        return None

    def _temperature(self, learned: Any) -> float | None:
        """What scores are divided by to be the logits of probabilities; None: there are none."""
        return None

    def _inventory(self, learned: Any) -> Inventory:
        """Which tensors of the state are sums over rows; without it an audit does not judge."""
        return Inventory()

    def _replaced(self, change: Replacement, progress: Progress) -> tuple[Learned, Revision]:
        """What is known with another batch in the place of one; for a method that `forgets`."""
        raise NotImplementedError

    def _merged(self, other: Any) -> Learned:
        """What is known with all that another learner of this class knows."""
        raise NotImplementedError

    def _emptied(self) -> Learned:
        """What `sibling` starts from: what rows depend on, and the sum of none."""
        raise NotImplementedError

    # the verbs ---------------------------------------------------------------------------

    def observe(self, batch: Any, *, again: bool = False, progress: Progress = silent) -> Self:
        """Learn a batch; afterwards its data may be deleted. A rejected batch changes nothing.

        It may bring new classes, and known ones where the method `returns`. Nodes without a label
        are context: their features and edges count, their rows do not. Of a `Graph`, a fifth of
        the labelled nodes are for validation where the method `validates` (`as_task`). A batch
        that is in already is an error; `again=True` counts it once more, but not with `epsilon`.
        """
        self._check_again(again)
        task = self.as_task(batch)
        self._check_task(task)
        moved = self._moved(task)
        known = self._ledger().observed(self._digest(moved), again=again)
        self.learned_, self.batches_ = self._learn(moved, progress), known
        return self

    def forget(
        self,
        batch: Any,
        nodes: Nodes | None = None,
        *,
        again: bool = False,
        progress: Progress = silent,
    ) -> Self:
        """Be as if this batch had never been observed; it must be given as it was then.

        `nodes`: only these of its nodes, with their edges. Afterwards the batch may be given as it
        was observed, or without them. What the first batch fixed for all stays.

        A batch that is not in, and a node that was taken out already, are errors. `again=True`
        subtracts a batch that came in other parts, and passes over nodes that are out. A learner
        out of a folder, with `epsilon`, or from an older file refuses no batch for being unknown.
        """
        self._must("forgets", "forget")
        moved = self._moved(self.as_task(batch))
        asked: list[int] | None = None
        if nodes is not None:
            asked = row_index(_as_tensor(nodes), moved.graph.num_nodes, "node").unique().tolist()
        digest, ledger = self._digest(moved), self._ledger()
        held = ledger.find(digest, asked or (), again=again)
        out = () if held is None else ledger.gone(held, digest)
        there = _isolating(moved, out)
        self._check_known(there)
        more = None if asked is None else check_still_in(asked, out, again=again)
        left = None if more is None else without(moved, _index(moved, (*out, *more)))
        if more is None or left is None:  # nothing of it is left
            change, known = Replacement(there, None), ledger.forgotten(held)
        elif more:
            gone = _index(moved, more)
            change = Replacement(there, isolating(there, gone), isolated=gone)
            known = ledger.without(digest, held, (*out, *more), self._digest(left))
        else:
            return self
        self.learned_, self.batches_ = self._replaced(change, progress)[0], known
        return self

    def revise(
        self,
        before: Any,
        after: Any,
        *,
        ids: tuple[Ids, Ids] | None = None,
        again: bool = False,
        progress: Progress = silent,
    ) -> Revision:
        """Put a corrected batch in the place of one that was observed.

        Nodes, edges, features or labels may differ. `ids` names the nodes of both; without it node
        i is node i in both. Only rows within reach of a change are computed again: how many is
        returned. Nodes that were taken out stay out.
        """
        self._must("forgets", "revise")
        was, now = (self._moved(self.as_task(batch)) for batch in (before, after))
        self._check_task(now)
        digest, ledger = self._digest(was), self._ledger()
        held = ledger.find(digest, again=again)
        out = () if held is None else ledger.gone(held, digest)
        still = _same(out, ids, now.graph.num_nodes)
        known = ledger.revised(held, self._digest(now), still, again=again)
        there = _isolating(was, out)
        self._check_known(there)
        change = Replacement(there, _isolating(now, still), ids)
        self.learned_, revision = self._replaced(change, progress)
        self.batches_ = known
        return revision

    def merge(self, other: Learner, *, again: bool = False) -> Self:
        """Add what another learner knows, as if this one had observed its batches as well.

        Both must be of one method with the same hyperparameters, and rows must mean the same to
        both: make one the `sibling` of the other before it observes anything, or give both the
        same `plan`. A batch that both hold is an error; `again=True` counts it twice, but not with
        `epsilon`.
        """
        self._must("merges", "merge")
        self._check_again(again)
        if type(other) is not type(self):
            raise InputError(
                f"cannot merge {self.display} with {getattr(other, 'display', type(other))}; both "
                "must be of one method"
            )
        same = self.plan_ is not None and self.plan_ == other.plan_
        told = self.planned if same else ()
        self._check_same_params(other.params(), "the other learner has", told)
        if other.scaling_ != self.scaling_ and self.learned_ is not None:
            raise InputError(
                "the two learners scale their columns differently, so their rows mean different "
                "things; make one the sibling() of the other before it observes anything"
            )
        if other.learned_ is not None:
            known = self._ledger().merged(other._ledger(), again=again)
            self.learned_ = other.learned_ if self.learned_ is None else self._merged(other)
            self.scaling_ = other.scaling_
            self.batches_ = known
        return self

    def sibling(self) -> Self:
        """An empty learner for which rows mean the same, so that the two can `merge`."""
        self._must("merges", "have a sibling")
        if self.learned_ is None:
            raise InputError(
                "what rows depend on is fixed by the first batch; observe one, then make a sibling"
            )
        made = self.clone()
        made.learned_, made.scaling_ = self._emptied(), self.scaling_
        made.batches_ = self._ledger().sibling()
        return made

    def settle(self, *, progress: Progress = silent) -> Self:
        """Finish what `observe` put off until it is needed; predicting and saving do it too."""
        return self

    def can(self, verb: Verb) -> bool:
        """Whether this learner `returns`, `forgets` or `merges`, its hyperparameters considered."""
        return bool(getattr(self, verb)) and self._is_set_for_verbs()

    # reading -----------------------------------------------------------------------------

    def scores(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """A score per node and class seen; columns in the order of `classes_`.

        `graph`: anything that `as_graph` takes, such as a PyG `Data`. `nodes`: only these, by
        number or as a mask. What is computed then is their receptive field.
        """
        graph, index = self._narrowed(graph, nodes)
        with torch.no_grad():
            return self._scores(self.learned_, graph, index).cpu()

    def predict(
        self, graph: Any, nodes: Nodes | None = None, *, unknown: float | None = None
    ) -> Tensor:
        """A class id per node, or per node of `nodes`; never one that was not observed.

        `unknown`: the share of nodes of known classes that may be called `UNKNOWN` (-1) by
        mistake. Nodes of a `novelty` above one minus that get it.

        >>> from undrift import UNKNOWN, Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> strange = Propagation().observe(first).predict(second.graph, unknown=0.05)
        >>> bool((strange == UNKNOWN).any())
        True
        """
        best = self.ranking(graph, nodes).argmax(dim=1)
        found = torch.tensor(self.classes_)[best]
        if unknown is None:
            return found
        return found.masked_fill(self.novelty(graph, nodes) > 1 - _alarms(unknown), UNKNOWN)

    def ranking(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """Scores up to a positive factor per node, where that costs less."""
        return self.scores(graph, nodes)

    def strangeness(
        self, graph: Any, nodes: Nodes | None = None, *, kind: Strange | None = None
    ) -> Tensor:
        """How little a node looks like a known class, as a number that ranks; larger is stranger.

        Of an additive learner a distance, from its sums (docs/novelty.md). Of a trained method
        `energy`, `-T logsumexp(scores / T)`, or `softmax`, minus the largest probability.
        """
        scores = self.scores(graph, nodes).double()
        t = self._temperature(self.learned_) or 1.0
        if kind == "softmax":
            return -torch.softmax(scores / t, dim=1).amax(dim=1)
        return -t * (scores / t).logsumexp(dim=1)

    def novelty(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """One minus the share of nodes of known classes that would look at least as strange.

        0.99: one known node in a hundred looks as strange. So a threshold is a false-alarm rate.
        Only additive learners can tell it, from their sums.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> learner = Propagation().observe(first)
        >>> float(learner.novelty(first.graph).mean()) < float(learner.novelty(second.graph).mean())
        True
        """
        raise InputError(
            f"{self.display} keeps no sums that tell how strange known nodes look; rank nodes by "
            "strangeness(graph), or take propagation, which has novelty"
        )

    def groups(self, graph: Any, nodes: Nodes) -> Tensor:
        """A group number for each of these nodes, 0 for the largest: a guess at new classes.

        Only additive learners can tell it, from their sums.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> Propagation().observe(first).groups(second.graph, [4]).tolist()
        [0]
        """
        raise InputError(
            f"{self.display} keeps no sums that group nodes; take propagation, which does"
        )

    def score(self, graph: Any, nodes: Nodes | None = None) -> float:
        """The share of labelled nodes that are predicted right, 0 to 1; of all, or of `nodes`."""
        graph = as_graph(graph)
        asked = torch.arange(graph.num_nodes) if nodes is None else _as_tensor(nodes)
        index = row_index(asked, graph.num_nodes, "node")
        labels = graph.labelled().cpu()[index.cpu()]
        known = labels >= 0
        if not bool(known.any()):
            raise InputError("none of these nodes has a label to compare with; set y or labels")
        right = self.predict(graph, index.cpu()[known]) == labels[known]
        return float(right.double().mean())

    def predict_proba(
        self, graph: Any, nodes: Nodes | None = None, *, unknown: bool = False
    ) -> Tensor:
        """A probability per node and class seen: `softmax(scores / T)`, rows that add up to one.

        `unknown=True`: a last column has the `novelty`, and the others share the rest.

        T is 1 where scores are the logits of a trained head, and told by the sums in `propagation`
        and `hybrid`; without one there are no probabilities.
        """
        scores = self.scores(graph, nodes).double()
        temperature = self._temperature(self.learned_)
        if temperature is None:
            few = len(self.classes_) < 2
            way_out = "observe a second class" if few else "take propagation, which has them"
            raise InputError(
                f"{self.display} has scores but no probabilities here; use scores(graph), or "
                f"{way_out}"
            )
        found = torch.softmax(scores / temperature, dim=1)
        if not unknown:
            return found
        strange = self.novelty(graph, nodes).unsqueeze(1)
        return torch.cat([found * (1 - strange), strange], dim=1)

    # what is kept ------------------------------------------------------------------------

    @property
    def classes_(self) -> tuple[int, ...]:
        """Every class observed so far, in order of arrival."""
        return () if self.learned_ is None else tuple(self.learned_.classes)

    @property
    def plan_(self) -> Any:
        """Every decision about rows, as a value to share, where a method has one; else None."""
        return None

    @property
    def kinds(self) -> Mapping[Any, type]:
        """Which class a protocol in `learned_type` stands for, such as a rule chosen by name."""
        return {}

    @property
    def sees_all(self) -> bool:
        """Whether it must be shown all tasks so far at once (`TaskStream.until`): a bound."""
        return False

    def state(self, *, batches: bool = True) -> State:
        """Everything needed to go on, as named tensors and plain values.

        `batches=False` leaves out which batches are in, and so does `epsilon`: a digest would tell
        of single nodes.
        """
        self.settle()
        tensors, values = pack(self.learned_) if self.learned_ is not None else ({}, {})
        if self.batches_ is not None and batches and not has_noise(self):
            values |= pack(self.batches_, _BATCHES)[1]
        on_cpu = {key: tensor.cpu() for key, tensor in tensors.items()}
        if self.scaling_ is not None:
            values[SCALING] = [list(self.scaling_.centre), list(self.scaling_.spread)]
        return State(recorded_name(type(self)), self.params(), on_cpu, values)

    def save(self, path: str | Path, *, least_rows: int = LEAST_ROWS) -> None:
        """Write the learner as one file, whole or not at all; `undrift.load` reads it.

        A class of fewer training nodes than `least_rows` is an error, as its sums would give them
        away.
        """
        check_class_rows(self.class_rows(), least_rows)
        save_state(path, self.state())

    def load(self, state: State) -> Self:
        """Go on from a state of the same method with the same hyperparameters."""
        if state.method not in (self.name, recorded_name(type(self))):
            raise InputError(
                f"this state belongs to method {state.method!r}, not {self.name!r}; load it "
                f"into a {state.method!r} learner"
            )
        self._check_same_params(state.params, "the state was learned with")
        learned, known, values = None, None, dict(state.values)
        scaling = _scaling(values.pop(SCALING, None))
        if f"{_BATCHES}.@" in values:
            known = unpack(Ledger, {}, values, _BATCHES)
        if state.tensors or values:
            try:
                tensors = {key: tensor.to(self.device) for key, tensor in state.tensors.items()}
            except Exception as error:  # torch has many words for a device that is not there
                raise InputError(
                    f"the state is to be loaded on the device {self.device!r}, which is not "
                    "usable here; give another, as in device='cpu'"
                ) from error
            learned = unpack(self.learned_type, tensors, values, kinds=self.kinds)
        self.learned_, self.batches_, self.scaling_ = learned, known, scaling
        if self.classes_:
            self._check_fit()
        return self

    def class_rows(self) -> dict[int, int] | None:
        """How many training nodes stand behind each class; None where it is not told."""
        if bounded(self):
            return None
        known = self.learned_
        parts = (known, *(getattr(known, name, None) for name in ("sums", "moments", "prototypes")))
        counts = next((part.counts for part in parts if hasattr(part, "counts")), None)
        if counts is None:
            return None
        return dict(zip(self.classes_, (round(float(n)) for n in counts), strict=True))

    def inventory(self) -> Inventory:
        """What the state is made of: sums over rows, and the rest. Nothing large is made for it."""
        return Inventory() if self.learned_ is None else self._inventory(self.learned_)

    def exactness(self) -> float | None:
        """How far rounding may have moved scores (`AdditiveLearner`); None: no promise."""
        return None

    def nbytes(self) -> int:
        """Bytes of all tensors in `state()`: the size of what is kept."""
        return 0 if self.learned_ is None else packed_bytes(self.settle().learned_)

    # batches and graphs as the method sees them ------------------------------------------------

    def as_task(self, batch: Any, ids: Ids | None = None) -> Task:
        """A batch as this learner sees it: the function `as_task`, with its seed."""
        return as_task(batch, self.seed, ids, validation=self.validates)

    def scaled(self, task: Task) -> Task:
        """The task as the method sees it: its columns in the units of `scaling_`."""
        if self.scaling_ is None:
            return task
        graph = task.graph.scaled(self.scaling_)
        return Task(graph, task.train, task.val, task.test, task.classes)

    @final
    def _moved(self, task: Task) -> Task:
        task = self.scaled(task)
        return once(lambda: task.to(self.device), "task", task, self.device)

    @final
    def _digest(self, task: Task) -> str:
        return once(lambda: batch_digest(task), "digest", task)

    @final
    def _ledger(self) -> Ledger:
        """The batches that are in; of what was learned without a ledger, none is known."""
        return self.batches_ or Ledger.empty(complete=self.learned_ is None)

    @final
    def _narrowed(self, graph: Any, nodes: Nodes | None) -> tuple[Graph, Tensor | None]:
        """The nodes asked for (None: all), and the graph they are looked at in."""
        graph = as_graph(graph)
        self._check_graph(graph)
        self.settle()
        if self.scaling_ is not None:
            graph = graph.scaled(self.scaling_)
        if nodes is None:
            return graph, None
        index = node_index(nodes, graph)
        # side by side the work on the whole graph is done once for many
        hops = None if is_shared() else self._hops(self.learned_, graph, index)
        field = None if hops is None else ReceptiveField.of(graph, index, hops)
        return (graph, index) if field is None else (field.graph, field.at)

    # checks ------------------------------------------------------------------------------

    @final
    def _is_set_for_verbs(self) -> bool:
        name, _, value = self.verbs_need.partition("=")
        return not name or str(getattr(self, name)) == value

    @final
    def _must(self, verb: Verb, what: str) -> None:
        if not getattr(self, verb):
            how = self.why_not or "undrift methods lists those that can, such as propagation"
            raise InputError(f"{self.display} cannot {what}; {how}")
        if not self._is_set_for_verbs():
            raise InputError(
                f"{self.display} cannot {what} as it is set; {self.why_not}, set {self.verbs_need}"
            )

    @final
    def _check_fit(self) -> None:
        """Predict a node without features: parts of a state that do not fit each other fail."""
        try:
            probe = Graph.from_arrays(np.zeros((1, self.learned_.num_features)), [[], []])
            fits = self.scores(probe).shape == (1, len(self.classes_))
        except Exception as error:  # whatever torch makes of such parts
            raise _unfit() from error
        if not fits:
            raise _unfit()

    @final
    def _check_task(self, task: Task) -> None:
        if self.learned_ is None:
            return
        seen = [c for c in task.classes if c in self.classes_]
        if seen and not self.can("returns"):
            how = "undrift methods lists those that can"
            if self.returns:
                how = f"{self.why_not}, set {self.verbs_need}"
            raise InputError(
                f"class {seen[0]} was observed before, and {self.display} takes new classes only "
                f"(observed so far: {list(self.classes_)}); {how}"
            )
        self._check_width(task.graph)

    @final
    def _check_again(self, again: bool) -> None:
        if again and has_noise(self):
            raise InputError(
                "with epsilon no batch is released twice: that would tell more of its nodes than "
                "epsilon allows; leave out again=True"
            )

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

    @final
    def _check_graph(self, graph: Graph) -> None:
        if not self.classes_:
            raise InputError("nothing was observed yet; call observe(task) before predicting")
        self._check_width(graph)

    @final
    def _check_width(self, graph: Graph) -> None:
        if graph.num_features != self.learned_.num_features:
            raise InputError(
                f"this graph has {graph.num_features} features per node, but "
                f"{self.learned_.num_features} were learned; give the same columns in the same "
                "order"
            )


def at_nodes(rows: Tensor, nodes: Tensor | None) -> Tensor:
    """Of a row per node those of these nodes; None takes all."""
    return rows if nodes is None else rows[nodes.to(rows.device)]


def _alarms(unknown: float) -> float:
    if not 0 < unknown < 1:
        raise InputError(
            f"unknown must be a false-alarm rate between 0 and 1, such as 0.05, not {unknown}"
        )
    return unknown


def _scaling(told: Any) -> Scaling | None:
    """What a state says of the units of columns."""
    try:
        return None if told is None else Scaling(*(tuple(map(float, each)) for each in told))
    except (TypeError, ValueError, InputError) as error:
        raise _unfit() from error


def _unfit() -> InputError:
    return InputError(
        "the state is damaged: its parts do not fit each other; restore it from a copy or learn "
        "again"
    )


def _index(task: Task, nodes: Sequence[int]) -> Tensor:
    return torch.tensor(nodes, dtype=torch.int64, device=task.graph.device)


def _isolating(task: Task, nodes: Sequence[int]) -> Task:
    return isolating(task, _index(task, nodes)) if nodes else task


def _same(nodes: Sequence[int], ids: tuple[Ids, Ids] | None, n: int) -> tuple[int, ...]:
    """Where some nodes of the one batch stand in the other of `n` nodes, as far as they do."""
    if not nodes or ids is None:
        return tuple(node for node in nodes if node < n)
    place = {str(name): i for i, name in enumerate(ids[1])}
    names = [str(ids[0][node]) for node in nodes]
    return tuple(place[name] for name in names if name in place)


def node_index(nodes: Nodes, graph: Graph) -> Tensor:
    """The numbers of some nodes of a graph."""
    return row_index(_as_tensor(nodes), graph.num_nodes, "node")


def _as_tensor(nodes: Nodes) -> Tensor:
    try:
        found = nodes if isinstance(nodes, Tensor) else torch.tensor(nodes)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"nodes must be a list or array of node numbers or a mask, not {nodes!r}"
        ) from error
    if found.dim() == 0:
        raise InputError(f"nodes must be a list of node numbers, not {nodes!r}; write [{nodes}]")
    return found
