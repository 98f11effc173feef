"""`Learner`: the contract of every method, and the part of it that all methods share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor

from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph
from undrift.sparse import row_index
from undrift.storage.state import State, pack, unpack
from undrift.streams.task import Task
from undrift.typing import Once, Progress, alone, silent

__all__ = ["Learned", "Learner"]


class Learned(Protocol):
    """What a method knows after some tasks: one frozen dataclass per method."""

    @property
    def classes(self) -> tuple[int, ...]:
        """Every class observed, in order of arrival: the columns of `scores`."""
        ...

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""
        ...


@dataclass(kw_only=True)
class Learner(ABC):
    """A method of class-incremental learning: observe tasks, classify every class ever seen.

    A method is a dataclass whose fields are its hyperparameters and that implements two pure
    functions: `_learn(task, progress)` returns what is known after the task without changing
    the learner, and `_scores(learned, graph)` reads from it. This class does the rest: checks,
    the single assignment that makes `observe` all or nothing, prediction, state, clone.

    `seed` is the only source of randomness. `device` is where tensors are computed. `once` is how
    work is done that several learners have in common: `alone`, or in the cache that a search
    hands to all of its learners (`evaluate_together`).
    """

    name: ClassVar[str]
    display: ClassVar[str]  # in tables and figures; the name without it
    family: ClassVar[str] = "other"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "-"  # what is kept, in a few words
    keeps_examples: ClassVar[bool] = False
    learned_type: ClassVar[type]
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {}  # what a search tries, by parameter

    seed: int = 0
    device: str = "cpu"
    learned_: Any = field(default=None, init=False, repr=False, compare=False)
    once: Once = field(default_factory=lambda: alone, init=False, repr=False, compare=False)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" in vars(cls) and "display" not in vars(cls):
            cls.display = cls.name

    # what a method implements ------------------------------------------------------------

    @abstractmethod
    def _learn(self, task: Task, progress: Progress) -> Learned:
        """What is known after `task`. Must not change `self`."""

    @abstractmethod
    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        """`[nodes, classes]` scores, larger is likelier, columns as in `learned.classes`."""

    def _scores_of(self, learned: Any, graph: Graph, nodes: Tensor) -> Tensor:
        """The same for some nodes; for a method that can spare the others' work."""
        scores = self._scores(learned, graph)
        return scores[nodes.to(scores.device)]

    def _kinds(self) -> Mapping[Any, type]:
        """Which class a protocol stands for in `learned_type`, such as a rule chosen by name."""
        return {}

    # the four verbs ----------------------------------------------------------------------

    def observe(self, task: Task, *, progress: Progress = silent) -> Self:
        """Learn a task; afterwards its data may be deleted. A rejected task changes nothing."""
        self._check_task(task)
        there = self.once(lambda: task.to(self.device), "task", task, self.device)
        self.learned_ = self._learn(there, progress)
        return self

    def scores(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """A score per node and class seen; columns in the order of `classes_`.

        `nodes`: only these, numbers or a mask; many methods do less work for fewer nodes.
        """
        self._check_graph(graph)
        with torch.no_grad():
            if nodes is None:
                return self._scores(self.learned_, graph).cpu()
            index = row_index(nodes, graph.num_nodes, "node")
            return self._scores_of(self.learned_, graph, index).cpu()

    def predict(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """A class id per node, or per node of `nodes`; never one that was not observed."""
        return torch.tensor(self.classes_)[self.scores(graph, nodes).argmax(dim=1)]

    def state(self) -> State:
        """Everything needed to go on, as named tensors and plain values."""
        tensors, values = pack(self.learned_) if self.learned_ is not None else ({}, {})
        on_cpu = {key: tensor.cpu() for key, tensor in tensors.items()}
        return State(self.name, self.params(), on_cpu, values)

    def nbytes(self) -> int:
        """Bytes of all tensors in `state()`: the size of what is kept."""
        if self.learned_ is None:
            return 0
        return sum(tensor.nbytes for tensor in pack(self.learned_)[0].values())

    def load(self, state: State) -> Self:
        """Go on from a state of the same method with the same hyperparameters."""
        if state.method != self.name:
            raise InputError(
                f"this state belongs to method {state.method!r}, not {self.name!r}; load it "
                f"into a {state.method!r} learner"
            )
        mine, theirs = self.params(), state.params
        for key in mine:
            if key != "device" and key in theirs and mine[key] != theirs[key]:
                raise InputError(
                    f"the state was learned with {key}={theirs[key]!r}, this learner has "
                    f"{key}={mine[key]!r}; build the learner with {key}={theirs[key]!r}"
                )
        learned = None
        if state.tensors or state.values:
            tensors = {key: tensor.to(self.device) for key, tensor in state.tensors.items()}
            learned = unpack(self.learned_type, tensors, state.values, kinds=self._kinds())
        self.learned_ = learned
        return self

    # what everyone may ask ---------------------------------------------------------------

    @property
    def classes_(self) -> tuple[int, ...]:
        """Every class observed so far, in order of arrival."""
        return () if self.learned_ is None else tuple(self.learned_.classes)

    def params(self) -> dict[str, Any]:
        """The hyperparameters as plain values; those of a part such as `backbone` stand beside.

        >>> from undrift.learners.bare import Bare
        >>> Bare().params()["epochs"]
        200
        """
        return _flat({f.name: getattr(self, f.name) for f in fields(self) if f.init})

    @classmethod
    def from_params(cls, **params: Any) -> Self:
        """The learner with these hyperparameters, parts' among them; an unknown one is named."""
        known = cls.defaults()
        for key in params:
            if key not in known:
                raise unknown_name(f"parameter of {cls.name}", key, known)
        given: dict[str, Any] = {}
        for f in fields(cls):
            part = _default(f)
            if is_dataclass(part) and not isinstance(part, type):
                inner = {g.name: params[g.name] for g in fields(part) if g.name in params}
                given[f.name] = replace(part, **inner)
            elif f.init and f.name in params:
                given[f.name] = params[f.name]
        return cls(**given)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Each hyperparameter with its default, as plain values."""
        return _flat({f.name: _default(f) for f in fields(cls) if f.init})

    def clone(self) -> Self:
        """A learner with the same hyperparameters that has observed nothing."""
        return type(self)(**{f.name: getattr(self, f.name) for f in fields(self) if f.init})

    # checks ------------------------------------------------------------------------------

    def _check_task(self, task: Task) -> None:
        if self.learned_ is None:
            return
        seen = [c for c in task.classes if c in self.classes_]
        if seen:
            raise InputError(
                f"class {seen[0]} was observed before; a task brings new classes only (observed "
                f"so far: {list(self.classes_)})"
            )
        self._check_width(task.graph)

    def _check_graph(self, graph: Graph) -> None:
        if self.learned_ is None:
            raise InputError("nothing was observed yet; call observe(task) before predicting")
        self._check_width(graph)

    def _check_width(self, graph: Graph) -> None:
        if graph.num_features != self.learned_.num_features:
            raise InputError(
                f"this graph has {graph.num_features} features per node, but "
                f"{self.learned_.num_features} were learned; give the same columns in the same "
                "order"
            )


def _default(f: Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


def _flat(params: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, value in params.items():
        if is_dataclass(value) and not isinstance(value, type):
            plain |= _flat({f.name: getattr(value, f.name) for f in fields(value)})
        else:
            plain[key] = list(value) if isinstance(value, tuple) else value
    return plain


def check_positive(**values: float) -> None:
    """Reject hyperparameters that must be greater than zero."""
    for name, value in values.items():
        if not value > 0:
            raise InputError(f"{name} must be greater than 0, not {value}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Reject a value that is not one of the choices, and print them."""
    if value not in choices:
        raise unknown_name(name, value, choices)
