"""Curves over the steps, of A_t and of every series, for all methods; one panel per stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import Figure, Groups, Runs, Shown, of_all_streams
from undrift.reporting.figures.style import display, is_bold, name_style, panel_words, style_of
from undrift.reporting.names import symbol
from undrift.reporting.tables.comparison import seed_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST = 42.0  # the least height of a panel, in mm
_LINE = sheet.POINT * sheet.SMALL * 1.12  # the height of a line of small text
_MEANS = "mean over seeds, bands one standard deviation. Hollow marks keep examples."
_LEADER = 5.5  # from the end of the axes to a name, in mm


def figures(shown: Shown) -> Iterator[Figure]:
    """Curves of four streams at a time."""
    caption = "A_t, the mean accuracy over the tasks seen, after each task; " + _MEANS
    if len(shown.groups) < len(shown.every):
        caption += " Where classes come back, A_t is over the classes seen, after each grading."
    title = "Learning curves on %s"
    if shown.every or not shown.compared:  # runs by series alone have curves of those
        yield from of_all_streams(shown.every, "learning-curves", title, caption, curves_figure)
    for key, metric in METRICS.items():
        if metric.of is None and (groups := shown.having(key)):
            name = symbol(key, "%s%s")
            caption = f"{name}, {metric.title}, after each step that has one; " + _MEANS
            title = f"{name} on %s"
            yield from of_all_streams(groups, f"{key}-curves", title, caption, curves_figure, key)


@sheet.house_style
def curves_figure(groups: Groups, key: str = "", *, width: float = sheet.COLUMN) -> Any:
    """A_t by class, or a series, over the steps: the mean over seeds, a band of one deviation."""
    methods = {method for found in groups.values() for method in found}
    margin = _LEADER + max(sheet.text_width(display(method)) for method in methods) + 2.5
    height = max(_LEAST, _LINE * max(len(found) for found in groups.values()) + 1)
    figure, panels, inner = sheet.panels(len(groups), height, right=margin, width=width)
    for axes, found in zip(panels, groups.values(), strict=True):
        _draw(axes, found, key, (inner, height))
    return figure


def _curve(run: Result, key: str) -> Sequence[float | None]:
    return run.series[key] if key else run.by_class.a_t


def _draw(axes: Axes, found: Runs, key: str, size: tuple[float, float]) -> None:
    curves = [_curve(run, key) for runs in found.values() for run in runs]
    steps = 1 + max(t for each in curves for t, value in enumerate(each) if value is not None)
    apart = max(steps // 5, 1)
    ends: dict[str, tuple[float, float]] = {}
    for k, (method, runs) in enumerate(found.items()):
        style = style_of(method) | {"markeredgewidth": 0.7, "linewidth": 0.9, "markersize": 3.0}
        style |= {"linewidth": 1.5, "markersize": 3.4, "zorder": 4} if is_bold(method) else {}
        # a run that is still going ends the line early
        numbers = zip(*(_curve(run, key) for run in runs), strict=False)
        there = ([value for value in each if value is not None] for each in numbers)
        drawn = {t: seed_mean(each) for t, each in enumerate(there) if each}
        points, across = list(drawn.values()), list(drawn)
        means = [point.mean for point in points]
        # marks are not all at the same t
        axes.plot(across, means, markevery=(k % apart, apart), **{"zorder": 3} | style)
        if len(runs) > 1:
            low = [point.mean - (point.deviation or 0) for point in points]
            high = [point.mean + (point.deviation or 0) for point in points]
            axes.fill_between(across, low, high, color=style["color"], alpha=0.1, linewidth=0)
        ends[method] = across[-1], means[-1]
    axes.set_xticks(range(0, steps, 1 + (steps - 1) // 11))
    axes.set_xlim(-0.02 * steps, max(steps - 1, 0.5) + 0.02 * steps)
    axes.set_ylim(*sheet.limits(*axes.get_ylim()))
    every = [run for runs in found.values() for run in runs]
    step = "task" if any(run.matrix.by_class for run in every) else "step"
    step = "grading" if any(run.returning for run in every) else step
    up = symbol(key, sheet.MATHS) if key else "accuracy $A_t$"
    sheet.label(axes, f"{step} $t$", f"{up} (%)")
    sheet.dress(axes, "y")
    sheet.heading(axes, *panel_words(found))
    _name_ends(axes, ends, size)


def _name_ends(axes: Axes, ends: dict[str, tuple[float, float]], size: tuple[float, float]) -> None:
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    unit = (right - left) / size[0]  # of x, per mm
    line = (high - low) / size[1] * _LINE
    names = sorted(ends, key=lambda name: ends[name][1])
    places = [ends[name][1] for name in names]
    heights = sheet.place_apart(places, line, low + line / 2, high - line / 2)
    for name, height in zip(names, heights, strict=True):
        style, (x, y) = style_of(name), ends[name]
        bent = [x, right + unit * 0.6, right + unit * (_LEADER - 1)]
        thin = {"color": style["color"], "linewidth": 0.5, "clip_on": False, "zorder": 2}
        axes.plot(bent, [y, y, height], **thin)
        mark = style | {"linestyle": "-", "markersize": 3.2, "markeredgewidth": 0.7}
        axes.plot(right + unit * _LEADER, height, **mark, clip_on=False)
        axes.text(right + unit * (_LEADER + 1.3), height, **name_style(name), va="center_baseline")
