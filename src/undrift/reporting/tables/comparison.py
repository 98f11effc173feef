"""`Comparison`: a table of rows by streams, and the notes that must stand under it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev

from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result
from undrift.experiments.store import Manifest, PlannedRun
from undrift.plugins import Registry
from undrift.reporting.names import number_ranges, row_label, stream_title

IN_PRINT = 2
"""How many metrics of matrices, and of series, stand in print and are shown at first."""

LEVEL = 0.05
"""A difference counts as shown where the p-value of its test is under this."""

_FAILURES = 8  # named one by one; more are counted
_LINE = 160  # characters of an error


@dataclass(frozen=True)
class SeedMean:
    """Mean and sample deviation (None with one seed) of a quantity over seeds."""

    mean: float
    deviation: float | None


def seed_mean(values: Iterable[float]) -> SeedMean:
    """Mean and sample deviation of some numbers."""
    numbers = list(values)
    return SeedMean(fmean(numbers), stdev(numbers) if len(numbers) > 1 else None)


def in_print(metrics: Iterable[str]) -> list[str]:
    """Those of these metrics that stand in print; files have all."""
    every = list(metrics)
    series = [key for key in every if METRICS[key].of is None]
    return [*[key for key in every if key not in series][:IN_PRINT], *series[:IN_PRINT]]


@dataclass(frozen=True)
class Numbers:
    """What a publication printed.

    `number_of(label of a row, result, stream, metric)` is the mean and the deviation in percent
    that were published for such a run, or None. `remarks` are notes on streams whose names begin
    so. Figures draw the publication's own method, `proposed`, bold.
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

    `rank` is None for bounds, `significance` the p-value of the best row against this one.
    """

    ours: SeedMean
    seeds: tuple[int, ...]
    runs: tuple[str, ...]
    rank: int | None = None
    published: SeedMean | None = None
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

    `costs[row, stream]` maps `seconds`, `memory_mb` and `kept_bytes` to their means; `bounds` are
    not ranked.
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

    def metrics_on(self, stream: str) -> list[str]:
        """The metrics of which some row has a number there; where none has, those in print."""
        there = {metric for _, place, metric in self.entries if place == stream}
        return [metric for metric in self.metrics if metric in there] or in_print(self.metrics)

    def printed(self) -> Comparison:
        """The table with the metrics that stand in print, of every stream its own."""
        kept = {(s, metric) for s in self.streams for metric in in_print(self.metrics_on(s))}
        entries = {place: entry for place, entry in self.entries.items() if place[1:] in kept}
        names = {metric for _, metric in kept}
        metrics = [metric for metric in self.metrics if metric in names]
        return replace(self, metrics=metrics, entries=entries)


def notes_of(table: Comparison, manifest: Manifest, results: Sequence[Result]) -> list[str]:
    """Sentences for the reader of a table, the general ones first."""
    notes = list(_how_made(table))
    published = published_numbers()
    if any(entry.published for entry in table.entries.values()):
        sources = _listed([numbers.source for numbers in published])
        paper = f"Paper: the number printed by {sources}"
        notes.append(f"{paper}, and in brackets ours minus it, in points.")
    notes += [manifest.rule] if manifest.rule else []
    if results:
        threads = number_ranges(result.cost.threads for result in results)
        notes.append(
            f"Seconds and peak memory are of one run with {threads} thread{'s' * (threads != '1')},"
            " kept is the state after the last task; all are means over seeds, and a search is "
            "not counted."
        )
    imitated = [stream_title(s, stand_in=True) for s in table.streams if s in table.stand_ins]
    why = "this data only imitates the benchmark, so its numbers are not comparable with the "
    why += "paper's, and none of those stands beside them."
    notes += [f"{title}: {why}" for title in imitated]
    remarks = [remark for numbers in published for remark in numbers.remarks.items()]
    notes += [text for start, text in remarks if any(s.startswith(start) for s in table.streams)]
    skipped = [(stream_title(gone.stream), gone.why.rstrip(".")) for gone in manifest.skipped]
    notes += [f"{title} was skipped: {why}." for title, why in skipped]
    # a run that failed once and was repeated has a number
    entries = table.entries.items()
    done = {(row, stream, seed) for (row, stream, _), entry in entries for seed in entry.seeds}
    unfinished = [c for c in manifest.cells if (c.row, c.stream, c.seed) not in done]
    return [*notes, *_failed(unfinished), *_missing(table, unfinished)]


def _how_made(table: Comparison) -> Iterator[str]:
    by = "class (every class of a task weighs the same)" if table.grading == "class" else "node"
    accuracy = any(METRICS[key].of for key in table.metrics)
    what = f"Test accuracy in percent by {by}" if accuracy else "Test results in percent"
    seeds = {entry.seeds for entry in table.entries.values()}
    most = max(map(len, seeds), default=0)
    over = f"seed{'s' * (most > 1)} {number_ranges(next(iter(seeds), ()))}"
    over = f"the seeds that finished, at most {most}" if len(seeds) > 1 else over
    what += ", mean ± sample deviation over " if most > 1 else ", "
    yield f"{what}{over}." if seeds else "No run of this table is finished."
    if any(entry.rank is not None for entry in table.entries.values()):
        names = [table.labels[row] for row in table.rows if row in table.bounds]
        bounds = f"; the bounds {_listed(names)} are not ranked" if names else ""
        bounds = f"; the bound {names[0]} is not ranked" if len(names) == 1 else bounds
        yield f"The best of a column is bold, the second underlined{bounds}."
    if lower := [METRICS[key].symbol for key in table.metrics if METRICS[key].better == "down"]:
        yield f"Lower is better for {_listed(lower)}."
    tested = [len(e.seeds) for e in table.entries.values() if e.significance is not None]
    if not tested:
        yield "No test of significance: it needs two rows with two seeds in common."
        return
    least = 2 / 2 ** max(tested)
    why = f"; an exact sign-flip test over {max(tested)} seeds has no p-value under {least:.4g}"
    why += ", so it could show nothing at 0.05"
    yield (
        "The best of a column is tested against each other ranked row: paired t-test over the "
        f"seeds they share, two-sided, Holm-corrected over the column, level 0.05"
        f"{why if least >= LEVEL else ''}. The best was found by the same numbers, so p-values "
        "are a little low; and seeds redraw the split of one graph, so they speak of other splits, "
        "not of other graphs."
    )


def _failed(cells: Iterable[PlannedRun]) -> list[str]:
    seeds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for cell in cells:
        if cell.failed is not None:
            name = f"{row_label(cell.row, cell.method)} on {stream_title(cell.stream)}"
            line = next(iter(cell.failed.strip().splitlines()), "no message")
            why = line if len(line) <= _LINE else line[: _LINE - 3] + "..."
            seeds[name, why].append(cell.seed)
    notes = [f"Failed: {on} (seed {number_ranges(s)}): {why}" for (on, why), s in seeds.items()]
    more = sum(map(len, list(seeds.values())[_FAILURES:]))
    return [*notes[:_FAILURES], f"Failed: {more} more runs."] if more else notes


def _missing(table: Comparison, cells: Iterable[PlannedRun]) -> Iterator[str]:
    """One note per stream: which rows have seeds without a finished run."""
    gone: dict[tuple[str, str], list[int]] = defaultdict(list)
    for cell in cells:
        if cell.failed is None:
            gone[cell.stream, cell.row].append(cell.seed)
    for stream in table.streams:
        mine = {row: gone[stream, row] for row in table.rows if (stream, row) in gone}
        rows = [f"{table.labels[r]} (seed {number_ranges(seeds)})" for r, seeds in mine.items()]
        if rows:
            title = stream_title(stream, stand_in=stream in table.stand_ins)
            yield f"No finished run on {title}: {', '.join(rows)}."


def _listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
