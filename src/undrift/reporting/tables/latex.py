"""A comparison as LaTeX: booktabs, to include in a paper or to compile as it is."""

from __future__ import annotations

from collections.abc import Sequence

from undrift.reporting.tables.comparison import Comparison
from undrift.reporting.tables.layout import Grid, Markup, accuracy_grids, cost_grids, legend

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


def latex_document(*tables: Comparison, costs: bool = True) -> str:
    """A whole document that compiles with pdflatex, with one table after the other."""
    body = "\n\\clearpage\n".join(latex_table(table, costs=costs) for table in tables)
    return f"{_PREAMBLE}{body}\\end{{document}}\n"


def latex_table(table: Comparison, *, costs: bool = True) -> str:
    r"""The `table` environments of a comparison; they need `booktabs` and `graphicx`.

    Best bold, second underlined, a star where the best is better by the stated test, the
    paper's number beside ours with the difference. Streams that do not fit beside each other
    get a table each; one that is still too wide is scaled to the line. Notes stand under the
    last table of accuracies.
    """
    title = escape_latex(table.title)
    grids = accuracy_grids(table, _MARKUP)
    bodies = [(caption, _tabular(table, grid)) for caption, grid in _captioned(title, grids)]
    *others, (last, body) = bodies or [(title, "")]  # nothing was run: the notes say why
    parts = [*(_float(*other) for other in others), _float(last, body, _notes(table))]
    if costs and table.costs:
        found = _captioned(f"{title}: cost", cost_grids(table, _MARKUP))
        parts += [_float(caption, _tabular(table, grid)) for caption, grid in found]
    return "% needs \\usepackage{booktabs,graphicx}\n" + "\n".join(parts)


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is; what its fonts lack is written as a code point.

    >>> print(escape_latex("50% of a_b & é"))
    50\% of a\_b \& é
    >>> print(escape_latex("数"))
    {[}U+6570{]}
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
_MARKUP = Markup(
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
    text += [_line([*("" for _ in grid.first), *spans]), "".join(rules)]
    text.append(_line([*grid.first, *grid.names]))
    before = None
    for row, cells in zip(table.rows, grid.lines, strict=True):
        bound = row in table.bounds
        if before is None or bound != before:
            text.append("\\midrule")
        text.append(_line(cells))
        before = bound
    return "\n".join([*text, "\\bottomrule", "\\end{tabular}}"])


def _line(cells: Sequence[str]) -> str:
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
