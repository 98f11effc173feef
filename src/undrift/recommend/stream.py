"""`SessionStream`: sessions that arrive period by period, from a table, a file or a generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from undrift.cells import days
from undrift.datasets.archives import open_npz
from undrift.errors import InputError
from undrift.recommend.interactions import Interactions, as_interactions
from undrift.streams.arrival import Arrival, parse_arrival, place_of
from undrift.streams.split import starts_of

if TYPE_CHECKING:
    from undrift.streams.benchmarks import StreamInfo
    from undrift.streams.file import StreamFile


class PeriodSummary(NamedTuple):
    """A line of the table about a stream of sessions; `new` are items that no period had before."""

    period: int
    sessions: int
    clicks: int
    items: int
    new: int
    cases: int


@dataclass(frozen=True, eq=False)
class SessionStream:
    """Sessions in periods P_0, P_1, ..., each the sessions that began in it.

    Step t learns all before period t + 1 and is tested on that: so there is one step less than
    periods. With `batch`, a step tests and then learns so many sessions at a time, oldest first.

    >>> stream = SessionStream.of((list("sstt"), ["tea", "cup", "tea", "pot"]), periods=2)
    >>> len(stream), [clicks.sessions.tolist() for clicks in stream.periods]
    (1, [['s'], ['t']])
    """

    holds: ClassVar[str] = "sessions"
    evaluator: ClassVar[str] = "undrift.evaluation.ranking:evaluate_ranking"
    overview: ClassVar[str] = "undrift.reporting.terminal:shown_periods"
    returning: ClassVar[bool] = False

    periods: tuple[Interactions, ...]
    name: str = "custom"
    seed: int = 0
    provenance: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None

    def __post_init__(self) -> None:
        if len(self.periods) < 2:
            raise InputError(
                f"stream {self.name!r} has {len(self.periods)} period, so nothing can be tested "
                "after it was learned; give at least two"
            )

    @classmethod
    def of(
        cls, clicks: Any, periods: int | Sequence[float] | None = None, **about: Any
    ) -> SessionStream:
        """By the period of each session, or by the time of its first click.

        `clicks`: anything that `as_interactions` takes. `periods`: how many of equal length reach
        from the first to the last time, or the times at which new ones start. One without a
        session is left out. `about`: name, seed, provenance.
        """
        known = as_interactions(clicks)
        number = known.periods
        if periods is not None:
            first = known.time[known.starts[:-1]]
            number = np.searchsorted(starts_of(first, periods)[1:], first, "right")
        if number is None:
            raise InputError(
                "these sessions do not say in which period they are; name the column, as in "
                "period='month', or give periods=12 to cut the times"
            )
        return cls(tuple(known.among(number == one) for one in np.unique(number)), **about)

    def __len__(self) -> int:
        return len(self.periods) - 1

    def __repr__(self) -> str:
        return f"SessionStream({self.name!r}, {len(self.periods)} periods)"

    def arranged(self, arrival: Arrival | str) -> Self:
        """Whole periods, or `online:batch=64`: so many sessions at a time."""
        how = parse_arrival(arrival) if isinstance(arrival, str) else arrival
        if not how.returns:
            return self
        if how.name != "online":
            raise InputError(
                f"sessions cannot arrive by {str(how)!r}; leave it out for whole periods, or take "
                "online:batch=64"
            )
        provenance, batch = {**self.provenance, "arrival": str(how)}, how.options["batch"]
        return replace(self, batch=batch, name=place_of(self.name, str(how)), provenance=provenance)

    def imbalance(self) -> None:
        """Sessions have no classes."""

    def saved_split(self) -> None:
        """There is nothing to keep: the periods are those of the data."""

    def batches(self, period: int) -> Iterator[Interactions]:
        """The sessions of a period as they arrive."""
        clicks = self.periods[period]
        if self.batch is None or period == 0:  # what a first test is about must be known
            yield clicks
            return
        place = np.argsort(clicks.by_time) // self.batch
        yield from (clicks.among(place == k) for k in range(int(place.max()) + 1))

    def first_periods(self) -> dict[str, int]:
        """The period in which each item first appears."""
        backwards = reversed([*enumerate(self.periods)])
        return {name: t for t, clicks in backwards for name in clicks.items.tolist()}

    def describe(self) -> list[PeriodSummary]:
        """A summary per period."""
        first = list(self.first_periods().values())
        return [
            PeriodSummary(t, *sizes, first.count(t), sizes[1] - sizes[0])
            for t, clicks in enumerate(self.periods)
            if (sizes := (len(clicks.sessions), len(clicks), len(clicks.items)))
        ]


def named_stream(info: StreamInfo, seed: int) -> SessionStream:
    """The stream of an entry of the catalogue, with the published counts."""
    clicks, provenance = info.load_graph()
    return SessionStream.of(clicks, name=info.name, seed=seed, provenance=provenance)


def stream_of_file(file: StreamFile, about: Mapping[str, Any]) -> SessionStream:
    """The stream of a `stream.toml` with a section `[sessions]`."""
    section: Any = file.settings.sessions
    options = section.model_dump(exclude={"table", "periods"})
    options["time"] = options["time"] or None
    cuts = section.periods
    if isinstance(cuts, list):
        cuts = [start if isinstance(start, int | float) else days(start) for start in cuts]
    return SessionStream.of(as_interactions(file.files["table"], **options), cuts, **about)


def read_clicks(path: Path) -> Interactions:
    """An npz with `period`, `session` and `item`: a row per click, in order."""
    with open_npz(path, "clicks of sessions") as found:
        session, item, period = (found.array(name, "iu") for name in ("session", "item", "period"))
    known = as_interactions((session, item))
    first = known.time[known.starts[:-1]].astype(np.int64)
    return replace(known, periods=period[first])


def generate(*, periods: int = 8, sessions: int = 250, seed: int = 0) -> Interactions:
    """A generated shop: departments of items, new ones in every period, old ones fall behind.

    A session begins with an item of a department that is popular and new, goes on to neighbours of
    it, and comes back now and then.
    """
    rng = np.random.default_rng(seed)
    departments, shelf, weekly = 4, 60, 8  # items of a department at first, and new ones a period
    clicks: list[tuple[int, int]] = []
    for s in range(periods * sessions):
        newest = shelf + weekly * (s // sessions)  # items that the department has now
        department, place = rng.integers(departments), newest - 1 - int(rng.exponential(25.0))
        seen: list[int] = []
        for _ in range(2 + rng.poisson(2.5)):
            seen.append(int(place) % newest)
            back = len(seen) > 1 and rng.random() < 0.2
            place = seen[-2] if back else seen[-1] + int(rng.normal(1.0, 6.0))
        clicks += [(s, 1000 * int(department) + i) for i in seen]
    session, item = np.array(clicks).T
    known = as_interactions((session, item))
    return replace(known, periods=known.sessions.astype(np.int64) // sessions)
