"""A comparison as the rows and cells of a sortable HTML table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from undrift.evaluation.metrics import METRICS
from undrift.formatting import duration, size
from undrift.reporting.html.parts import PlanTable
from undrift.reporting.html.words import family_of, metric_head, metric_tip, minus, stream_title
from undrift.reporting.tables.compare import Grading
from undrift.reporting.tables.comparison import IN_PRINT, Comparison, Entry
from undrift.reporting.tables.layout import legend

__all__ = ["Cell", "Column", "Group", "Row", "Table", "table_view"]

COSTS = {
    "seconds": ("time", "seconds of a whole run, mean over seeds"),
    "memory_mb": ("memory", "peak memory of a run, mean over seeds"),
    "kept_bytes": ("kept", "size of what is kept after the last task, mean over seeds"),
}
BEATEN, NOTHING = "*", "–"
"""At a number that the best of its column beats by the stated test; in place of a number."""

MANY_STREAMS = 2
"""With more streams than these, costs per stream start hidden and their mean stands at the end."""


@dataclass(frozen=True)
class Column:
    """A sortable column; columns of one `kind` are shown and hidden together."""

    kind: str
    label: Markup | str
    tip: str
    low_is_best: bool = False


@dataclass(frozen=True)
class Group:
    """Columns under one heading: a stream, or the mean costs."""

    title: str
    stand_in: bool
    tip: str
    columns: Sequence[Column]


@dataclass(frozen=True)
class Cell:
    """What stands in a cell. `key` names its details, `value` is what it is sorted by."""

    kind: str
    value: float | None = None
    text: str = ""
    deviation: str = ""
    rank: int | None = None
    mark: str = ""
    paper: str = ""
    tip: str = ""
    key: str | None = None


@dataclass(frozen=True)
class Row:
    """A row: what it is called, how it is filtered, and its cells in the order of the columns."""

    label: str
    method: str
    family: str
    keeps_examples: bool
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """A table of the page: the same columns over one body per grading."""

    groups: Sequence[Group]
    bodies: Mapping[Grading, Sequence[Row]]
    families: Sequence[str]
    kinds: Sequence[tuple[str, Markup | str]]
    hidden: frozenset[str]
    notes: Mapping[Grading, Sequence[str]]
    legends: Mapping[Grading, Sequence[tuple[str, str]]]

    @property
    def width(self) -> int:
        """How many columns are shown at first, those before the groups among them."""
        shown = sum(c.kind not in self.hidden for group in self.groups for c in group.columns)
        return 3 + shown


def table_view(plan: PlanTable, number: int) -> Table:
    """The table of a plan; `number` is the plan's place on the page, for the cells' keys."""
    first = plan.first
    methods = {row: plan.method_of(row) for row in first.rows}
    everywhere = _measured_everywhere(first)
    many = len(first.streams) > MANY_STREAMS
    groups = [_stream_group(first, stream) for stream in first.streams]
    if many and everywhere:
        groups.append(_mean_group(len(everywhere)))
    bodies: dict[Grading, Sequence[Row]] = {}
    for grading, table in plan.tables.items():
        rows = []
        for r, row in enumerate(table.rows):
            cells = _stream_cells(table, row, f"{number}-{r}", _troubles(plan, row))
            if many and everywhere:
                cells += _mean_cells(table, row, everywhere)
            method = methods[row]
            label = table.labels.get(row, row)
            keeps = table.keeps_examples.get(row, False)
            rows.append(Row(label, method, family_of(method), keeps, cells))
        bodies[grading] = rows
    return Table(
        groups=groups,
        bodies=bodies,
        families=sorted({family_of(method) for method in methods.values()}),
        kinds=[
            *((metric, metric_head(metric)) for metric in first.metrics),
            ("cost", "costs per stream"),
        ],
        hidden=frozenset([*first.metrics[IN_PRINT:], *(["cost"] if many else [])]),
        notes={grading: tuple(table.notes) for grading, table in plan.tables.items()},
        legends={grading: _legend(table) for grading, table in plan.tables.items()},
    )


def _stream_group(table: Comparison, stream: str) -> Group:
    metrics = [
        Column(key, metric_head(key), metric_tip(key), METRICS[key].better == "down")
        for key in table.metrics
    ]
    costs = [Column("cost", label, tip, True) for label, tip in COSTS.values()]
    return Group(stream_title(stream), stream in table.stand_ins, stream, [*metrics, *costs])


def _mean_group(count: int) -> Group:
    columns = [Column("mean", label, tip, True) for label, tip in COSTS.values()]
    return Group("Mean cost", False, f"mean over the {count} streams that every row has", columns)


def _stream_cells(table: Comparison, row: str, key: str, troubles: Mapping[str, str]) -> list[Cell]:
    cells: list[Cell] = []
    for s, stream in enumerate(table.streams):
        for metric in table.metrics:
            entry = table.entries.get((row, stream, metric))
            trouble = troubles.get(stream, "")
            asked = f"{key}-{s}" if entry or trouble else None
            cells.append(
                _accuracy(entry, metric, asked)
                if entry
                else Cell(metric, text=trouble or NOTHING, key=asked)
            )
        costs = table.costs.get((row, stream), {})
        cells += [_cost("cost", name, costs.get(name)) for name in COSTS]
    return cells


def _mean_cells(table: Comparison, row: str, streams: Sequence[str]) -> list[Cell]:
    cells = []
    for name in COSTS:
        known = [table.costs[row, stream].get(name) for stream in streams]
        values = [value for value in known if value is not None]
        cells.append(_cost("mean", name, fmean(values) if len(values) == len(known) else None))
    return cells


def _accuracy(entry: Entry, metric: str, key: str | None) -> Cell:
    ours, published = entry.ours, entry.published
    seeds = f"{len(entry.seeds)} seed{'s' if len(entry.seeds) != 1 else ''}"
    tip = [seeds]
    if entry.significance is not None:
        tip.append(f"p = {entry.significance:.2g} against the best")
    paper = ""
    if published is not None:
        paper = f"{published.mean:.2f}"
        if published.deviation is not None:
            tip.append(f"paper {published.mean:.2f} ± {published.deviation:.2f}")
        if entry.difference is not None:
            paper += f" ({minus(f'{entry.difference:+.2f}')})"
    return Cell(
        kind=metric,
        value=ours.mean,
        text=minus(f"{ours.mean:.2f}"),
        deviation="" if ours.deviation is None else f"±{ours.deviation:.2f}",
        rank=entry.rank,
        mark=BEATEN if entry.beaten else "",
        paper=paper,
        tip=", ".join(tip),
        key=key,
    )


def _cost(kind: str, name: str, value: float | None) -> Cell:
    if value is None:
        return Cell(kind, text=NOTHING)
    if name == "seconds":
        return Cell(kind, value, duration(value))
    return Cell(kind, value, size(value * 1e6 if name == "memory_mb" else value))


def _legend(table: Comparison) -> list[tuple[str, str]]:
    """The marks of the table with their meaning; examples kept have a column, not a mark."""
    return [(mark, meaning) for mark, meaning in legend(table) if mark in (BEATEN, NOTHING)]


def _measured_everywhere(table: Comparison) -> list[str]:
    """The streams on which every row was run: only over those are means comparable."""
    return [s for s in table.streams if all((row, s) in table.costs for row in table.rows)]


def _troubles(plan: PlanTable, row: str) -> dict[str, str]:
    """A word for a cell without numbers: some of its runs failed, or none was made yet."""
    words: dict[str, str] = {}
    for cell in plan.manifest.cells:
        if cell.row == row:
            failed = cell.failed is not None or words.get(cell.stream) == "failed"
            words[cell.stream] = "failed" if failed else "not run"
    return words
