"""A comparison as GitHub Markdown."""

from __future__ import annotations

import re

from undrift.reporting.tables.comparison import Comparison
from undrift.reporting.tables.layout import PAPER, Grid, Markup, accuracy_grids, cost_grids, legend

_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")


def markdown_table(table: Comparison, *, level: int = 2, costs: bool = True) -> str:
    """The table with its title as a heading of this level, its costs, and its notes.

    Best bold, second underlined, a star where the best is better by the stated test, the
    paper's number in a column beside ours with the difference. Many streams are split into
    several tables, one below the other.
    """
    parts = [f"{'#' * level} {escape_markdown(table.title)}"]
    parts += [_grid(grid) for grid in accuracy_grids(table, _MARKUP)]
    if costs and table.costs:
        parts.append(f"{'#' * (level + 1)} Cost")
        parts += [_grid(grid) for grid in cost_grids(table, _MARKUP)]
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


_MARKUP = Markup(
    escape=escape_markdown,
    symbol="%s_%s",
    missing="–",
    plus_minus="±",
    best="**%s**",
    second="<u>%s</u>",
    beaten=" \\*",
    keeps_examples=" †",
    difference="%s",
)


def _grid(grid: Grid) -> str:
    """Markdown has no cell over several columns: our columns name the stream, the rest follow."""
    streams = [title for title, width in grid.streams for _ in range(width)]
    named = zip(streams, grid.names, strict=True)
    header = [name if name == PAPER else f"{stream} {name}" for stream, name in named]
    rule = [":--"] * len(grid.first) + ["--:"] * len(header)
    lines = ([*grid.first, *header], rule, *grid.lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
