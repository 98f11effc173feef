"""`Comparison`: a table of rows by streams, with every number a reader may ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from undrift.experiments.result import Result
from undrift.plugins import Registry

IN_PRINT = 2
"""How many metrics stand in print, and are shown at first on the page; files have all."""

LEVEL = 0.05
"""A difference counts as shown where the p-value of its test is under this."""


@dataclass(frozen=True)
class Spread:
    """Mean and sample deviation (None with one seed) of a quantity over seeds."""

    mean: float
    deviation: float | None


def spread_of(values: Iterable[float]) -> Spread:
    """Mean and sample deviation of some numbers."""
    numbers = list(values)
    return Spread(fmean(numbers), stdev(numbers) if len(numbers) > 1 else None)


@dataclass(frozen=True)
class Numbers:
    """What a publication printed, and how its figures are drawn.

    `number_of` takes the label of a row, a result, a stream and a metric. It gives the mean and
    the deviation in percent that were published for such a run, or None. `remarks` are notes on
    streams whose names begin so. `proposed` is the publication's own method: figures draw it
    bold. `shown` has the methods that its figures show, by the name of the figure.
    """

    number_of: Callable[[str, Result, str, str], tuple[float, float] | None]
    source: str
    remarks: Mapping[str, str] = field(default_factory=dict)
    proposed: str = ""
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)


PUBLISHED = Registry("published numbers", "undrift.published", {})
"""`Numbers`, or a `number_of` alone, whose source is then the name of its entry point."""


def published_numbers() -> list[Numbers]:
    """All that are published, as far as packages here know."""
    found = {name: PUBLISHED.load(name) for name in PUBLISHED.names()}
    return [each if isinstance(each, Numbers) else Numbers(each, n) for n, each in found.items()]


@dataclass(frozen=True)
class ComparisonEntry:
    """One cell: a row on a stream under one metric, in percent. `seeds` and `runs` go together.

    `rank` is 1 for the best of its column, shared by rows that print the same number, None for
    bounds. `significance` is the p-value of the best row against this one, None for the best.
    """

    ours: Spread
    seeds: tuple[int, ...]
    runs: tuple[str, ...]
    rank: int | None = None
    published: Spread | None = None
    significance: float | None = None

    @property
    def difference(self) -> float | None:
        """Our mean minus the published one."""
        return None if self.published is None else self.ours.mean - self.published.mean

    @property
    def beaten(self) -> bool:
        """Whether the best row of the column is better than this one by the stated test."""
        return self.significance is not None and self.significance < LEVEL


@dataclass(frozen=True)
class Comparison:
    """A table: `entries[row, stream, metric]` of finished runs, and what each row costs.

    `metrics` are keys of `METRICS`; `costs[row, stream]` maps `seconds`, `memory_mb` and
    `kept_bytes` to their means; `bounds` are not ranked; `grading` is by `class` or by `node`.
    """

    title: str
    rows: Sequence[str]
    labels: Mapping[str, str]
    streams: Sequence[str]
    metrics: Sequence[str]
    entries: Mapping[tuple[str, str, str], ComparisonEntry]
    costs: Mapping[tuple[str, str], Mapping[str, float]]
    keeps_examples: Mapping[str, bool]
    stand_ins: frozenset[str]
    notes: Sequence[str]
    bounds: frozenset[str] = frozenset()
    grading: str = "class"
