"""Plasticity: how well each task is learned, A_l per stream, as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import Figure, Groups, Shown, chosen, named, not_run, ready
from undrift.reporting.figures.style import display, ink, style_of, title_of
from undrift.reporting.names import metric_value, symbol
from undrift.reporting.tables.comparison import Spread, spread_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS_SHOWN = ("adr", "acil", "ds-al", "bare")  # of the paper's figure

METRIC = METRICS["a_l"]
_NEWEST = "bare"  # fits the newest task and nothing else

_HEIGHT, _TOP, _BOTTOM, _LEFT, _RIGHT = 40.0, 7.0, 9.0, 10.0, 1.5
_BAR, _GAP = 3.0, 3.0  # the least width of a bar and of the space between streams, in mm


_UPRIGHT: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": sheet.SMALL}
_WHISKER: dict[str, Any] = {"elinewidth": 0.7, "capsize": 1.6, "capthick": 0.7, "ecolor": "black"}


def figures(shown: Shown) -> Iterator[Figure]:
    """One figure of all streams."""
    groups = shown.only(METHODS_SHOWN)
    if not groups:
        yield not_run("plasticity", METHODS_SHOWN)
        return
    caption = (
        f"{METRIC.title.capitalize()} {METRIC.symbol}, each task just after it was learned, on "
        f"{named(groups)}; mean over seeds, whiskers one standard deviation."
        f"{chosen(METHODS_SHOWN, {stream: shown.groups[stream] for stream in groups})}"
        f"{_bound(groups)}"
    )
    draw = ready(plasticity_figure, groups, width=shown.width)
    yield Figure("plasticity", "Plasticity", caption, draw)


def _bound(groups: Groups) -> str:
    """A sentence on the method that only fits the newest task: how often none learned better."""
    ahead = [
        _spread(found[_NEWEST]).mean >= max(_spread(runs).mean for runs in found.values())
        for found in groups.values()
        if _NEWEST in found and len(found) > 1
    ]
    if not ahead:
        return ""
    told = "the upper bound" if all(ahead) else f"the best on {sum(ahead)} of {len(ahead)} streams"
    return f" {display(_NEWEST)}, which only fits the newest task, is {told}."


def _spread(runs: Sequence[Result]) -> Spread:
    return spread_of(metric_value(run.metrics.by_class, METRIC.key) for run in runs)


@sheet.house_style
def plasticity_figure(groups: Groups, *, width: float = sheet.COLUMN) -> Any:
    """A_l (eq. 13) by class of `METHODS_SHOWN`: a group of bars per stream, the mean over seeds.

    Streams go to a next row when their bars would be narrower than 3 mm.
    """
    from matplotlib.patches import Patch

    streams = [stream for stream, found in groups.items() if any(m in found for m in METHODS_SHOWN)]
    if not streams:
        needed = ", ".join(METHODS_SHOWN)
        raise InputError(f"plasticity needs runs of {needed}; run one of them first")
    shown = [method for method in METHODS_SHOWN if any(method in groups[s] for s in streams)]
    inner = width - _LEFT - _RIGHT
    most = max(int(inner / (len(shown) * _BAR + _GAP)), 1)
    rows = ceil(len(streams) / most)
    per_row = ceil(len(streams) / rows)
    figure = sheet.blank(width, rows * (_HEIGHT + _BOTTOM) + _TOP)
    for row in range(rows):
        axes = sheet.panel(figure, _LEFT, _TOP + row * (_HEIGHT + _BOTTOM), inner, _HEIGHT)
        _bars(axes, groups, streams[row * per_row : (row + 1) * per_row], shown)
        middle, half = (per_row - 1) / 2, max(per_row, 3) / 2  # a lone stream's bars stay bars
        axes.set_xlim(middle - half, middle + half)
    key = [(Patch(color=style_of(method)["color"]), display(method)) for method in shown]
    sheet.legend_above(figure, key, (_LEFT + width - _RIGHT) / 2)
    return figure


def _bars(axes: Axes, groups: Groups, streams: Sequence[str], methods: Sequence[str]) -> None:
    step = (1 - 0.16) / len(methods)
    for k, method in enumerate(methods):
        colour = style_of(method)["color"]
        for at, stream in enumerate(streams):
            runs = groups[stream].get(method, ())
            place = at + (k - (len(methods) - 1) / 2) * step
            if not runs:
                axes.text(place, 1, "not run", **_UPRIGHT, color="#777777")
                continue
            found = _spread(runs)
            mean, spread = found.mean, found.deviation
            axes.bar(place, mean, step * 0.92, color=colour)
            if spread is not None:
                axes.errorbar(place, mean, min(spread, mean), fmt="none", **_WHISKER)
            inside = mean - (spread or 0) > 22  # there is room for the number under the whisker
            dark = ink(colour) == colour.upper()
            foot = 2 if inside else mean + (spread or 0) + 2
            shade = "white" if inside and dark else "black"
            axes.text(place, foot, f"{mean:.1f}", **_UPRIGHT, color=shade)
    titles = [title_of(next(runs[0] for runs in groups[s].values() if runs)) for s in streams]
    axes.set_xticks(range(len(streams)), [_broken(title) for title in titles])
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20))
    sheet.label(axes, "", f"{METRIC.title} {symbol(METRIC.key, sheet.MATHS)} (%)")
    sheet.dress(axes, "y")
    axes.tick_params(axis="x", length=0)


def _broken(title: str) -> str:
    """A stream's name on two lines, where it says more than a name."""
    for mark in (" stand-in", "@", " ("):
        head, found, tail = title.partition(mark)
        if found:
            return f"{head}\n{found.strip()}{tail}"
    return title
