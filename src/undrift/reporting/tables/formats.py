"""A comparison as Markdown, as LaTeX with booktabs, and as tidy CSV, all from one layout."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from undrift.formatting import size
from undrift.reporting.names import stream_title, symbol
from undrift.reporting.tables.comparison import LEVEL, Comparison, ComparisonEntry, SeedMean

COSTS = {"seconds": "seconds", "memory_mb": "memory, MB", "kept_bytes": "kept"}
PAPER = "paper"

_Column = tuple[str, list[str]]
"""The name of a column, and what stands in it, row by row."""

_Groups = Mapping[str, list[_Column]]


def escape_markdown(text: str) -> str:
    r"""Text that Markdown and HTML leave as it is, on one line, also inside a table."""
    line = re.sub(r"([\\`*_\[\]|~$])", r"\\\1", " ".join(text.split()))
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True)
class Markup:
    """How a markup writes a cell, by default Markdown; `%s` stands for the text that is marked."""

    escape: Callable[[str], str] = escape_markdown
    symbol: str = "%s_%s"
    missing: str = "–"
    plus_minus: str = "±"
    best: str = "**%s**"
    second: str = "<u>%s</u>"
    beaten: str = " \\*"
    keeps_examples: str = " †"
    difference: str = "%s"


@dataclass(frozen=True)
class Panel:
    """A table on a page: streams over their columns, the `first` before them; all escaped."""

    first: Sequence[str]
    streams: Sequence[tuple[str, int]]
    names: Sequence[str]
    lines: Sequence[Sequence[str]]


def accuracy_grids(table: Comparison, markup: Markup, width: int = 8) -> list[Panel]:
    """Accuracies and the paper's, where there are any, whole streams in `width` columns each."""
    groups: _Groups = {stream: [] for stream in table.streams}
    for stream, columns in groups.items():
        for metric in table.metrics_on(stream):
            entries = [table.entries.get((row, stream, metric)) for row in table.rows]
            name = symbol(metric, markup.symbol, markup.escape)
            columns.append((name, [_ours(entry, markup) for entry in entries]))
            if any(entry and entry.published for entry in entries):
                columns.append((PAPER, [_paper(entry, markup) for entry in entries]))
    return _grids(table, markup, groups, width)


def cost_grids(table: Comparison, markup: Markup, width: int = 9) -> list[Panel]:
    """What the rows cost, without the columns that no run measured."""
    groups: dict[str, list[_Column]] = {}
    for stream in table.streams:
        spent = [table.costs.get((row, stream), {}) for row in table.rows]
        texts = {n: [cost_text(n, cost.get(n)) or markup.missing for cost in spent] for n in COSTS}
        measured = [name for name in COSTS if any(name in cost for cost in spent)]
        groups[stream] = [(markup.escape(COSTS[name]), texts[name]) for name in measured]
    keeps = [_yes(table.keeps_examples.get(row, False)) for row in table.rows]
    return _grids(table, markup, groups, width, ("keeps examples", keeps))


def _grids(
    table: Comparison, markup: Markup, groups: _Groups, width: int, *more: _Column
) -> list[Panel]:
    """Whole streams side by side in `width` columns, after the names of the rows and `more`."""
    packed: list[list[str]] = []
    for stream, columns in groups.items():
        if packed and sum(len(groups[s]) for s in packed[-1]) + len(columns) <= width:
            packed[-1].append(stream)
        elif columns:
            packed.append([stream])
    marks = {row: markup.keeps_examples for row in table.rows if table.keeps_examples.get(row)}
    names = [markup.escape(table.labels.get(r, r)) + marks.get(r, "") for r in table.rows]
    first = [("", names), *more]
    grids = []
    for streams in packed:
        columns = [column for stream in streams for column in groups[stream]]
        titles = {s: markup.escape(stream_title(s, stand_in=s in table.stand_ins)) for s in streams}
        spans = [(title, len(groups[stream])) for stream, title in titles.items()]
        lines = [[*line] for line in zip(*(texts for _, texts in [*first, *columns]), strict=True)]
        grids.append(Panel([name for name, _ in first], spans, [n for n, _ in columns], lines))
    return grids


def cost_text(name: str, value: float | None) -> str | None:
    """A cost for the reader: no more digits than it is worth."""
    if value is None or name == "kept_bytes":
        return None if value is None else size(value)
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def legend(table: Comparison) -> list[tuple[str, str]]:
    """The marks that occur in a table (`*`, `†`, `–`), each with what it says."""
    cells = sum(len(table.metrics_on(stream)) for stream in table.streams) * len(table.rows)
    beaten = any(entry.beaten for entry in table.entries.values())
    marks = {
        ("*", f"the best of the column is better than this row, p < {LEVEL:g}"): beaten,
        ("†", "keeps examples of earlier tasks"): any(map(table.keeps_examples.get, table.rows)),
        ("–", "no number: no run is finished, or none was asked for"): len(table.entries) < cells,
    }
    return [mark for mark, there in marks.items() if there]


def _ours(entry: ComparisonEntry | None, markup: Markup) -> str:
    if entry is None:
        return markup.missing
    text = f"{entry.ours.mean:.2f}"
    if entry.ours.deviation is not None:
        text += f" {markup.plus_minus} {entry.ours.deviation:.2f}"
    text = {1: markup.best, 2: markup.second}.get(entry.rank or 0, "%s") % text
    return text + (markup.beaten if entry.beaten else "")


def _paper(entry: ComparisonEntry | None, markup: Markup) -> str:
    if entry is None or entry.published is None:
        return ""
    return f"{entry.published.mean:.2f} ({markup.difference % f'{entry.difference:+.2f}'})"


def markdown_table(table: Comparison) -> str:
    """The table with its title as a heading, its costs and its notes."""
    parts = [f"## {escape_markdown(table.title)}"]
    parts += map(_markdown_grid, accuracy_grids(table, Markup()))
    if table.costs:
        parts += ["### Cost", *map(_markdown_grid, cost_grids(table, Markup()))]
    notes = [f"{escape_markdown(mark)} {text}" for mark, text in legend(table)]
    notes += map(escape_markdown, table.notes)
    parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_grid(grid: Panel) -> str:
    # no cell goes over several columns: ours name the stream, the rest follow
    streams = [title for title, width in grid.streams for _ in range(width)]
    named = zip(streams, grid.names, strict=True)
    header = [name if name == PAPER else f"{stream} {name}" for stream, name in named]
    rule = [":--"] * len(grid.first) + ["--:"] * len(header)
    lines = ([*grid.first, *header], rule, *grid.lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


_MARKS = {"*": r"$^{\ast}$", "†": r"$^{\dagger}$", "–": "--"}
_ESCAPES = {char: f"\\{char}" for char in "&%$#_{}"}
_ESCAPES |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPES |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''"}
_ESCAPES |= {"[": "{[}", "]": "{]}", "*": "{*}"}  # after \\ they would be its argument
_ESCAPES |= {"±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "†": r"$\dagger$", "–": "--"}
_ESCAPES |= {"—": "---", "…": r"\dots{}", "γ": r"$\gamma$", "α": r"$\alpha$"}
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
% needs \usepackage{booktabs,graphicx}
"""


def latex_document(table: Comparison) -> str:
    """A whole document that compiles with pdflatex; a table too wide is scaled to the line."""
    title = escape_latex(table.title)
    *others, (last, body) = _captioned(table, title, accuracy_grids(table, _LATEX)) or [(title, "")]
    notes = [f"{_MARKS[mark]} {escape_latex(text)}." for mark, text in legend(table)]
    if notes := [*notes, *map(escape_latex, table.notes)]:
        body += "\n\\par\\medskip\n\\begin{minipage}{\\linewidth}\\footnotesize\\raggedright\n"
        body += "\\par\n".join(notes) + "\n\\end{minipage}"
    floats = [*others, (last, body.strip("\n"))]
    if table.costs:
        floats += _captioned(table, f"{title}: cost", cost_grids(table, _LATEX))
    tables = "\n".join(
        "\\begin{table}[htbp]\n\\centering\n"
        f"\\caption{{{caption}}}\n\\medskip\n\\small\\setlength{{\\tabcolsep}}{{5pt}}\n"
        f"{body or '%'}\n\\end{{table}}\n"
        for caption, body in floats
    )
    return f"{_PREAMBLE}{tables}\\end{{document}}\n"


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
    # LaTeX makes the letters of Latin-1 out of any font, but for these four
    plain = " " <= char <= "~" or ("À" <= char <= "ÿ" and char not in "ÐÞðþ")
    return _ESCAPES.get(char, char if plain else f"{{[}}U+{ord(char):04X}{{]}}")


# a star has no width of its own, so that digits stay below digits
_LATEX = Markup(
    escape=escape_latex,
    symbol=r"$\mathcal{%s}_{%s}$",
    missing="--",
    plus_minus="$\\pm$",
    best="\\textbf{%s}",
    second="\\underline{%s}",
    beaten=f"\\rlap{{{_MARKS['*']}}}",
    keeps_examples=_MARKS["†"],
    difference="$%s$",
)


def _captioned(table: Comparison, caption: str, grids: Sequence[Panel]) -> list[tuple[str, str]]:
    numbers = [f" ({at} of {len(grids)})" if grids[1:] else "" for at in range(1, len(grids) + 1)]
    return [(caption + n, _tabular(table, grid)) for n, grid in zip(numbers, grids, strict=True)]


def _tabular(table: Comparison, grid: Panel) -> str:
    """Two lines of headers (streams over their columns), then the rows, bounds ruled off."""
    spans, rules, at = [""] * len(grid.first), "", len(grid.first) + 1
    for title, width in grid.streams:
        spans.append(f"\\multicolumn{{{width}}}{{c}}{{{title}}}")
        rules += f"\\cmidrule(lr){{{at}-{at + width - 1}}}"
        at += width
    every = (spans, [*grid.first, *grid.names], *grid.lines)
    over, header, *lines = (" & ".join(cells) + r" \\" for cells in every)
    sides = "l" * len(grid.first) + "r" * len(grid.names)
    text = [_FIT, f"\\begin{{tabular}}{{{sides}}}", "\\toprule", over, rules, header]
    before = None
    for row, line in zip(table.rows, lines, strict=True):
        text += [line] if (row in table.bounds) == before else ["\\midrule", line]
        before = row in table.bounds
    return "\n".join([*text, "\\bottomrule", "\\end{tabular}}"])


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
    nothing = SeedMean(None, None)  # type: ignore[arg-type]
    entry = table.entries.get((row, stream, metric), ComparisonEntry(nothing, (), ()))
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
