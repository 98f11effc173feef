"""How a comparison becomes tables that fit a page: columns, blocks of streams, and legends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from undrift.formatting import size
from undrift.reporting.names import stream_title
from undrift.reporting.tables.comparison import LEVEL, Comparison, Entry

__all__ = [
    "COSTS",
    "Block",
    "Column",
    "Marks",
    "accuracy_blocks",
    "accuracy_lines",
    "cost_blocks",
    "cost_lines",
    "cost_text",
    "legend",
    "titles",
]

COSTS = {"seconds": "seconds", "memory_mb": "memory, MB", "kept_bytes": "kept"}


@dataclass(frozen=True)
class Column:
    """A column: our numbers of a metric, the paper's beside them, or a cost (then its name)."""

    stream: str
    kind: Literal["ours", "paper", "cost"]
    what: str


@dataclass(frozen=True)
class Block:
    """The columns of one table on a page; those of a stream stand together."""

    columns: tuple[Column, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the block, in order."""
        return tuple(dict.fromkeys(column.stream for column in self.columns))

    def width(self, stream: str) -> int:
        """How many columns a stream has."""
        return sum(column.stream == stream for column in self.columns)


def accuracy_blocks(table: Comparison, width: int = 8) -> list[Block]:
    """Blocks of at most `width` columns, whole streams each.

    The paper's numbers get a column beside ours where the stream has any of that metric.
    """
    paper = {(stream, metric) for (_, stream, metric), e in table.entries.items() if e.published}
    groups = []
    for stream in table.streams:
        columns = []
        for metric in table.metrics:
            columns.append(Column(stream, "ours", metric))
            if (stream, metric) in paper:
                columns.append(Column(stream, "paper", metric))
        groups.append(columns)
    return _packed(groups, width)


def cost_blocks(table: Comparison, width: int = 9) -> list[Block]:
    """Blocks of what the rows cost, without the columns that no run measured."""
    there = {(stream, name) for (_, stream), spent in table.costs.items() for name in spent}
    groups = [
        [Column(stream, "cost", name) for name in COSTS if (stream, name) in there]
        for stream in table.streams
    ]
    return _packed(groups, width)


def _packed(groups: Sequence[Sequence[Column]], width: int) -> list[Block]:
    blocks: list[list[Column]] = []
    for group in groups:
        if blocks and len(blocks[-1]) + len(group) <= width:
            blocks[-1] += group
        elif group:
            blocks.append(list(group))
    return [Block(tuple(block)) for block in blocks]


def titles(table: Comparison) -> dict[str, str]:
    """What to print over the columns of every stream; stand-ins say so."""
    return {s: stream_title(s, stand_in=s in table.stand_ins) for s in table.streams}


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


@dataclass(frozen=True)
class Marks:
    """How a markup writes a cell; `%s` stands for the text that is marked."""

    escape: Callable[[str], str]
    missing: str
    plus_minus: str
    best: str
    second: str
    beaten: str
    keeps_examples: str
    difference: str


def accuracy_lines(table: Comparison, block: Block, marks: Marks) -> list[list[str]]:
    """The rows of a block of accuracies, each with its name first."""
    lines = []
    for row in table.rows:
        cells = []
        for column in block.columns:
            entry = table.entries.get((row, column.stream, column.what))
            cells.append((_ours if column.kind == "ours" else _paper)(entry, marks))
        lines.append([_label(table, row, marks), *cells])
    return lines


def cost_lines(table: Comparison, block: Block, marks: Marks) -> list[list[str]]:
    """The rows of a block of costs, each with its name and whether it keeps examples first."""
    lines = []
    for row in table.rows:
        cells = []
        for column in block.columns:
            spent = table.costs.get((row, column.stream), {})
            cells.append(cost_text(column.what, spent.get(column.what)) or marks.missing)
        keeps = "yes" if table.keeps_examples.get(row) else "no"
        lines.append([_label(table, row, marks), keeps, *cells])
    return lines


def _label(table: Comparison, row: str, marks: Marks) -> str:
    name = marks.escape(table.labels.get(row, row))
    return name + (marks.keeps_examples if table.keeps_examples.get(row) else "")


def _ours(entry: Entry | None, marks: Marks) -> str:
    if entry is None:
        return marks.missing
    text = f"{entry.ours.mean:.2f}"
    if entry.ours.deviation is not None:
        text += f" {marks.plus_minus} {entry.ours.deviation:.2f}"
    if entry.rank in (1, 2):
        text = (marks.best if entry.rank == 1 else marks.second) % text
    return text + (marks.beaten if entry.beaten else "")


def _paper(entry: Entry | None, marks: Marks) -> str:
    if entry is None or entry.published is None or entry.difference is None:
        return ""
    return f"{entry.published.mean:.2f} ({marks.difference % f'{entry.difference:+.2f}'})"
