"""`Comparison`: a table of rows by streams, and the notes that must stand under it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from undrift.evaluation.metrics import METRICS
from undrift.experiments.manifest import Manifest, PlannedRun
from undrift.experiments.result import Result
from undrift.plugins import Registry
from undrift.reporting.names import number_ranges, row_label, stream_title

IN_PRINT = 2
"""How many metrics stand in print, and are shown at first on the page; files have all."""

LEVEL = 0.05
"""A difference counts as shown where the p-value of its test is under this."""

_FAILURES = 8  # told one by one; more are counted


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
    """What a publication printed.

    `number_of` takes the label of a row, a result, a stream and a metric. It gives the mean and
    the deviation in percent that were published for such a run, or None. `remarks` are notes on
    streams whose names begin so. `proposed` is the publication's own method: figures draw it
    bold.
    """

    number_of: Callable[[str, Result, str, str], tuple[float, float] | None]
    source: str
    remarks: Mapping[str, str] = field(default_factory=dict)
    proposed: str = ""


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


def notes_of(table: Comparison, manifest: Manifest, results: Sequence[Result]) -> list[str]:
    """Sentences for the reader of a table, the general ones first."""
    notes = [_how_made(table), *_how_ranked(table), _tested(table)]
    published = published_numbers()
    if any(entry.published for entry in table.entries.values()):
        sources = _listed([numbers.source for numbers in published])
        notes.append(
            f"Paper: the number printed by {sources}, and in brackets ours minus it, in points."
        )
    if manifest.rule:
        notes.append(manifest.rule)
    if results:
        threads = number_ranges(result.cost.threads for result in results)
        notes.append(
            f"Seconds and peak memory are of one run with {threads} thread{'s' * (threads != '1')},"
            " kept is the state after the last task; all are means over seeds, and a search is "
            "not counted."
        )
    notes += [
        f"{stream_title(stream, stand_in=True)}: this data only imitates the benchmark, so its "
        "numbers are not comparable with the paper's, and none of those stands beside them."
        for stream in table.streams
        if stream in table.stand_ins
    ]
    notes += [
        remark
        for numbers in published
        for beginning, remark in numbers.remarks.items()
        if any(stream.startswith(beginning) for stream in table.streams)
    ]
    notes += [
        f"{stream_title(gone.stream)} was skipped: {gone.why.rstrip('.')}."
        for gone in manifest.skipped
    ]
    # a run that failed once and was repeated has a number
    cells = ((row, stream, entry.seeds) for (row, stream, _), entry in table.entries.items())
    done = {(row, stream, seed) for row, stream, seeds in cells for seed in seeds}
    unfinished = [c for c in manifest.cells if (c.row, c.stream, c.seed) not in done]
    return [*notes, *_failed(unfinished), *_missing(table, unfinished)]


def _how_made(table: Comparison) -> str:
    by = "class (every class of a task weighs the same)" if table.grading == "class" else "node"
    seeds = {entry.seeds for entry in table.entries.values()}
    if not seeds:
        return "No run of this table is finished."
    most = max(map(len, seeds))
    over = f"seed{'s' * (most > 1)} {number_ranges(next(iter(seeds)))}"
    if len(seeds) > 1:
        over = f"the seeds that finished, at most {most}"
    spread = ", mean ± sample deviation over " if most > 1 else ", "
    return f"Test accuracy in percent by {by}{spread}{over}."


def _how_ranked(table: Comparison) -> Iterator[str]:
    if any(entry.rank is not None for entry in table.entries.values()):
        names = [table.labels[row] for row in table.rows if row in table.bounds]
        bounds = f"; the bounds {_listed(names)} are not ranked" if names else ""
        bounds = f"; the bound {names[0]} is not ranked" if len(names) == 1 else bounds
        yield f"The best of a column is bold, the second underlined{bounds}."
    lower = [METRICS[key].symbol for key in table.metrics if METRICS[key].better == "down"]
    if lower:
        yield f"Lower is better for {_listed(lower)}."


def _tested(table: Comparison) -> str:
    tested = [e for e in table.entries.values() if e.significance is not None]
    if not tested:
        return "No test of significance: it needs two rows with two seeds in common."
    seeds = max(len(entry.seeds) for entry in tested)
    least = 2 / 2**seeds
    why = (
        f"; an exact sign-flip test over {seeds} seeds has no p-value under {least:.4g}, so it "
        "could show nothing at 0.05"
    ) * (least >= LEVEL)
    return (
        "The best of a column is tested against each other ranked row: paired t-test over the "
        f"seeds they share, two-sided, Holm-corrected over the column, level 0.05{why}. The "
        "best was found by the same numbers, so p-values are a little low; and seeds redraw the "
        "split of one graph, so they speak of other splits, not of other graphs."
    )


def _failed(cells: Iterable[PlannedRun]) -> list[str]:
    seeds: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        if cell.failed is not None:
            name = f"{row_label(cell.row, cell.method)} on {stream_title(cell.stream)}"
            seeds.setdefault((name, _first_line(cell.failed)), []).append(cell.seed)
    notes = [
        f"Failed: {name} (seed {number_ranges(gone)}): {why}" for (name, why), gone in seeds.items()
    ]
    more = sum(len(gone) for gone in list(seeds.values())[_FAILURES:])
    return [*notes[:_FAILURES], f"Failed: {more} more runs."] if more else notes


def _missing(table: Comparison, cells: Iterable[PlannedRun]) -> Iterator[str]:
    """One note per stream: which rows have seeds without a finished run."""
    gone: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        if cell.failed is None:
            gone.setdefault((cell.stream, cell.row), []).append(cell.seed)
    for stream in table.streams:
        mine = {row: gone[stream, row] for row in table.rows if (stream, row) in gone}
        rows = [f"{table.labels[r]} (seed {number_ranges(seeds)})" for r, seeds in mine.items()]
        if rows:
            title = stream_title(stream, stand_in=stream in table.stand_ins)
            yield f"No finished run on {title}: {', '.join(rows)}."


def _first_line(text: str, width: int = 160) -> str:
    line = next(iter(text.strip().splitlines()), "no message")
    return line if len(line) <= width else line[: width - 3] + "..."


def _listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
