"""What a search over two hyperparameters found: a heat map per stream with its numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.experiments.search_record import CHOSEN_BY
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import Figure, Shown, missing, pages, ready
from undrift.reporting.figures.sheet import COLUMN
from undrift.reporting.figures.style import display, drawn_title, safe_name
from undrift.reporting.names import symbol, value_text
from undrift.reporting.search_grids import SearchGrid, search_grids

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREEK = {"alpha": r"$\alpha$", "gamma": r"$\gamma$", "beta": r"$\beta$", "lambda": r"$\lambda$"}
_CELL, _RIGHT = 5.4, 1.5  # in mm
_FRAME = "#D55E00"
_PAPER = ("adr", ["alpha", "gamma"])  # the method of the paper's figure, and its parameters


def figures(shown: Shown) -> Iterator[Figure]:
    """A figure per method and what its trials share; only a grid of two parameters has one."""
    found: dict[tuple[str, str, tuple[str, ...]], dict[str, list[SearchGrid]]] = {}
    grids = search_grids(shown.records.searches)
    for grid in grids:
        if len(grid.varied) == 2:
            params = sorted(grid.base.params.items())
            shared = " ".join(f"{name}={value}" for name, value in params)
            key = grid.base.method, shared, tuple(grid.varied)
            found.setdefault(key, defaultdict(list))[grid.base.place].append(grid)
    for (method, shared, axes), by_stream in sorted(found.items()):
        whole = f"surface-{method} {shared}" + ("" if [*axes] == _PAPER[1] else f" {axes}")
        for name, streams in pages(safe_name(whole), list(by_stream)):
            title = f"Grid search of {display(method)}{f' with {shared}' if shared else ''}"
            caption = (
                f"{CHOSEN_BY.title.capitalize()} {CHOSEN_BY.symbol} on validation nodes over "
                f"{axes[0]} and {axes[1]}. The chosen setting is framed; hatched ones failed or "
                "were not tried."
            )
            here = [grid for stream in streams for grid in by_stream[stream]]
            draw = ready(surface_figure, here, stand_ins=shown.stand_ins, width=shown.width)
            yield Figure(name, title, caption, draw)
    if not any(method == _PAPER[0] for method, _, _ in found):
        mine = [each.varied for each in grids if each.base.method == _PAPER[0]]
        why = f"there is no finished search of {display(_PAPER[0])}"
        if mine:
            varied = ", ".join(mine[0]) or "nothing"
            why = f"the search varies {varied}; a surface needs two parameters"
        yield missing(f"surface-{_PAPER[0]}", why)


@sheet.house_style
def surface_figure(
    grids: Sequence[SearchGrid], *, stand_ins: frozenset[str] = frozenset(), width: float = COLUMN
) -> Any:
    """Validation scores over a grid of two hyperparameters, a heat map per stream and method.

    What any seed chose is framed, what failed or was not tried hatched. Colours run over at
    least 5 points, so that noise does not look like a trend.
    """
    for grid in grids:
        if len(grid.varied) != 2:
            raise InputError(
                f"the search of {grid.base.method} on {grid.base.place} varies "
                f"{', '.join(grid.varied) or 'nothing'}; a surface needs a grid with exactly two "
                "parameters of more than one value"
            )
    if not grids:
        raise InputError("a surface needs at least one search; run undrift bench first")
    columns = max(min(int(width / COLUMN), len(grids)), 1)
    rows = [grids[k : k + columns] for k in range(0, len(grids), columns)]
    downs = {id(grid): [value_text(v) for v in grid.values[grid.varied[1]]] for grid in grids}
    heights = [max(len(downs[id(grid)]) for grid in row) * _CELL for row in rows]
    tops = [0.0, *accumulate(height + sheet.TOP + sheet.BOTTOM for height in heights)]
    figure = sheet.blank(width, tops[-1])
    left = 5.0 + max(sheet.text_width(text) for texts in downs.values() for text in texts)
    for k, grid in enumerate(grids):
        row, column = divmod(k, columns)
        inner = width / columns - left - _RIGHT
        at = column * width / columns + left, tops[row] + sheet.TOP
        axes = sheet.panel(figure, *at, inner, len(downs[id(grid)]) * _CELL)
        _map(axes, grid, inner / len(grid.values[grid.varied[0]]))
        _name_axes(axes, grid, stand_in=grid.base.place in stand_ins)
    return figure


def _map(axes: Axes, grid: SearchGrid, cell_width: float) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    def box(x: float, y: float, wide: float, high: float, **look: Any) -> None:
        axes.add_patch(Rectangle((x - wide / 2, y - high / 2), wide, high, **look))

    across, down = (grid.values[name] for name in grid.varied)
    scores, chosen, failed = grid.scores, grid.chosen, grid.failed
    high = max(scores.values(), default=100.0)
    low = min([*scores.values(), high - 5.0])
    colours = colormaps["cividis"]
    rest = {name: values[0] for name, values in grid.values.items()}
    for x, a in enumerate(across):
        for y, b in enumerate(down):
            key = grid.key({**rest, grid.varied[0]: a, grid.varied[1]: b})
            value = None if key in failed else scores.get(key)
            if value is None:
                grey = {"facecolor": "#F2F2F2", "edgecolor": "#BBBBBB", "hatch": "////"}
                box(x, y, 1, 1, **grey, linewidth=0)
            else:
                shade = (value - low) / (high - low)
                box(x, y, 1, 1, facecolor=colours(shade), linewidth=0)
                if sheet.text_width(text := f"{value:.1f}") < cell_width:
                    ink = "black" if shade > 0.5 else "white"
                    axes.text(x, y, text, **sheet.CENTRED, color=ink)
            if key in chosen:
                for colour, line in (("white", 2.6), (_FRAME, 1.3)):
                    box(x, y, 0.9, 0.86, fill=False, edgecolor=colour, linewidth=line, zorder=3)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(-0.5, len(down) - 0.5)
    axes.set_xticks(range(len(across)), [value_text(value) for value in across])
    axes.set_yticks(range(len(down)), [value_text(value) for value in down])
    sheet.dress(axes)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _name_axes(axes: Axes, grid: SearchGrid, *, stand_in: bool) -> None:
    across, down = grid.varied
    sheet.label(axes, _GREEK.get(across, across), _GREEK.get(down, down))
    if down in _GREEK:
        axes.yaxis.label.set(rotation=0, va="center")
        axes.yaxis.labelpad = 4
    stream = drawn_title(grid.base.place, stand_in=stand_in)
    several = f", {len(grid.searches)} seeds" if len(grid.searches) > 1 else ""
    words = f"validation {symbol(CHOSEN_BY.key, sheet.MATHS)} (%){several}"
    sheet.heading(axes, f"{stream}, {display(grid.base.method)}", words)
