"""A comparison as Markdown, as LaTeX with booktabs, and as tidy CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from undrift.reporting.tables.comparison import Comparison, Entry, Spread
from undrift.reporting.tables.layout import (
    COSTS,
    PAPER,
    Grid,
    Markup,
    accuracy_grids,
    cost_grids,
    legend,
)

_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")


def markdown_table(table: Comparison, *, level: int = 2, costs: bool = True) -> str:
    """The table with its title as a heading of this level, its costs, and its notes.

    Best bold, second underlined, a star where the best is better by the stated test.
    """
    parts = [f"{'#' * level} {escape_markdown(table.title)}"]
    parts += [_markdown_grid(grid) for grid in accuracy_grids(table, _MARKDOWN)]
    if costs and table.costs:
        parts.append(f"{'#' * (level + 1)} Cost")
        parts += [_markdown_grid(grid) for grid in cost_grids(table, _MARKDOWN)]
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


_MARKDOWN = Markup(
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


def _markdown_grid(grid: Grid) -> str:
    """Markdown has no cell over several columns: our columns name the stream, the rest follow."""
    streams = [title for title, width in grid.streams for _ in range(width)]
    named = zip(streams, grid.names, strict=True)
    header = [name if name == PAPER else f"{stream} {name}" for stream, name in named]
    rule = [":--"] * len(grid.first) + ["--:"] * len(header)
    lines = ([*grid.first, *header], rule, *grid.lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


_DASH = "--"
_MARKS = {"*": r"$^{\ast}$", "†": r"$^{\dagger}$", "–": _DASH}
_ESCAPES = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # after \\ a bracket or a star would be its argument
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "†": r"$\dagger$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "γ": r"$\gamma$",
    "α": r"$\alpha$",
}
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
"""


def latex_document(*tables: Comparison) -> str:
    """A whole document that compiles with pdflatex, with one table after the other."""
    body = "\n\\clearpage\n".join(map(latex_table, tables))
    return f"{_PREAMBLE}{body}\\end{{document}}\n"


def latex_table(table: Comparison, *, costs: bool = True) -> str:
    """The `table` environments of a comparison; one too wide is scaled to the line.

    They need `booktabs` and `graphicx`. Notes stand under the last table of accuracies.
    """
    title = escape_latex(table.title)
    grids = accuracy_grids(table, _LATEX)
    bodies = [(caption, _tabular(table, grid)) for caption, grid in _captioned(title, grids)]
    *others, (last, body) = bodies or [(title, "")]  # nothing was run: the notes say why
    parts = [*(_float(*other) for other in others), _float(last, body, _notes(table))]
    if costs and table.costs:
        found = _captioned(f"{title}: cost", cost_grids(table, _LATEX))
        parts += [_float(caption, _tabular(table, grid)) for caption, grid in found]
    return "% needs \\usepackage{booktabs,graphicx}\n" + "\n".join(parts)


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is; what its fonts lack is written as a code point.

    >>> print(escape_latex("50% of a_b & é 数"))
    50\% of a\_b \& é {[}U+6570{]}
    """
    line = " ".join(text.split())
    # a hyphen after another is kept from becoming a dash with it
    pairs = zip(line, " " + line, strict=False)
    return "".join("{}-" if char + last == "--" else _escaped(char) for char, last in pairs)


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    # LaTeX makes the letters of Latin-1 out of any font, but for these four
    if " " <= char <= "~" or ("À" <= char <= "ÿ" and char not in "ÐÞðþ"):
        return char
    return f"{{[}}U+{ord(char):04X}{{]}}"


# a star has no width of its own, so that digits stay below digits
_LATEX = Markup(
    escape=escape_latex,
    symbol=r"$\mathcal{%s}_{%s}$",
    missing=_DASH,
    plus_minus="$\\pm$",
    best="\\textbf{%s}",
    second="\\underline{%s}",
    beaten=f"\\rlap{{{_MARKS['*']}}}",
    keeps_examples=_MARKS["†"],
    difference="$%s$",
)


def _captioned(caption: str, grids: Sequence[Grid]) -> list[tuple[str, Grid]]:
    """Several grids are numbered."""
    many = len(grids) > 1
    return [
        (f"{caption} ({at} of {len(grids)})" if many else caption, grid)
        for at, grid in enumerate(grids, start=1)
    ]


def _tabular(table: Comparison, grid: Grid) -> str:
    """Two lines of headers (streams over their columns), then the rows, bounds ruled off."""
    spans, rules, at = [], [], len(grid.first) + 1
    for title, width in grid.streams:
        spans.append(f"\\multicolumn{{{width}}}{{c}}{{{title}}}")
        rules.append(f"\\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    sides = "l" * len(grid.first) + "r" * len(grid.names)
    text = [_FIT, f"\\begin{{tabular}}{{{sides}}}", "\\toprule"]
    text += [_latex_line([*("" for _ in grid.first), *spans]), "".join(rules)]
    text.append(_latex_line([*grid.first, *grid.names]))
    before = None
    for row, cells in zip(table.rows, grid.lines, strict=True):
        if (row in table.bounds) != before:
            text.append("\\midrule")
        text.append(_latex_line(cells))
        before = row in table.bounds
    return "\n".join([*text, "\\bottomrule", "\\end{tabular}}"])


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _float(caption: str, *body: str) -> str:
    head = ["\\begin{table}[htbp]", "\\centering", f"\\caption{{{caption}}}", "\\medskip"]
    parts = [*head, "\\small\\setlength{\\tabcolsep}{5pt}", *body, "\\end{table}"]
    return "\n".join(part for part in parts if part) + "\n"


def _notes(table: Comparison) -> str:
    notes = [f"{_MARKS[mark]} {escape_latex(text)}." for mark, text in legend(table)]
    notes += [escape_latex(note) for note in table.notes]
    if not notes:
        return ""
    body = "\\par\n".join(notes)
    return (
        "\\par\\medskip\n\\begin{minipage}{\\linewidth}\\footnotesize\\raggedright\n"
        f"{body}\n\\end{{minipage}}"
    )


def csv_table(table: Comparison) -> str:
    """A line per row, stream and metric; numbers in full, seeds and run ids apart by blanks."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_csv_line(table, "", "", "")), lineterminator="\n")
    writer.writeheader()
    for stream in table.streams:
        for row in table.rows:
            writer.writerows(_csv_line(table, row, stream, metric) for metric in table.metrics)
    return text.getvalue()


def _csv_line(table: Comparison, row: str, stream: str, metric: str) -> dict[str, Any]:
    """One line; None is written as nothing."""
    nothing = Spread(None, None)  # type: ignore[arg-type]
    entry = table.entries.get((row, stream, metric), Entry(nothing, (), ()))
    paper, costs = entry.published or nothing, table.costs.get((row, stream), {})
    return {
        "row": row,
        "label": table.labels.get(row, row),
        "bound": _yes(row in table.bounds),
        "keeps_examples": _yes(table.keeps_examples.get(row, False)),
        "stream": stream,
        "stand_in": _yes(stream in table.stand_ins),
        "metric": metric,
        "grading": table.grading,
        "mean": entry.ours.mean,
        "deviation": entry.ours.deviation,
        "rank": entry.rank,
        "p_value": entry.significance,
        "published_mean": paper.mean,
        "published_deviation": paper.deviation,
        "difference": entry.difference,
        **{name: costs.get(name) for name in COSTS},
        "seeds": " ".join(map(str, entry.seeds)),
        "runs": " ".join(entry.runs),
    }


def _yes(value: bool) -> str:
    return "yes" if value else "no"
