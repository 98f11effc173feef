"""Maps of colours: performance matrices side by side, and what searches over grids found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil, nan
from statistics import fmean
from typing import TYPE_CHECKING, Any

from paper.published import SHOWN
from paper.report_figures.chosen import choice, not_run, only, safe_name, stand_ins
from undrift.experiments.result import Result
from undrift.experiments.search import CHOSEN_BY
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import HEADLINE, Figure, Shown, missing, pages, ready
from undrift.reporting.figures.sheet import COLUMN, PLAIN, SMALL
from undrift.reporting.figures.style import display, drawn_title, seeds_of, title_of
from undrift.reporting.names import symbol, value_text
from undrift.reporting.search_grids import SearchGrid, search_grids

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _TOP, _HEAD, _BOTTOM, _GAP, _BAR = 8.5, 5.5, 7.5, 8.0, 2.0, 10.5  # in mm
_WIDEST = f"{HEADLINE.symbol.replace('_', '')} 100.0"  # as wide as what stands under a name
_LEAST = 18.0  # the least width of a matrix
_CELL, _RIGHT = 5.4, 1.5  # of a surface, in mm
_GREEK = {name: rf"$\{name}$" for name in ("alpha", "beta", "gamma", "lambda")}
_CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL}
_UNSAID = ("alpha", "gamma")  # a file's name tells of other parameters


def matrices(shown: Shown) -> Iterator[Figure]:
    """A figure per stream."""
    groups = only(shown, SHOWN["matrices"])
    if not groups:
        yield not_run("matrices")
    for stream, found in groups.items():
        title = f"Performance matrices on {title_of(next(iter(found.values()))[0])}"
        caption = (
            "The accuracy on task i after learning task t, mean over seeds, under one colour scale."
            + choice(shown, "matrices", [stream])
        )
        draw = ready(matrices_figure, found)
        yield Figure(f"matrices-{safe_name(stream)}", title, caption, draw)


@sheet.house_style
def matrices_figure(found: Mapping[str, Sequence[Result]]) -> Any:
    """M[t, i] by class of several methods on one stream, each the mean over its seeds."""
    inner = COLUMN - _LEFT - _BAR
    columns = min(int((inner + _GAP) / (_LEAST + _GAP)), len(found))
    rows = ceil(len(found) / columns)
    columns = ceil(len(found) / rows)  # as even as the rows allow
    size = min((inner + _GAP) / columns - _GAP, 60.0)
    # do two lines of text in the upper right corner stay clear of the diagonal?
    longest = max(sheet.text_width(words, PLAIN) for words in (*map(display, found), _WIDEST))
    head = 0.0 if size - longest - 0.5 > 7.0 else _HEAD
    down = head + size + _GAP
    figure = sheet.blank(COLUMN, _TOP + rows * down - _GAP + _BOTTOM)
    for k, (method, runs) in enumerate(found.items()):
        row, column = divmod(k, columns)
        left, top = _LEFT + column * (size + _GAP), _TOP + row * down + head
        axes = sheet.panel(figure, left, top, size, size)
        _matrix(axes, method, runs, size, inside=not head)
        lowest = k + columns >= len(found)
        axes.set_ylabel("after task $t$" if column == 0 else "", fontsize=PLAIN, labelpad=1)
        axes.set_xlabel("on task $i$" if lowest else "", fontsize=PLAIN, labelpad=1)
        axes.tick_params(labelleft=column == 0, labelbottom=lowest)
    words = f"accuracy per task (%), {seeds_of(found.values())}"
    sheet.heading(figure.axes[0], title_of(next(iter(found.values()))[0]), words, lift=head)
    place = sheet.panel(figure, _LEFT + columns * (size + _GAP), _TOP + head, 2.2, size)
    bar = figure.colorbar(figure.axes[0].images[0], cax=place, ticks=range(0, 101, 25))
    bar.outline.set_visible(False)
    place.tick_params(labelsize=SMALL, width=0.6, length=2, pad=1.5)
    return figure


def _matrix(axes: Axes, method: str, runs: Sequence[Result], size: float, *, inside: bool) -> None:
    # a run that is still going cuts the mean short
    rows = [
        [fmean(cell) for cell in zip(*rows, strict=True)]
        for rows in zip(*(run.by_class.rows for run in runs), strict=False)
    ]
    tasks = len(rows)
    cells = [[*row, *[nan] * (tasks - len(row))] for row in rows]
    axes.imshow(cells, cmap="cividis", vmin=0, vmax=100, interpolation="none")
    widest = max(sheet.text_width(f"{accuracy:.0f}") for row in rows for accuracy in row)
    for t, row in enumerate(rows if size / tasks > widest + 0.4 else ()):
        for i, accuracy in enumerate(row):
            shade = "black" if accuracy > 50 else "white"
            axes.text(i, t, f"{accuracy:.0f}", color=shade, **_CENTRED)
    ticks = range(0, tasks, ceil(tasks * 3.6 / size))
    axes.set(xticks=ticks, yticks=ticks)
    sheet.dress(axes)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=1.5, pad=1)
    average = fmean(run.value(HEADLINE.key) for run in runs)
    name = f"{display(method)}\n{symbol(HEADLINE.key, sheet.MATHS)} {average:.1f}"
    corner, offset, across, up = (
        ((1, 1), (-1, -2), "right", "top") if inside else ((0, 1), (0, 2), "left", "bottom")
    )
    units = "axes fraction", "offset points"
    side: dict[str, Any] = {"ha": across, "va": up, "fontsize": PLAIN, "linespacing": 1.25}
    axes.annotate(name, corner, offset, *units, **side)


def surfaces(shown: Shown) -> Iterator[Figure]:
    """A figure per method and what its trials share; only a grid of two parameters has one."""
    found: dict[tuple[str, str, tuple[str, ...]], dict[str, list[SearchGrid]]] = {}
    grids = search_grids(shown.records.searches)
    for grid in grids:
        if len(varied(grid)) == 2:
            params = sorted(grid.base.params.items())
            shared = " ".join(f"{name}={value}" for name, value in params)
            key = grid.base.method, shared, tuple(varied(grid))
            found.setdefault(key, defaultdict(list))[grid.base.place].append(grid)
    for (method, shared, axes), by_stream in sorted(found.items()):
        whole = f"surface-{method} {shared}" + ("" if axes == _UNSAID else f" {axes}")
        title = f"Grid search of {display(method)}{f' with {shared}' if shared else ''}"
        caption = (
            f"{CHOSEN_BY.title.capitalize()} {CHOSEN_BY.symbol} on validation nodes over "
            f"{axes[0]} and {axes[1]}. The chosen setting is framed; hatched ones failed or "
            "were not tried."
        )
        for name, streams in pages(safe_name(whole), list(by_stream)):
            here = [grid for stream in streams for grid in by_stream[stream]]
            draw = ready(surface_figure, here, stand_ins=stand_ins(shown))
            yield Figure(name, title, caption, draw)
    for method in SHOWN["surface"]:
        if not any(method == each for each, _, _ in found):
            mine = [", ".join(varied(each)) for each in grids if each.base.method == method]
            why = f"there is no finished search of {display(method)}"
            if mine:
                why = f"the search varies {mine[0] or 'nothing'}; a surface needs two parameters"
            yield missing(f"surface-{method}", why)


def varied(grid: SearchGrid) -> list[str]:
    """The parameters with more than one value, the one with most of them first."""
    several = [name for name, values in grid.values.items() if len(values) > 1]
    return sorted(several, key=lambda name: -len(grid.values[name]))


@sheet.house_style
def surface_figure(grids: Sequence[SearchGrid], *, stand_ins: frozenset[str] = frozenset()) -> Any:
    """Validation scores over a grid of two hyperparameters, a heat map per stream and method.

    What any seed chose is framed, what failed or was not tried hatched. Colours run over at
    least 5 points, so that noise does not look like a trend.
    """
    downs = [[value_text(v) for v in grid.values[varied(grid)[1]]] for grid in grids]
    heights = [len(texts) * _CELL for texts in downs]
    tops = [0.0, *accumulate(height + sheet.TOP + sheet.BOTTOM for height in heights)]
    figure = sheet.blank(COLUMN, tops[-1])
    left = 5.0 + max(sheet.text_width(text) for texts in downs for text in texts)
    inner = COLUMN - left - _RIGHT
    for grid, top, height in zip(grids, tops, heights, strict=False):
        axes = sheet.panel(figure, left, top + sheet.TOP, inner, height)
        _surface(axes, grid, inner / len(grid.values[varied(grid)[0]]))
        stream = drawn_title(grid.base.place, stand_in=grid.base.place in stand_ins)
        several = f", {len(grid.searches)} seeds" if len(grid.searches) > 1 else ""
        words = f"validation {symbol(CHOSEN_BY.key, sheet.MATHS)} (%){several}"
        sheet.heading(axes, f"{stream}, {display(grid.base.method)}", words)
    return figure


def _surface(axes: Axes, grid: SearchGrid, cell_width: float) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    def box(x: float, y: float, wide: float, high: float, **look: Any) -> None:
        axes.add_patch(Rectangle((x - wide / 2, y - high / 2), wide, high, **look))

    names = varied(grid)
    across, down = (grid.values[name] for name in names)
    scores, chosen = grid.scores, grid.chosen
    trials = (trial for search in grid.searches for trial in search.trials)
    failed = {grid.key(trial.params) for trial in trials if trial.validation is None}
    high = max(scores.values(), default=100.0)
    low = min([*scores.values(), high - 5.0])
    colours = colormaps["cividis"]
    rest = {name: values[0] for name, values in grid.values.items()}
    for x, a in enumerate(across):
        for y, b in enumerate(down):
            key = grid.key({**rest, names[0]: a, names[1]: b})
            value = None if key in failed else scores.get(key)
            if value is None:
                grey = {"facecolor": "#F2F2F2", "edgecolor": "#BBBBBB", "hatch": "////"}
                box(x, y, 1, 1, **grey, linewidth=0)
            else:
                shade = (value - low) / (high - low)
                box(x, y, 1, 1, facecolor=colours(shade), linewidth=0)
                if sheet.text_width(text := f"{value:.1f}") < cell_width:
                    ink = "black" if shade > 0.5 else "white"
                    axes.text(x, y, text, **_CENTRED, color=ink)
            if key in chosen:
                for colour, line in (("white", 2.6), ("#D55E00", 1.3)):
                    box(x, y, 0.9, 0.86, fill=False, edgecolor=colour, linewidth=line, zorder=3)
    axes.set(xlim=(-0.5, len(across) - 0.5), ylim=(-0.5, len(down) - 0.5))
    axes.set_xticks(range(len(across)), [value_text(value) for value in across])
    axes.set_yticks(range(len(down)), [value_text(value) for value in down])
    sheet.dress(axes)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    sheet.label(axes, *(_GREEK.get(name, name) for name in names))
    if names[1] in _GREEK:
        axes.yaxis.label.set(rotation=0, va="center")
        axes.yaxis.labelpad = 4
