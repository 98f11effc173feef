"""`AnyLearner`: what learners of graphs and of sessions share: their batches and their state."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, final

from undrift.errors import InputError
from undrift.learners.ledger import Ledger
from undrift.learners.old_states import as_of_today
from undrift.learners.parameters import Parameters
from undrift.learners.registry import recorded_name
from undrift.storage.state import State, pack, unpack

Verb = Literal["returns", "forgets", "merges"]
_BATCHES = "@batches"  # where the ledger is among the values of a state; no field is called so


@dataclass(kw_only=True)
class AnyLearner(Parameters):
    """A method with its hyperparameters, the batches that are in, and what it keeps of them.

    Its class says what it can do: `returns` (a batch may bring what is known), `forgets` (`forget`
    and `revise` are exact), `merges` (`merge` equals training on both). `verbs_need` is a setting
    without which it cannot, such as `cleansing=False`, and `why_not` the reason.

    `batches_`: which batches are in, so that none is counted or subtracted twice.
    """

    display: ClassVar[str]  # in tables and figures; the name without it
    family: ClassVar[str] = "other"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "-"  # what is kept, in a few words
    keeps_examples: ClassVar[bool] = False  # nodes as such; what sums give away: docs/privacy
    learns: ClassVar[str] = "graphs"
    returns: ClassVar[bool] = False
    forgets: ClassVar[bool] = False
    merges: ClassVar[bool] = False
    verbs_need: ClassVar[str] = ""
    why_not: ClassVar[str] = ""

    batches_: Ledger | None = field(default=None, init=False, repr=False, compare=False)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" in vars(cls) and "display" not in vars(cls):
            cls.display = cls.name

    def _empty(self) -> bool:
        """Whether nothing is known."""
        raise NotImplementedError

    @final
    def can(self, verb: Verb) -> bool:
        """Whether this learner `returns`, `forgets` or `merges`, its hyperparameters considered."""
        name, _, value = self.verbs_need.partition("=")
        return bool(getattr(self, verb)) and (not name or str(getattr(self, name)) == value)

    @final
    def _must(self, verb: Verb, what: str) -> None:
        if not self.can(verb):
            raise InputError(f"{self.display} cannot {what}; {self._way_out(verb)}")

    @final
    def _way_out(self, verb: Verb) -> str:
        """What to do about a verb that the learner does not have, at all or as it is set."""
        if getattr(self, verb):
            return f"{self.why_not}, set {self.verbs_need}"
        return self.why_not or "undrift methods lists those that can, such as propagation"

    @final
    def _ledger(self) -> Ledger:
        """The batches that are in; of what was learned without a ledger, none is known."""
        return self.batches_ or Ledger.empty(complete=self._empty())

    @final
    def _with_batches_of(
        self, other: Self, may_differ: Collection[str], *, again: bool | None
    ) -> Ledger:
        """The batches of both, if the other is of this method and these hyperparameters."""
        if type(other) is not type(self):
            mine, its = type(self).__name__, type(other).__name__
            way = f"give another {mine}, or observe(batch) for data"
            raise InputError(f"{mine} cannot merge with {its}; {way}")
        self._check_same_params(other.params(), "the other learner has", may_differ)
        return self._ledger().merged(other._ledger(), again=again)

    @final
    def _state(self, known: Any, values: dict[str, Any], *, batches: bool) -> State:
        """A state with what is known, the ledger if it is to be in it, and more values."""
        tensors, plain = pack(known) if known is not None else ({}, {})
        if self.batches_ is not None and batches:
            plain |= pack(self.batches_, _BATCHES)[1]
        on_cpu = {key: tensor.cpu() for key, tensor in tensors.items()}
        return State(recorded_name(type(self)), self.params(), on_cpu, plain | values)

    @final
    def _loaded(
        self, state: State, may_differ: Collection[str] = ()
    ) -> tuple[State, Ledger | None]:
        """The parts of a state of this method and these hyperparameters, and its ledger."""
        if state.method not in (self.name, recorded_name(type(self))):
            raise InputError(
                f"this state belongs to method {state.method!r}, not {self.name!r}; load it "
                f"into a {state.method!r} learner"
            )
        state = as_of_today(self, state)
        self._check_same_params(state.params, "the state was learned with", may_differ)
        values = dict(state.values)
        known = unpack(Ledger, {}, values, _BATCHES) if f"{_BATCHES}.@" in values else None
        return replace(state, values=values), known
