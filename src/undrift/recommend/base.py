"""`Recommender`: the verbs of every method that learns sums over sessions.

A method says three things, each a pure function: `_pairs` (what is kept of a batch), `_solve`
(what sums come to) and `_scores` (of histories). All verbs follow. `AdditiveLearner` has the same
verbs for nodes of graphs. Its checks, rows and states speak of graphs and of class numbers, so it
cannot carry sessions without bending. What both share is `Additive`, `Ledger`, `Parameters` and
the packed state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, final

import numpy as np
import torch
from torch import Tensor

from undrift.datasets.columns import as_text
from undrift.errors import InputError
from undrift.learners.ledger import Ledger
from undrift.learners.parameters import Parameters, check_positive
from undrift.machine import check_device
from undrift.recommend.interactions import Histories, Interactions, as_interactions
from undrift.recommend.sums import ItemSums, Pairs
from undrift.storage.files import load_state, save_state
from undrift.storage.state import State, pack, packed_bytes, unpack

LEAST_SESSIONS = 5
"""Sessions behind an item or a pair that a file shows by default."""

_BATCHES, _ITEMS, _GUARDED = "@batches", "@items", "@least_sessions"
_EXACTLY = "give the batch exactly as it was observed (nothing was changed)"


class Revised(NamedTuple):
    """How many sessions a change subtracted and added."""

    subtracted: int
    added: int


@dataclass(frozen=True, eq=False)
class Kept:
    """What is known: the names of columns, and sums per period ('' where age does not count)."""

    items: tuple[str, ...] = ()
    layers: dict[str, ItemSums] = field(default_factory=dict)

    def plus(self, other: Kept, sign: int = 1) -> Kept:
        """With other sums, aligned by name: new items get new columns, old ones do not move."""
        known = {name: i for i, name in enumerate(self.items)}
        items = self.items + tuple(name for name in other.items if name not in known)
        place = {name: i for i, name in enumerate(other.items)}
        columns = [place.get(name, -1) for name in items]
        layers = dict(self.layers)
        for age, sums in other.layers.items():
            there = layers.get(age, sums.emptied())
            moved = sums.select(columns)
            layers[age] = there + moved if sign > 0 else there - moved
        return Kept(items, {age: layers[age].grow(len(items)) for age in sorted(layers)})

    def checked(self) -> Kept:
        """Without items that no session stands behind; below zero is an error."""
        if any(sums.below_zero() for sums in self.layers.values()):
            raise InputError(
                "what is to be forgotten was never observed like this: fewer sessions than none "
                f"would be left; {_EXACTLY}"
            )
        counts = sum((s.counts for s in self.layers.values()), torch.zeros(len(self.items)))
        kept = torch.as_tensor(counts).nonzero().flatten().tolist()
        some = {age: sums for age, sums in self.layers.items() if sums.sessions}
        if len(kept) == len(self.items):
            return Kept(self.items, some)
        layers = {age: sums.select(kept) for age, sums in some.items()}
        return Kept(tuple(self.items[i] for i in kept), layers)


@dataclass(kw_only=True)
class Recommender(Parameters):
    """A method that recommends items: observe sessions, score every item ever seen.

    `summing` names the hyperparameters that sums depend on. They are fixed once something was
    observed. All others are choices made when solving and may be set at any time. `half_life`:
    after so many periods a session counts half. Then the sums of each period are kept apart, which
    costs a state per period; forgetting stays exact. `epsilon` is refused: there is no proof.

    >>> sorted(Recommender.__abstractmethods__)  # what a method must write
    ['_pairs', '_scores', '_solve']
    """

    name: ClassVar[str]
    display: ClassVar[str]
    family: ClassVar[str] = "recommend"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "sums over pairs of items"
    keeps_examples: ClassVar[bool] = False
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True  # whether a set of items, such as a graph's, is no session
    summing: ClassVar[tuple[str, ...]] = ()

    half_life: float | None = None
    epsilon: float | None = None
    device: str = "cpu"
    kept_: Kept = field(default_factory=Kept, init=False, repr=False, compare=False)
    batches_: Ledger | None = field(default=None, init=False, repr=False, compare=False)
    guarded_: int = field(default=1, init=False, repr=False, compare=False)
    _solution: Any = field(default=None, init=False, repr=False, compare=False)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "device" and isinstance(value, str):
            check_device(value)
        if name == "epsilon" and value is not None:
            raise InputError(
                f"{self.display} has no proof for epsilon={value!r}: one session changes many "
                "pairs; leave epsilon out, and keep rare pairs out of files with least_sessions"
            )
        if self._items_known():
            was = getattr(self, name, None)
            layered = name == "half_life" and (was is None) != (value is None)
            if (name in self.summing and value != was) or layered:
                raise InputError(
                    f"{name} cannot become {value!r}: the sums were made with {was!r}; set it on "
                    "clone(), which has observed nothing"
                )
        super().__setattr__(name, value)
        if name == "half_life" and value is not None:
            check_positive(half_life=value)
        if name != "_solution" and not name.startswith("batches"):
            object.__setattr__(self, "_solution", None)

    # what a method implements ------------------------------------------------------------

    @abstractmethod
    def _pairs(self, batch: Interactions) -> dict[str, Pairs]:
        """Matrices over the items of a batch. Where there are pairs, `together` is among them."""

    @abstractmethod
    def _solve(self, sums: ItemSums) -> Any:
        """What sums come to. They are whole numbers, or float64 with a half-life."""

    @abstractmethod
    def _scores(self, solution: Any, histories: Histories) -> Tensor:
        """`[histories, items]`; histories hold places of columns."""

    # the verbs ---------------------------------------------------------------------------

    def observe(self, batch: Any, *, again: bool = False) -> Self:
        """Learn sessions; afterwards their rows may be deleted. A rejected batch changes nothing.

        `batch`: anything that `as_interactions` takes. One that is in already is an error, unless
        `again=True`. Cost: the pairs of the batch, and a pass over the sums.
        """
        clicks = as_interactions(batch)
        known = self._ledger().observed(clicks.digest, again=again)
        self.kept_, self.batches_ = self.kept_.plus(self._sums(clicks)), known
        return self

    def forget(
        self,
        batch: Any,
        sessions: Iterable[str] | None = None,
        *,
        users: Iterable[str] | None = None,
        items: Iterable[str] | None = None,
        again: bool = False,
    ) -> Self:
        """Be as if this batch, or only these of its sessions, had never been observed.

        `batch` is given as it was observed: nothing per session is kept. `users`: all their
        sessions. `items`: all clicks on these; what is left is learned as if they had not been.
        Cost: the pairs of what is forgotten, and a pass over the sums.
        """
        self._check_whole()
        clicks = as_interactions(batch)
        if items is not None:
            if sessions is not None or users is not None:
                raise InputError("forget sessions or items, one after the other; give one of them")
            self.revise(clicks, clicks.without(items=items), again=again)
            return self
        ledger = self._ledger()
        some = sessions is not None or users is not None
        asked = clicks.places(sessions or (), users or ())
        places = np.flatnonzero(asked).tolist()
        held = ledger.find(clicks.digest, places, again=again)
        out = set() if held is None else {*ledger.gone(held, clicks.digest)}
        twice = [place for place in places if place in out]
        if twice and not again:
            raise InputError(
                f"session {str(clicks.sessions[twice[0]])!r} was taken out of this batch already; "
                "leave it out, or say again=True to pass over such sessions (nothing was changed)"
            )
        gone = asked if some else np.ones_like(asked)
        gone[list(out)] = False
        if some and not gone.any():
            return self
        left = ~gone
        left[list(out)] = False
        kept = self._less(clicks.among(gone)) if gone.any() else self.kept_
        if left.any():
            rest = clicks.among(left).digest
            known = ledger.without(clicks.digest, held, {*out, *places}, rest)
        else:
            known = ledger.forgotten(held)
        self.kept_, self.batches_ = kept, known
        return self

    def revise(self, before: Any, after: Any, *, again: bool = False) -> Revised:
        """Put a corrected batch in the place of one that was observed.

        Only sessions that differ are subtracted and added. Sessions that were taken out stay out.
        """
        self._check_whole()
        was, now = as_interactions(before), as_interactions(after)
        ledger = self._ledger()
        held = ledger.find(was.digest, again=again)
        out = () if held is None else ledger.gone(held, was.digest)
        names = set(was.sessions[list(out)].tolist())
        still = [i for i, name in enumerate(now.sessions.tolist()) if name in names]
        known = ledger.revised(held, now.digest, still, again=again)
        old, new = _contents(was), _contents(now)
        gone, come = (
            np.array([n not in names and mine[n] != other.get(n) for n in mine], bool)
            for mine, other in ((old, new), (new, old))
        )
        kept = self.kept_
        if come.any():
            kept = kept.plus(self._sums(now.among(come)))
        if gone.any():
            kept = kept.plus(self._sums(was.among(gone)), -1)
        self.kept_, self.batches_ = kept.checked(), known
        return Revised(int(gone.sum()), int(come.sum()))

    def merge(self, other: Self, *, again: bool = False) -> Self:
        """Add all that another learner knows, such as that of another shop; items meet by name."""
        if type(other) is not type(self):
            raise InputError(f"{self.display} merges with {self.display}, not {other!r}")
        for name in self.summing:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise InputError(
                    f"the two learners have {name}={mine!r} and {name}={theirs!r}, so their sums "
                    "mean different things; build both with one value"
                )
        if (self.half_life is None) != (other.half_life is None):
            raise InputError("one learner keeps periods apart and the other not; set half_life")
        known = self._ledger().merged(other._ledger(), again=again)
        self.kept_, self.batches_ = self.kept_.plus(other.kept_), known
        self.guarded_ = max(self.guarded_, other.guarded_)
        return self

    # reading -----------------------------------------------------------------------------

    @property
    def items_(self) -> tuple[str, ...]:
        """Every item that a session stands behind; the columns of `scores`."""
        return self.kept_.items

    @property
    def sessions_(self) -> int:
        """How many sessions are in."""
        return sum(sums.sessions for sums in self.kept_.layers.values())

    @final
    def sums(self) -> ItemSums:
        """All sums as one; with a half-life in float64, each period by its age."""
        if not self.kept_.layers:
            raise InputError("nothing was observed yet; call observe(interactions) first")
        layers = {age: sums.grow(len(self.items_)) for age, sums in self.kept_.layers.items()}
        if self.half_life is not None:
            newest = max(map(int, layers))
            for age, sums in layers.items():
                layers[age] = sums.scaled(0.5 ** ((newest - int(age)) / self.half_life))
        first, *others = layers.values()
        return sum(others, first)

    def settle(self) -> Self:
        """Solve what was put off; reading does it too."""
        if self._solution is None:
            self._solution = self._solve(self.sums())
        return self

    def scores(self, histories: Histories | Interactions | Sequence[Sequence[str]]) -> Tensor:
        """A score per history and item, `[n, items]`; columns as in `items_`.

        Items that are not known are passed over. A history without a known item has zeros.
        """
        self.settle()
        columns = {name: i for i, name in enumerate(self.items_)}
        with torch.no_grad():
            return self._scores(self._solution, Histories.of(histories).at(columns))

    def recommend(
        self,
        history: Sequence[str],
        k: int = 20,
        exclude: Collection[str] | Literal["history"] | None = None,
    ) -> list[tuple[str, float]]:
        """The k items with the largest scores, the best first, each with its score.

        `exclude`: items to leave out, or "history" for those of the history. Without a known item
        in the history there is nothing to go by, and the list is empty.
        """
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        if not {*map(as_text, history)} & {*self.items_}:
            self.sums()  # which says if nothing was observed
            return []
        if isinstance(exclude, str) and exclude != "history":
            raise InputError(f"exclude is a list of items or 'history', not {exclude!r}")
        left_out = {*map(as_text, history if isinstance(exclude, str) else exclude or ())}
        scores = self.scores([history])[0].cpu()
        order = scores.argsort(descending=True, stable=True).tolist()
        found = [(self.items_[i], float(scores[i])) for i in order[: k + len(left_out)]]
        return [each for each in found if each[0] not in left_out][:k]

    # what is kept ------------------------------------------------------------------------

    def state(self, *, least_sessions: int = 1) -> State:
        """Everything needed to go on, as named tensors and plain values.

        `least_sessions`: without the items and pairs that fewer sessions stand behind, in each
        period. Nothing can be forgotten from such a state.
        """
        kept = self.kept_
        if least_sessions > 1:
            layers = {age: sums.guarded(least_sessions) for age, sums in kept.layers.items()}
            kept = Kept(kept.items, layers).checked()
        tensors, values = pack(kept.layers)
        if self.batches_ is not None:
            values |= pack(self.batches_, _BATCHES)[1]
        values[_ITEMS], values[_GUARDED] = list(kept.items), max(self.guarded_, least_sessions)
        return State(self.name, self.params(), tensors, values)

    def load(self, state: State) -> Self:
        """Go on from a state of the same method; choices made when solving may differ."""
        if state.method != self.name:
            raise InputError(
                f"this state belongs to method {state.method!r}, not {self.name!r}; load it into "
                f"a {state.method!r} learner"
            )
        solving = {*self.params()} - {*self.summing}
        self._check_same_params(state.params, "the state was learned with", solving)
        values = dict(state.values)
        items, guarded = values.pop(_ITEMS, None), values.pop(_GUARDED, 1)
        known = unpack(Ledger, {}, values, _BATCHES) if f"{_BATCHES}.@" in values else None
        layers: dict[str, ItemSums] = unpack(dict[str, ItemSums], state.tensors, values)
        names = isinstance(items, list) and all(isinstance(name, str) for name in items)
        if not names or len({*items}) != len(items) or type(guarded) is not int:
            raise InputError(
                "the state is damaged: its items have no names; restore it from a copy or learn "
                "again"
            )
        if (self.half_life is None) != (set(layers) <= {""}) and layers:
            raise InputError("the state keeps periods apart or not, and this learner the other way")
        for sums in layers.values():
            for pairs in sums.pairs.values():
                pairs.check(len(items))
        self.kept_ = Kept()  # so that nothing known is in the way of what comes
        self.kept_, self.batches_ = Kept(tuple(items), layers), known
        self.guarded_ = guarded
        return self

    def save(self, path: str | Path, *, least_sessions: int = LEAST_SESSIONS) -> None:
        """Write the learner as one file, whole or not at all; `opened` reads it.

        By default items and pairs of fewer than 5 sessions are left out, as they would give
        sessions away. `least_sessions=1` writes everything: needed to go on forgetting.
        """
        save_state(path, self.state(least_sessions=least_sessions))

    @classmethod
    def opened(cls, path: str | Path, *, device: str = "cpu") -> Self:
        """The learner in a file that `save` wrote."""
        state = load_state(path)
        return cls.from_params(**{**state.params, "device": device}).load(state)

    def nbytes(self) -> int:
        """Bytes of all sums, as a file has them."""
        return packed_bytes(self.kept_.layers)

    # inside ------------------------------------------------------------------------------

    @final
    def _sums(self, batch: Interactions) -> Kept:
        """The sums of a batch, per period where age counts."""
        if self.needs_order and not batch.ordered:
            raise InputError(
                f"these sessions are sets without an order, and {self.display} learns from the "
                "order of clicks; give a time for each, or take Ease"
            )
        if self.half_life is not None and batch.periods is None:
            raise InputError(
                "half_life counts in periods, and these interactions have none; name the column, "
                "as in as_interactions(table, period='month')"
            )
        kept = Kept()
        periods = None if self.half_life is None else batch.periods
        for age in [None] if periods is None else np.unique(periods).tolist():
            part = batch if age is None else batch.among(periods == age)
            layer = {"" if age is None else str(age): ItemSums.of(part, self._pairs(part))}
            kept = kept.plus(Kept(tuple(part.items.tolist()), layer))
        return kept

    @final
    def _less(self, batch: Interactions) -> Kept:
        return self.kept_.plus(self._sums(batch), -1).checked()

    @final
    def _ledger(self) -> Ledger:
        return self.batches_ or Ledger.empty(complete=not self._items_known())

    @final
    def _items_known(self) -> bool:
        return bool(getattr(self, "kept_", None) and self.kept_.items)

    @final
    def _check_whole(self) -> None:
        if not self._items_known():
            raise InputError("nothing was observed yet, so there is nothing to forget or revise")
        if self.guarded_ > 1:
            raise InputError(
                f"this state lacks the pairs of fewer than {self.guarded_} sessions, so nothing "
                "can be taken out of it exactly; forget in the whole state, which "
                "save(path, least_sessions=1) writes, and write this one again"
            )


def _contents(batch: Interactions) -> dict[str, Any]:
    """What each session is learned as, by its name."""
    names, starts = batch.items[batch.item].tolist(), batch.starts.tolist()
    periods = [None] * len(batch.sessions) if batch.periods is None else batch.periods.tolist()
    return {
        name: (names[starts[i] : starts[i + 1]], periods[i])
        for i, name in enumerate(batch.sessions.tolist())
    }
