"""Plasticity: how well each task is learned, A_l per stream, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.reporting.figures.sheet import (
    COLUMN,
    PLAIN,
    SMALL,
    dress,
    house_style,
    legend_above,
    panel,
    sheet,
)
from undrift.reporting.figures.shown_runs import Groups, mean_and_deviation, outside_methods
from undrift.reporting.figures.style import display, ink, style_of, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["METHODS_SHOWN", "plasticity_figure"]

METHODS_SHOWN = ("adr", "acil", "ds-al", "bare")
"""The methods of the paper's figure; Bare is the upper bound of plasticity."""

_HEIGHT, _TOP, _BOTTOM, _LEFT, _RIGHT = 40.0, 7.0, 9.0, 10.0, 1.5
_BAR, _GAP = 3.0, 3.0  # the least width of a bar and of the space between streams, in mm


@house_style
def plasticity_figure(
    groups: Groups, methods: Sequence[str] = METHODS_SHOWN, *, width: float = COLUMN
) -> Figure:
    """A_l (eq. 13) by class of a few methods: a group of bars per stream, the mean over seeds.

    The whiskers are one standard deviation to either side. The mean is written in the bar, read
    from below. Streams go to a next row when their bars would be narrower than 3 mm.
    """
    from matplotlib.patches import Patch

    streams = [stream for stream, found in groups.items() if any(m in found for m in methods)]
    if not streams:
        raise InputError(f"plasticity needs runs of {', '.join(methods)}; run one of them first")
    shown = [method for method in methods if any(method in groups[s] for s in streams)]
    inner = width - _LEFT - _RIGHT
    most = max(int(inner / (len(shown) * _BAR + _GAP)), 1)
    rows = ceil(len(streams) / most)
    per_row = ceil(len(streams) / rows)
    figure = sheet(width, rows * (_HEIGHT + _BOTTOM) + _TOP)
    for row in range(rows):
        axes = panel(figure, _LEFT, _TOP + row * (_HEIGHT + _BOTTOM), inner, _HEIGHT)
        _bars(axes, groups, streams[row * per_row : (row + 1) * per_row], shown)
        middle, half = (per_row - 1) / 2, max(per_row, 3) / 2  # a lone stream's bars stay bars
        axes.set_xlim(middle - half, middle + half)
    outside = outside_methods(groups)
    patches = [Patch(color=style_of(m, outside.get(m, 0))["color"]) for m in shown]
    names = [display(method) for method in shown]
    legend_above(figure, list(zip(patches, names, strict=True)), (_LEFT + width - _RIGHT) / 2)
    return figure


_UPRIGHT: dict[str, Any] = {
    "rotation": 90,
    "ha": "center",
    "va": "bottom",
    "fontsize": SMALL,
}
_WHISKER: dict[str, Any] = {
    "elinewidth": 0.7,
    "capsize": 1.6,
    "capthick": 0.7,
    "ecolor": "black",
}


def _bars(axes: Axes, groups: Groups, streams: Sequence[str], methods: Sequence[str]) -> None:
    outside = outside_methods(groups)
    step = (1 - 0.16) / len(methods)
    for k, method in enumerate(methods):
        colour = style_of(method, outside.get(method, 0))["color"]
        for at, stream in enumerate(streams):
            runs = groups[stream].get(method, ())
            place = at + (k - (len(methods) - 1) / 2) * step
            if not runs:
                axes.text(place, 1, "not run", **_UPRIGHT, color="#777777")
                continue
            mean, spread = mean_and_deviation([run.metrics.by_class.a_l for run in runs])
            axes.bar(place, mean, step * 0.92, color=colour)
            if spread is not None:
                axes.errorbar(place, mean, min(spread, mean), fmt="none", **_WHISKER)
            inside = mean - (spread or 0) > 22  # there is room for the number under the whisker
            dark = ink(colour) == colour.upper()
            axes.text(
                place,
                2 if inside else mean + (spread or 0) + 2,
                f"{mean:.1f}",
                **_UPRIGHT,
                color="white" if inside and dark else "black",
            )
    titles = [title_of(next(runs[0] for runs in groups[s].values() if runs)) for s in streams]
    axes.set_xticks(
        range(len(streams)),
        [_broken(title) for title in titles],
    )
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("learning accuracy $A_l$ (%)", fontsize=PLAIN, labelpad=2)
    dress(axes, "y")
    axes.tick_params(axis="x", length=0)


def _broken(title: str) -> str:
    """A stream's name on two lines, where it says more than a name."""
    for mark in (" stand-in", "@", " ("):
        head, found, tail = title.partition(mark)
        if found:
            return f"{head}\n{found.strip()}{tail}"
    return title
