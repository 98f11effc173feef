"""A comparison as GitHub Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from undrift.reporting.names import symbol
from undrift.reporting.tables.comparison import Comparison
from undrift.reporting.tables.layout import (
    COSTS,
    Block,
    Column,
    Marks,
    accuracy_blocks,
    accuracy_lines,
    cost_blocks,
    cost_lines,
    legend,
    titles,
)

__all__ = ["escape_markdown", "markdown_table"]

_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")


def markdown_table(table: Comparison, *, level: int = 2, costs: bool = True) -> str:
    """The table with its title as a heading of this level, its costs, and its notes.

    Best bold, second underlined, a star where the best is better by the stated test, the
    paper's number in a column beside ours with the difference. Many streams are split into
    several tables, one below the other.
    """
    parts = [f"{'#' * level} {escape_markdown(table.title)}"]
    parts += [_accuracy(table, block) for block in accuracy_blocks(table)]
    if costs and table.costs:
        parts.append(f"{'#' * (level + 1)} Cost")
        parts += [_costs(table, block) for block in cost_blocks(table)]
    notes = [f"{escape_markdown(mark)} {text}" for mark, text in legend(table)]
    notes += [escape_markdown(note) for note in table.notes]
    parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def escape_markdown(text: str) -> str:
    r"""Text that Markdown and HTML leave as it is, on one line, also inside a table.

    >>> print(escape_markdown("a|b <i> *x*"))
    a\|b &lt;i&gt; \*x\*
    """
    line = " ".join(text.split())
    line = _SPECIAL.sub(lambda found: f"\\{found[0]}", line)
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_MARKS = Marks(
    escape=escape_markdown,
    missing="–",
    plus_minus="±",
    best="**%s**",
    second="<u>%s</u>",
    beaten=" \\*",
    keeps_examples=" †",
    difference="%s",
)


def _accuracy(table: Comparison, block: Block) -> str:
    lines = accuracy_lines(table, block, _MARKS)
    return _grid(["", *_headers(table, block)], "l" + "r" * len(block.columns), lines)


def _costs(table: Comparison, block: Block) -> str:
    header = ["", "keeps examples", *_headers(table, block)]
    return _grid(header, "ll" + "r" * len(block.columns), cost_lines(table, block, _MARKS))


def _headers(table: Comparison, block: Block) -> list[str]:
    """Markdown has no cell over several columns: our column names the stream, the rest follow."""
    names = titles(table)
    return [_header(column, escape_markdown(names[column.stream])) for column in block.columns]


def _header(column: Column, stream: str) -> str:
    if column.kind == "paper":
        return "paper"
    if column.kind == "ours":
        return f"{stream} {symbol(column.what)}"
    return f"{stream} {COSTS[column.what]}"


def _grid(header: Sequence[str], sides: str, lines: Iterable[Sequence[str]]) -> str:
    rule = ["--:" if side == "r" else ":--" for side in sides]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *lines))
