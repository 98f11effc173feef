"""How a comparison becomes tables that fit a page, whatever the markup: one layout for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from undrift.formatting import size
from undrift.reporting.names import stream_title, symbol
from undrift.reporting.tables.comparison import LEVEL, Comparison, Entry

COSTS = {"seconds": "seconds", "memory_mb": "memory, MB", "kept_bytes": "kept"}
PAPER = "paper"

_Column = tuple[str, list[str]]
"""The name of a column, and what stands in it, row by row."""


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
    groups: dict[str, list[_Column]] = {stream: [] for stream in table.streams}
    for stream, metric in product(table.streams, table.metrics):
        entries = [table.entries.get((row, stream, metric)) for row in table.rows]
        ours = [_ours(entry, markup) for entry in entries]
        groups[stream].append((symbol(metric, markup.symbol), ours))
        if any(entry and entry.published for entry in entries):
            groups[stream].append((PAPER, [_paper(entry, markup) for entry in entries]))
    return _grids(table, markup, groups, [("", _labels(table, markup))], width)


def cost_grids(table: Comparison, markup: Markup, width: int = 9) -> list[Grid]:
    """What the rows cost, without the columns that no run measured."""
    groups: dict[str, list[_Column]] = {}
    for stream in table.streams:
        spent = [table.costs.get((row, stream), {}) for row in table.rows]
        groups[stream] = [
            (
                markup.escape(title),
                [cost_text(name, cost.get(name)) or markup.missing for cost in spent],
            )
            for name, title in COSTS.items()
            if any(name in cost for cost in spent)
        ]
    keeps = ["yes" if table.keeps_examples.get(row) else "no" for row in table.rows]
    first = [("", _labels(table, markup)), ("keeps examples", keeps)]
    return _grids(table, markup, groups, first, width)


def _grids(
    table: Comparison,
    markup: Markup,
    groups: Mapping[str, Sequence[_Column]],
    first: Sequence[_Column],
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
        titles = [stream_title(s, stand_in=s in table.stand_ins) for s in streams]
        spans = [(markup.escape(t), len(groups[s])) for t, s in zip(titles, streams, strict=True)]
        lines = [[*line] for line in zip(*(texts for _, texts in [*first, *columns]), strict=True)]
        grids.append(Grid([name for name, _ in first], spans, [n for n, _ in columns], lines))
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


def _labels(table: Comparison, markup: Markup) -> list[str]:
    marks = [markup.keeps_examples if table.keeps_examples.get(r) else "" for r in table.rows]
    names = [markup.escape(table.labels.get(row, row)) for row in table.rows]
    return [name + mark for name, mark in zip(names, marks, strict=True)]


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
