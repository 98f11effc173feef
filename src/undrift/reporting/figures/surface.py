"""What a search over two hyperparameters found: a heat map per stream with its numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.reporting.figures.sheet import (
    COLUMN,
    PLAIN,
    SMALL,
    dress,
    heading,
    house_style,
    panel,
    sheet,
    text_width,
)
from undrift.reporting.figures.style import display, drawn_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from undrift.experiments.search_record import Search

__all__ = ["surface_axes", "surface_figure"]

_GREEK = {"alpha": r"$\alpha$", "gamma": r"$\gamma$", "beta": r"$\beta$", "lambda": r"$\lambda$"}
_CELL, _TOP, _BOTTOM, _RIGHT = 5.4, 5.5, 8.0, 1.5  # in mm
_FRAME = "#D55E00"


def surface_axes(search: Search) -> tuple[str, str]:
    """The two parameters that a search varies: across (the one with more values) and down.

    A search that varies fewer or more of them has no surface and is an `InputError`.
    """
    varied = sorted(name for name, values in search.spec.grid.items() if len(values) > 1)
    if len(varied) != 2:
        what = ", ".join(varied) or "nothing"
        raise InputError(
            f"the search of {search.spec.base.method} on {search.spec.base.stream} varies {what}; "
            "a surface needs a grid with exactly two parameters of more than one value"
        )
    first, second = varied
    if len(search.spec.grid[first]) >= len(search.spec.grid[second]):
        return first, second
    return second, first


@dataclass(frozen=True)
class _Surface:
    """Searches that differ in their seed alone, and the parameters that they vary."""

    searches: Sequence[Search]
    across: str
    down: str

    def values(self, name: str) -> list[Any]:
        """The values of a parameter, numbers in ascending order, others as the grids list them."""
        listed = [value for search in self.searches for value in search.spec.grid[name]]
        values = list({_text(value): value for value in listed}.values())
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        return sorted(values) if numbers else values

    def cells(self) -> dict[tuple[str, str], float]:
        """Validation a_avg by class of every setting, the mean over seeds; none where failed."""
        scores: dict[tuple[str, str], list[float]] = defaultdict(list)
        failed = set()
        for search in self.searches:
            for trial in search.trials:
                if trial.validation is None:
                    failed.add(self.cell(trial.params))
                else:
                    scores[self.cell(trial.params)].append(trial.validation.by_class.a_avg)
        return {cell: fmean(found) for cell, found in scores.items() if cell not in failed}

    def chosen(self) -> dict[tuple[str, str], int]:
        """How many seeds chose a setting."""
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for search in self.searches:
            counts[self.cell(search.chosen)] += 1
        return counts

    def cell(self, params: Mapping[str, Any]) -> tuple[str, str]:
        return _text(params.get(self.across)), _text(params.get(self.down))


@house_style
def surface_figure(
    searches: Sequence[Search],
    *,
    stand_ins: frozenset[str] = frozenset(),
    width: float = COLUMN,
) -> Figure:
    """Validation A_avg over a grid of two hyperparameters, a heat map per stream and method.

    Searches that differ in their seed alone are averaged. What was chosen is
    framed, once per setting that any seed chose. A setting that failed or was not tried is
    hatched. Colours run over the values of a map, at least over 5 points, so that noise does
    not look like a trend; the numbers are in the cells.
    """
    if not searches:
        raise InputError("a surface needs at least one search; run undrift bench first")
    grouped: dict[tuple[str, tuple[str, str]], list[Search]] = defaultdict(list)
    for search in searches:
        alike = search.spec.base.model_copy(update={"seed": 0}).model_dump_json()
        grouped[alike, surface_axes(search)].append(search)
    surfaces = [_Surface(found, *axes) for (_, axes), found in grouped.items()]
    columns = max(min(int(width / COLUMN), len(surfaces)), 1)
    rows = [surfaces[k : k + columns] for k in range(0, len(surfaces), columns)]
    heights = [max(len(s.values(s.down)) for s in row) * _CELL for row in rows]
    tops = [0.0, *accumulate(height + _TOP + _BOTTOM for height in heights)]
    figure = sheet(width, tops[-1])
    left = 5.0 + max(text_width(_text(v)) for s in surfaces for v in s.values(s.down))
    for k, surface in enumerate(surfaces):
        row, column = divmod(k, columns)
        inner = width / columns - left - _RIGHT
        at = column * width / columns + left, tops[row] + _TOP
        height = len(surface.values(surface.down)) * _CELL
        axes = panel(figure, *at, inner, height)
        _map(axes, surface, inner / len(surface.values(surface.across)), stand_ins)
    return figure


def _map(axes: Axes, surface: _Surface, cell_width: float, stand_ins: frozenset[str]) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    across, down = surface.values(surface.across), surface.values(surface.down)
    cells, chosen = surface.cells(), surface.chosen()
    high = max(cells.values(), default=100.0)
    low = min([*cells.values(), high - 5.0])
    colours = colormaps["cividis"]
    for x, a in enumerate(across):
        for y, b in enumerate(down):
            value = cells.get((_text(a), _text(b)))
            box = (x - 0.5, y - 0.5)
            if value is None:
                blank = Rectangle(box, 1, 1, facecolor="#F2F2F2", edgecolor="#BBBBBB")
                blank.set(hatch="////", linewidth=0)
                axes.add_patch(blank)
            else:
                shade = (value - low) / (high - low)
                axes.add_patch(Rectangle(box, 1, 1, facecolor=colours(shade), linewidth=0))
                text = f"{value:.1f}"
                if text_width(text) < cell_width:
                    ink = "black" if shade > 0.5 else "white"
                    axes.text(x, y, text, ha="center", va="center", fontsize=SMALL, color=ink)
            if (_text(a), _text(b)) in chosen:
                for colour, line in (("white", 2.6), (_FRAME, 1.3)):
                    edge = Rectangle((x - 0.45, y - 0.43), 0.9, 0.86, fill=False)
                    edge.set(edgecolor=colour, linewidth=line, zorder=3)
                    axes.add_patch(edge)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(-0.5, len(down) - 0.5)
    axes.set_xticks(range(len(across)), [_text(value) for value in across])
    axes.set_yticks(range(len(down)), [_text(value) for value in down])
    dress(axes)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _name_axes(axes, surface, stand_ins)


def _name_axes(axes: Axes, surface: _Surface, stand_ins: frozenset[str]) -> None:
    axes.set_xlabel(_GREEK.get(surface.across, surface.across), fontsize=PLAIN, labelpad=1)
    short = surface.down in _GREEK
    axes.set_ylabel(
        _GREEK.get(surface.down, surface.down),
        fontsize=PLAIN,
        labelpad=4 if short else 2,
        rotation=0 if short else 90,
        va="center" if short else "baseline",
    )
    base, seeds = surface.searches[0].spec.base, len(surface.searches)
    stream = drawn_title(base.stream, stand_in=base.stream in stand_ins)
    title = f"{stream}, {display(base.method)}"
    several = f", {seeds} seeds" if seeds > 1 else ""
    heading(axes, title, rf"validation $A_{{\mathrm{{avg}}}}$ (%){several}")


def _text(value: Any) -> str:
    """A value as its tick label, which is also how a trial is told to belong to a cell."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, list | tuple):
            return "+".join(_text(part) for part in value)
        return str(value)
    return f"{value:g}"
