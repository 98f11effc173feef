"""Learning curves A_t of all methods, one panel per stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.reporting.figures.files import limits, spread_apart
from undrift.reporting.figures.sheet import (
    COLUMN,
    PLAIN,
    SMALL,
    dress,
    heading,
    house_style,
    mm,
    panel,
    sheet,
    text_width,
)
from undrift.reporting.figures.shown_runs import (
    Groups,
    mean_and_deviation,
    outside_methods,
    seeds_of,
)
from undrift.reporting.figures.style import display, ink, style_of, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from undrift.experiments.result import Result

__all__ = ["curves_figure"]

_LEFT, _TOP, _BOTTOM = 10.0, 5.5, 8.5
_LEAST = 42.0  # the least height of a panel, in mm
_LINE = mm(SMALL * 1.12)  # the height of a line of small text
_LEADER = 5.5  # from the end of the axes to a name, in mm
_BOLD = ("adr",)  # what the eye looks for first


@house_style
def curves_figure(groups: Groups, *, width: float = COLUMN) -> Figure:
    """A_t by class after each task: the mean over seeds, and a band of one deviation.

    Every line is named at its end beside its marker, with names moved apart where lines end
    close together, so that nothing must be looked up in a legend.
    """
    if not groups or not all(any(found.values()) for found in groups.values()):
        raise InputError("learning curves need at least one result per stream; run some first")
    columns = max(int(width / COLUMN), 1)
    rows = ceil(len(groups) / columns)
    methods = {method for found in groups.values() for method in found}
    room = _LEADER + max(text_width(display(method)) for method in methods) + 2.5
    height = max(_LEAST, _LINE * max(len(found) for found in groups.values()) + 1)
    across, down = width / columns, _TOP + height + _BOTTOM
    figure = sheet(width, rows * down)
    outside = outside_methods(groups)
    for k, (_, found) in enumerate(groups.items()):
        left, top = k % columns * across + _LEFT, k // columns * down + _TOP
        axes = panel(figure, left, top, across - _LEFT - room, height)
        _draw(axes, found, outside, (across - _LEFT - room, height))
    return figure


def _draw(
    axes: Axes,
    found: Mapping[str, Sequence[Result]],
    outside: Mapping[str, int],
    size: tuple[float, float],
) -> None:
    found = {method: runs for method, runs in found.items() if runs}
    steps = max(len(run.by_class) for runs in found.values() for run in runs)
    every = max(steps // 5, 1)
    ends: dict[str, tuple[float, float]] = {}
    for k, (method, runs) in enumerate(found.items()):
        style = style_of(method, outside.get(method, 0))
        # a run that is still going ends the line early
        points = [mean_and_deviation(c) for c in zip(*(r.by_class.a_t for r in runs), strict=False)]
        means = [mean for mean, _ in points]
        bold = method in _BOLD
        axes.plot(
            range(len(means)),
            means,
            **style,
            linewidth=1.5 if bold else 0.9,
            markersize=3.4 if bold else 3.0,
            markeredgewidth=0.7,
            markevery=(k % every, every),  # not all at the same t
            zorder=4 if bold else 3,
        )
        if len(runs) > 1:
            low = [mean - (spread or 0) for mean, spread in points]
            high = [mean + (spread or 0) for mean, spread in points]
            shade = {"color": style["color"], "alpha": 0.1, "linewidth": 0}
            axes.fill_between(range(len(means)), low, high, **shade)
        ends[method] = len(means) - 1, means[-1]
    axes.set_xticks(range(0, steps, 1 + (steps - 1) // 11))
    axes.set_xlim(-0.02 * steps, max(steps - 1, 0.5) + 0.02 * steps)
    axes.set_ylim(*limits(*axes.get_ylim()))
    axes.set_xlabel("task $t$", fontsize=PLAIN, labelpad=1)
    axes.set_ylabel("accuracy $A_t$ (%)", fontsize=PLAIN, labelpad=2)
    dress(axes, "y")
    runs = next(iter(found.values()))
    heading(axes, title_of(runs[0]), seeds_of(found.values()))
    _name_ends(axes, ends, outside, size)


def _name_ends(
    axes: Axes,
    ends: Mapping[str, tuple[float, float]],
    outside: Mapping[str, int],
    size: tuple[float, float],
) -> None:
    """A leader, a marker and a name for every line, right of the axes."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    unit = (right - left) / size[0]  # of x, per mm
    names = sorted(ends, key=lambda name: ends[name][1])
    inset = (high - low) / size[1] * _LINE / 2
    heights = spread_apart(
        [ends[name][1] for name in names],
        (high - low) / size[1] * _LINE,
        low + inset,
        high - inset,
    )
    for name, height in zip(names, heights, strict=True):
        style = style_of(name, outside.get(name, 0))
        x, y = ends[name]
        axes.plot(
            [x, right + unit * 0.6, right + unit * (_LEADER - 1)],
            [y, y, height],
            color=style["color"],
            linewidth=0.5,
            clip_on=False,
            zorder=2,
        )
        mark = {key: style[key] for key in ("color", "marker", "markerfacecolor")}
        place = right + unit * _LEADER
        axes.plot(place, height, **mark, markersize=3.2, markeredgewidth=0.7, clip_on=False)
        axes.text(
            right + unit * (_LEADER + 1.3),
            height,
            display(name),
            va="center_baseline",
            fontsize=SMALL,
            color=ink(style["color"]),
            weight="bold" if name in _BOLD else "normal",
        )
