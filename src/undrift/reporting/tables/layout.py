"""How a comparison becomes tables that fit a page, whatever the markup: one layout for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from undrift.formatting import size
from undrift.reporting.names import stream_title, symbol
from undrift.reporting.tables.comparison import LEVEL, Comparison, Entry

COSTS = {"seconds": "seconds", "memory_mb": "memory, MB", "kept_bytes": "kept"}
PAPER = "paper"

_Column = tuple[str, Callable[[str], str]]
"""The name of a column, and what stands in it for a row."""


@dataclass(frozen=True)
class Markup:
    """How a markup writes a cell; `%s` stands for the text that is marked."""

    escape: Callable[[str], str]
    symbol: str
    missing: str
    plus_minus: str
    best: str
    second: str
    beaten: str
    keeps_examples: str
    difference: str


@dataclass(frozen=True)
class Grid:
    """A table on a page: streams over their columns, the `first` before them; all escaped."""

    first: Sequence[str]
    streams: Sequence[tuple[str, int]]
    names: Sequence[str]
    lines: Sequence[Sequence[str]]


def accuracy_grids(table: Comparison, markup: Markup, width: int = 8) -> list[Grid]:
    """Accuracies and the paper's, where there are any, whole streams in `width` columns each."""
    paper = {(stream, metric) for (_, stream, metric), e in table.entries.items() if e.published}

    def column(stream: str, metric: str, write: Callable[[Entry | None, Markup], str]) -> _Column:
        name = PAPER if write is _paper else symbol(metric, markup.symbol)
        return name, lambda row: write(table.entries.get((row, stream, metric)), markup)

    groups = {
        stream: [
            column(stream, metric, write)
            for metric in table.metrics
            for write in (_ours, *([_paper] if (stream, metric) in paper else []))
        ]
        for stream in table.streams
    }
    return _grids(table, markup, groups, {"": lambda row: _label(table, row, markup)}, width)


def cost_grids(table: Comparison, markup: Markup, width: int = 9) -> list[Grid]:
    """What the rows cost, without the columns that no run measured."""
    there = {(stream, name) for (_, stream), spent in table.costs.items() for name in spent}

    def column(stream: str, name: str) -> _Column:
        def written(row: str) -> str:
            spent = table.costs.get((row, stream), {}).get(name)
            return cost_text(name, spent) or markup.missing

        return markup.escape(COSTS[name]), written

    groups = {
        stream: [column(stream, name) for name in COSTS if (stream, name) in there]
        for stream in table.streams
    }
    first: dict[str, Callable[[str], str]] = {
        "": lambda row: _label(table, row, markup),
        "keeps examples": lambda row: "yes" if table.keeps_examples.get(row) else "no",
    }
    return _grids(table, markup, groups, first, width)


def _grids(
    table: Comparison,
    markup: Markup,
    groups: Mapping[str, Sequence[_Column]],
    first: Mapping[str, Callable[[str], str]],
    width: int,
) -> list[Grid]:
    packed: list[list[str]] = []
    for stream, columns in groups.items():
        if packed and sum(len(groups[s]) for s in packed[-1]) + len(columns) <= width:
            packed[-1].append(stream)
        elif columns:
            packed.append([stream])
    grids = []
    for streams in packed:
        columns = [column for stream in streams for column in groups[stream]]
        writes = [*first.values(), *(write for _, write in columns)]
        spans = [
            (markup.escape(stream_title(s, stand_in=s in table.stand_ins)), len(groups[s]))
            for s in streams
        ]
        lines = [[write(row) for write in writes] for row in table.rows]
        grids.append(Grid(list(first), spans, [name for name, _ in columns], lines))
    return grids


def cost_text(name: str, value: float | None) -> str | None:
    """A cost for the reader: no more digits than it is worth.

    >>> cost_text("seconds", 3.14159), cost_text("seconds", 1234.5), cost_text("memory_mb", 812.4)
    ('3.1', '1,234', '812')
    >>> cost_text("kept_bytes", 270434000.0), cost_text("seconds", None)
    ('270.4 MB', None)
    """
    if value is None:
        return None
    if name == "kept_bytes":
        return size(value)
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def legend(table: Comparison) -> list[tuple[str, str]]:
    """The marks that occur in a table (`*`, `†`, `–`), each with what it says."""
    found = []
    if any(entry.beaten for entry in table.entries.values()):
        found.append(("*", f"the best of the column is better than this row, p < {LEVEL:g}"))
    if any(table.keeps_examples.get(row) for row in table.rows):
        found.append(("†", "keeps examples of earlier tasks"))
    cells = len(table.rows) * len(table.streams) * len(table.metrics)
    if len(table.entries) < cells:
        found.append(("–", "no number: no run is finished, or none was asked for"))
    return found


def _label(table: Comparison, row: str, markup: Markup) -> str:
    name = markup.escape(table.labels.get(row, row))
    return name + (markup.keeps_examples if table.keeps_examples.get(row) else "")


def _ours(entry: Entry | None, markup: Markup) -> str:
    if entry is None:
        return markup.missing
    text = f"{entry.ours.mean:.2f}"
    if entry.ours.deviation is not None:
        text += f" {markup.plus_minus} {entry.ours.deviation:.2f}"
    if entry.rank in (1, 2):
        text = (markup.best if entry.rank == 1 else markup.second) % text
    return text + (markup.beaten if entry.beaten else "")


def _paper(entry: Entry | None, markup: Markup) -> str:
    if entry is None or entry.published is None or entry.difference is None:
        return ""
    return f"{entry.published.mean:.2f} ({markup.difference % f'{entry.difference:+.2f}'})"
