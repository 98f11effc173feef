"""`Recommender`: all verbs of a method that learns sums over sessions, out of three functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, final

import numpy as np
import torch
from torch import Tensor

from undrift.analytic.additive import arranged
from undrift.cells import fits
from undrift.checks import checked
from undrift.errors import InputError
from undrift.learners.any_learner import AnyLearner
from undrift.learners.ledger import Ledger, check_still_in
from undrift.learners.parameters import Device, PositiveInt, PositiveOrNone, Seed
from undrift.learners.reading import EXACT
from undrift.recommend.interactions import Array, Histories, Interactions, as_interactions, as_name
from undrift.recommend.sums import TOGETHER, ItemSums, Pairs, sessions_by_items
from undrift.storage.files import load_state, save_state
from undrift.storage.state import State, packed_bytes, unpack

LEAST_SESSIONS = 5  # behind an item or a pair that a file shows by default
_ITEMS, _GUARDED = "@items", "@least_sessions"
_AT_ONCE = 2**22  # scores of recommendations in memory at a time

Exclude = Collection[str] | Literal["history"] | None
AnyHistories = Histories | Interactions | Sequence[Sequence[str]]


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
        items = tuple(dict.fromkeys((*self.items, *other.items)))
        layers = dict(self.layers)
        for age, sums in other.over(items).layers.items():
            there = layers.get(age, sums.emptied())
            layers[age] = there + sums if sign > 0 else there - sums
        return Kept(items, {age: layers[age].grow(len(items)) for age in sorted(layers)})

    def over(self, items: tuple[str, ...]) -> Kept:
        """With a column for each of these items, in their order."""
        return Kept(items, {k: arranged(s, self.items, items) for k, s in self.layers.items()})

    def checked(self) -> Kept:
        """Without items that no session stands behind; below zero is an error."""
        if any(sums.overdrawn() for sums in self.layers.values()):
            raise InputError(
                "what is to be forgotten was never observed like this: fewer sessions than none "
                "would be left; give the batch exactly as it was observed (nothing was changed)"
            )
        some = {age: sums for age, sums in self.layers.items() if sums.sessions}
        counts = sum((sums.counts for sums in some.values()), torch.zeros(len(self.items)))
        return Kept(self.items, some).over(tuple(self.items[i] for i in counts.nonzero().flatten()))


@dataclass(kw_only=True)
class Recommender(AnyLearner):
    """A method that recommends items: observe sessions, score every item ever seen.

    `summing` names the hyperparameters that sums depend on. They are fixed once something was
    observed. All others are choices made when solving and may be set at any time. `half_life`:
    after so many periods a session counts half. A period is a batch (`Interactions.in_period`) or
    a span of time (`as_interactions(..., period=30)`). The sums of each period are kept apart,
    which costs a state per period. So forgetting stays exact, and `half_life` can be changed.
    `epsilon` is refused: there is no proof.

    >>> Recommender.forgets, Recommender.merges, sorted(Recommender.__abstractmethods__)
    (True, True, ['_scores', '_solve'])
    """

    family: ClassVar[str] = "recommend"
    keeps: ClassVar[str] = "sums over pairs of items"
    learns: ClassVar[str] = "sessions"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True  # whether a set of items, such as a graph's, is no session
    summing: ClassVar[tuple[str, ...]] = ()

    half_life: PositiveOrNone = None
    epsilon: float | None = None
    seed: Seed = 0  # of the run; nothing here is random
    device: Device = "cpu"
    kept_: Kept = field(default_factory=Kept, init=False, repr=False, compare=False)
    guarded_: int = field(default=1, init=False, repr=False, compare=False)
    _solution: Any = field(default=None, init=False, repr=False, compare=False)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "epsilon" and value is not None:
            raise InputError(
                f"{self.display} has no proof for epsilon={value!r}: one session changes many "
                "pairs; leave epsilon out, and keep rare pairs out of files with least_sessions"
            )
        if getattr(self, "kept_", None) and self.items_:
            was = getattr(self, name, None)
            layered = name == "half_life" and (was is None) != (value is None)
            if (name in self.summing and value != was) or layered:
                raise InputError(
                    f"{name} cannot become {value!r}: the sums were made with {was!r}; set it on "
                    "clone(), which has observed nothing"
                )
        super().__setattr__(name, value)
        if name != "_solution" and not name.startswith("batches"):
            object.__setattr__(self, "_solution", None)

    # what a method implements, as pure functions -----------------------------------------

    def _pairs(self, batch: Interactions) -> dict[str, Pairs]:
        """What is kept of a batch: matrices over its items. If there are any, one is `together`.

        Where fewer sessions may stand behind a number of `name`, `name_sessions` counts them.
        """
        clicked = sessions_by_items(batch)
        return {TOGETHER: Pairs.of(clicked.T @ clicked, symmetric=True)}

    @abstractmethod
    def _solve(self, sums: ItemSums) -> Any:
        """What sums come to. They are whole numbers, or float64 with a half-life."""

    @abstractmethod
    def _scores(self, solution: Any, histories: Histories) -> Tensor:
        """`[histories, items]`; histories hold places of columns."""

    def _by_age(self) -> Array:
        """What a click counts as a part of a history, the last one first; 0 beyond."""
        settings = self.params()
        if "query_decay" not in settings:
            raise InputError(f"{self.display} has no way to explain its scores")
        return np.asarray(np.exp(-np.arange(settings["last"]) / settings["query_decay"]))

    def _weights(self, history: Sequence[str]) -> list[float]:
        """What each of these known items, oldest first, counts as a part of a history."""
        weights = [*self._by_age()[: len(history)][::-1]]
        return [0.0] * (len(history) - len(weights)) + weights

    # the verbs ---------------------------------------------------------------------------

    def observe(self, batch: Any, *, again: bool = False) -> Self:
        """Learn sessions; afterwards their rows may be deleted. A rejected batch changes nothing.

        `batch`: anything that `as_interactions` takes. One that is in already is an error, unless
        `again=True`. Cost: the pairs of the batch, and a pass over the sums.
        """
        clicks = self._learnable(as_interactions(batch))
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
        some, ledger = sessions is not None or users is not None, self._ledger()
        every = np.arange(len(clicks.sessions))
        asked = every[clicks.places(sessions, users)] if some else every
        held, out = ledger.find(clicks.digest, asked.tolist(), again=again)
        names = clicks.sessions.tolist() if some else None
        gone = check_still_in(asked.tolist(), out, again=again or not some, names=names)
        if some and not gone:
            return self
        away = np.isin(every, [*out, *gone])
        known = ledger.forgotten(held)
        if not away.all():
            left = clicks.among(~away).digest
            known = ledger.exchanged(held, clicks.digest, every[away].tolist(), left, again=True)
        self._exchange(clicks.among(np.isin(every, gone)), None, known)
        return self

    def revise(self, before: Any, after: Any, *, again: bool = False) -> Revised:
        """Put a corrected batch in the place of one that was observed.

        Only sessions that differ are subtracted and added. Sessions that were taken out stay out.
        """
        self._check_whole()
        was, now = as_interactions(before), self._learnable(as_interactions(after))
        ledger = self._ledger()
        held, earlier = ledger.find(was.digest, again=again)
        out = list(earlier)
        still = np.isin(now.sessions, was.sessions[out])  # given, and to stay out
        known, left = ledger.forgotten(held), now.among(~still)
        if not still.all():
            places = np.flatnonzero(still).tolist()
            known = ledger.exchanged(held, now.digest, places, left.digest, again=again)
        old, new = _contents(was), _contents(left)
        come = np.array([new[name] != old.get(name) for name in new], bool)
        gone = np.array([old[name] != new.get(name) for name in old], bool)
        gone[out] = False
        self._exchange(was.among(gone), left.among(come), known)
        return Revised(int(gone.sum()), int(come.sum()))

    @final
    def _exchange(self, before: Interactions, after: Interactions | None, batches: Ledger) -> None:
        """Put sessions in the place of others, all of it or nothing."""
        kept = self.kept_ if after is None else self.kept_.plus(self._sums(after))
        self.kept_ = kept.plus(self._sums(before), -1).checked()
        self.batches_ = batches

    def merge(self, other: Self, *, again: bool = False, guarded: bool = False) -> Self:
        """Add all that another learner knows, such as that of another shop; items meet by name.

        After merging one of a guarded file nothing can be forgotten, so `guarded=True` must say
        that it is meant.
        """
        known = self._with_batches_of(other, self._solving, again=again)
        if (self.half_life is None) != (other.half_life is None):
            raise InputError("one learner keeps periods apart and the other not; set half_life")
        if self.items_ and other.guarded_ > self.guarded_ and not guarded:
            raise InputError(
                "the other learner is of a guarded file: after merging, nothing could be forgotten "
                "here; merge both into a new learner, or say guarded=True (nothing was changed)"
            )
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

    @property
    def counts_(self) -> Tensor:
        """How many sessions stand behind each item; without a half-life, whatever there is."""
        counts = (sums.counts for sums in self.kept_.layers.values())
        return sum(counts, torch.zeros(len(self.items_), dtype=torch.int64))

    @final
    def sums(self) -> ItemSums:
        """All sums as one; with a half-life in float64, each period by its age."""
        layers = dict(self.kept_.layers)
        if not layers:
            raise InputError("nothing is known: observe sessions first (or all were forgotten)")
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

    def expect(self, histories: AnyHistories) -> Self:
        """`settle`, and solve at once what scoring these histories, some at a time, will need."""
        return self.settle()

    def scores(self, histories: AnyHistories) -> Tensor:
        """A score per history and item, `[n, items]`; columns as in `items_`.

        Items that are not known are passed over. A history without a known item has zeros.
        """
        self.settle()
        with torch.no_grad():
            return self._scores(self._solution, Histories.of(histories).at(self.items_))

    def recommend(
        self, history: Sequence[str], k: int = 20, exclude: Exclude = None
    ) -> list[tuple[str, float]]:
        """The k items with the largest scores, the best first, each with its score.

        Scores that differ by rounding alone (by `EXACT` of the largest) are ties, which go by name.
        `exclude`: items to leave out, or "history" for those of the history. Without a known item
        in the history there is nothing to go by, and the list is empty.
        """
        if isinstance(history, str):
            raise InputError(f"a history is a list of items, as in [{history!r}]")
        return next(self.recommendations([history], k, exclude))

    def recommendations(
        self, histories: AnyHistories, k: int = 20, exclude: Exclude = None
    ) -> Iterator[list[tuple[str, float]]]:
        """What `recommend` says of each of many histories, some hundred at a time."""
        checked("k", PositiveInt, k)
        one_text = isinstance(exclude, str) and exclude != "history"
        if one_text or not isinstance(exclude, Iterable | None):
            raise InputError(f"exclude is a list of items or 'history', not {exclude!r}")
        self.settle()  # which says if nothing was observed
        asked, known = Histories.of(histories), {*self.items_}
        by_name = torch.tensor(np.argsort(np.argsort(np.array(self.items_, dtype=object))))
        always = set() if isinstance(exclude, str | None) else {*map(as_name, exclude)}
        width = max(1, _AT_ONCE // max(1, len(known)))
        for start in range(0, len(asked), width):
            for place, scores in enumerate(self.scores(asked[start : start + width]).cpu(), start):
                history = {*asked.names(place)}
                out = history if isinstance(exclude, str) else always
                order = ranked(scores, k + len(out), by_name) if history & known else []
                found = [(self.items_[i], float(scores[i])) for i in order]
                yield [each for each in found if each[0] not in out][:k]

    def explain(self, history: Sequence[str], item: str) -> list[tuple[str, float]]:
        """What each click of the history adds to the score of an item, oldest first.

        They add up to the score. Unknown items and clicks that do not count add 0. Cost: a
        solution per click.

        >>> from undrift.recommend import NextItem, as_interactions
        >>> shop = NextItem().observe(as_interactions((["s", "s"], ["tea", "cup"])))
        >>> [(name, round(score, 3)) for name, score in shop.explain(["pen", "tea"], "cup")]
        [('pen', 0.0), ('tea', 0.012)]
        """
        self.settle()
        if (item := as_name(item)) not in self.items_:
            raise InputError(f"item {item!r} is not known; items_ lists those that are")
        names, known = Histories.of([history]).names(0), {*self.items_}
        clicks = [name for name in names if name in known]
        alone = self.scores([[name] for name in clicks])[:, self.items_.index(item)]
        weights = torch.tensor(self._weights(clicks), dtype=torch.float64)
        parts = iter((weights * alone.double().cpu()).tolist())
        return [(name, next(parts) if name in known else 0.0) for name in names]

    # what is kept ------------------------------------------------------------------------

    def state(self, *, least_sessions: int = 1, batches: bool = True) -> State:
        """Everything needed to go on, as named tensors and plain values.

        `batches=False`: without the list of batches, for whoever keeps one.
        `least_sessions`: without the items and pairs that fewer sessions stand behind, in each
        period, and without the list of batches. Nothing can be forgotten from such a state, and a
        batch that is in is not recognised.
        """
        kept = self.kept_
        if checked("least_sessions", PositiveInt, least_sessions) > 1:
            layers = {age: sums.guarded(least_sessions) for age, sums in kept.layers.items()}
            kept = Kept(kept.items, layers).checked()
            kept = kept.over(tuple(sorted(kept.items)))  # which tells nothing of when they came
        values = {_ITEMS: list(kept.items), _GUARDED: max(self.guarded_, least_sessions)}
        # a guess of a small batch could be compared with the list
        return self._state(kept.layers, values, batches=batches and least_sessions == 1)

    def load(self, state: State) -> Self:
        """Go on from a state of the same method; choices made when solving may differ."""
        state, known = self._loaded(state, self._solving)
        values = state.values
        items, guarded = values.pop(_ITEMS, None), values.pop(_GUARDED, 1)
        layers: dict[str, ItemSums] = unpack(dict[str, ItemSums], state.tensors, values)
        names = isinstance(items, list) and all(isinstance(name, str) for name in items)
        ages = all(fits(int, age) for age in layers if age)
        if not names or len({*items}) != len(items) or type(guarded) is not int or not ages:
            raise InputError(
                "the state is damaged: its items have no names; restore it from a copy or learn "
                "again"
            )
        if (self.half_life is None) != (set(layers) <= {""}) and layers:
            raise InputError("the state keeps periods apart or not, and this learner the other way")
        for sums in layers.values():
            sums.check(len(items))
        self.kept_, self.batches_, self.guarded_ = Kept(tuple(items), layers), known, guarded
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

    def _takes_sets(self) -> bool:
        return not self.needs_order

    @final
    def _learnable(self, batch: Interactions) -> Interactions:
        if not batch.ordered and not self._takes_sets():
            raise InputError(
                f"these sessions are sets without an order, and {self.display} learns from the "
                "order of clicks; give a time for each, or take Ease or NextItem(mix=1.0)"
            )
        return batch

    @final
    def _sums(self, batch: Interactions) -> Kept:
        """The sums of a batch, per period where age counts."""
        if self.half_life is None:
            parts = {"": batch}
        elif batch.periods is None:
            raise InputError(
                "half_life counts in periods, and these interactions have none; name the column "
                "or a span of time, as in as_interactions(table, period='month'), or number the "
                "batches with in_period(3)"
            )
        else:
            ages = np.unique(batch.periods)
            parts = {str(age): batch.among(batch.periods == age) for age in ages}
        layers = (
            Kept(tuple(part.items.tolist()), {age: ItemSums.of(part, self._pairs(part))})
            for age, part in parts.items()
        )
        return reduce(Kept.plus, layers, Kept())

    @final
    def _empty(self) -> bool:
        return not self.items_

    @property
    def _solving(self) -> set[str]:
        """The hyperparameters that sums do not depend on."""
        return {*self.params()} - {*self.summing}

    @final
    def _check_whole(self) -> None:
        if not self.items_:
            raise InputError("nothing is known, so there is nothing to forget or revise")
        if self.guarded_ > 1:
            raise InputError(
                f"this state lacks the pairs of fewer than {self.guarded_} sessions, so nothing "
                "can be taken out of it exactly; forget in the whole state, which "
                "save(path, least_sessions=1) writes, and write this one again"
            )


def ranked(scores: Tensor, count: int, ties: Tensor) -> list[int]:
    """The places of so many of the largest scores, the best first; `ties`: who is first of equals.

    >>> ranked(torch.tensor([0.5, 0.7, 0.7]), 2, torch.tensor([0, 2, 1]))
    [2, 1]
    """
    order = scores.argsort(descending=True)
    found = scores[order]
    falls = found[:-1] - found[1:] > EXACT * scores.abs().max()
    group = torch.cat([falls.new_zeros(1), falls]).cumsum(0)
    some = group <= group[:count][-1]  # all that tie with the last
    key = group[some] * len(scores) + ties[order[some]]
    places: list[int] = order[some][key.argsort()[:count]].tolist()
    return places


def _contents(batch: Interactions) -> dict[str, Any]:
    """What each session is learned as, by its name."""
    lists, periods = Histories.of(batch), batch.periods
    return {
        name: (lists.names(i), None if periods is None else int(periods[i]))
        for i, name in enumerate(batch.sessions.tolist())
    }
