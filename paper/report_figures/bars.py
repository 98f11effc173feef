"""Bars: how well each task is learned (A_l), and how uneven the classes of a task are (rho_t)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from paper.published import SHOWN
from paper.report_figures.chosen import choice, not_run, only, stand_ins
from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import Figure, Groups, Shown, missing, named, pages, ready
from undrift.reporting.figures.style import display, drawn_title, ink, style_of, title_of
from undrift.reporting.names import method_facts, symbol
from undrift.reporting.tables.comparison import SeedMean, seed_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRIC = METRICS["a_l"]
_HEIGHT, _TOP, _BOTTOM, _LEFT, _RIGHT = 40.0, 7.0, 9.0, 10.0, 1.5
_BAR, _GAP = 3.0, 3.0  # the least width of a bar and of the space between streams, in mm
_UPRIGHT: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": sheet.SMALL}
_WHISKER: dict[str, Any] = {"elinewidth": 0.7, "capsize": 1.6, "capthick": 0.7, "ecolor": "black"}
_WIDE = 10.0  # a range of rho over which bars need a log scale
_COLOUR = "#0072B2"


def plasticity(shown: Shown) -> Iterator[Figure]:
    """One figure of all streams."""
    methods = SHOWN["plasticity"]
    groups = only(shown, methods)
    if not groups:
        yield not_run("plasticity")
        return
    caption = (
        f"{METRIC.title.capitalize()} {METRIC.symbol}, each task just after it was learned, on "
        f"{named(groups)}; mean over seeds, whiskers one standard deviation."
        f"{choice(shown, 'plasticity', groups)}{_bound(groups)}"
    )
    draw = ready(plasticity_figure, groups, methods)
    yield Figure("plasticity", "Plasticity", caption, draw)


def _bound(groups: Groups) -> str:
    """A sentence on the bound that keeps nothing: how often none learned a task better."""
    ahead: dict[str, list[bool]] = {}
    for found in groups.values():
        best = max(_mean(runs).mean for runs in found.values())
        for method, runs in found.items() if len(found) > 1 else ():
            facts = method_facts(method)
            if facts.family == "bound" and not facts.keeps_examples:
                ahead.setdefault(method, []).append(_mean(runs).mean >= best)
    return "".join(
        f" {display(method)}, which only fits the newest task, is "
        + ("the upper bound." if all(is_) else f"the best on {sum(is_)} of {len(is_)} streams.")
        for method, is_ in ahead.items()
    )


def _mean(runs: Sequence[Result]) -> SeedMean:
    return seed_mean(run.value(METRIC.key) for run in runs)


@sheet.house_style
def plasticity_figure(groups: Groups, methods: Sequence[str]) -> Any:
    """A_l (eq. 13) by class: a group of bars per stream, the mean over seeds."""
    from matplotlib.patches import Patch

    shown = [method for method in methods if any(method in found for found in groups.values())]
    inner = sheet.COLUMN - _LEFT - _RIGHT
    rows = ceil(len(groups) / max(int(inner / (len(shown) * _BAR + _GAP)), 1))
    per_row = ceil(len(groups) / rows)
    figure = sheet.blank(sheet.COLUMN, rows * (_HEIGHT + _BOTTOM) + _TOP)
    for row in range(rows):
        axes = sheet.panel(figure, _LEFT, _TOP + row * (_HEIGHT + _BOTTOM), inner, _HEIGHT)
        _accuracies(axes, [*groups.values()][row * per_row : (row + 1) * per_row], shown)
        middle, half = (per_row - 1) / 2, max(per_row, 3) / 2  # a lone stream's bars stay bars
        axes.set_xlim(middle - half, middle + half)
    key = [(Patch(color=style_of(method)["color"]), display(method)) for method in shown]
    sheet.legend_above(figure, key, (_LEFT + sheet.COLUMN - _RIGHT) / 2)
    return figure


def _accuracies(
    axes: Axes, streams: Sequence[Mapping[str, Sequence[Result]]], methods: Sequence[str]
) -> None:
    step = (1 - 0.16) / len(methods)
    for k, method in enumerate(methods):
        colour = style_of(method)["color"]
        for at, found in enumerate(streams):
            place = at + (k - (len(methods) - 1) / 2) * step
            if method not in found:
                axes.text(place, 1, "not run", **_UPRIGHT, color="#777777")
                continue
            mean, deviation = (ours := _mean(found[method])).mean, ours.deviation
            axes.bar(place, mean, step * 0.92, color=colour)
            if deviation is not None:
                axes.errorbar(place, mean, min(deviation, mean), fmt="none", **_WHISKER)
            inside = mean - (deviation or 0) > 22  # the number fits under the whisker
            foot = 2 if inside else mean + (deviation or 0) + 2
            shade = "white" if inside and ink(colour) == colour.upper() else "black"
            axes.text(place, foot, f"{mean:.1f}", **_UPRIGHT, color=shade)
    titles = [title_of(next(iter(found.values()))[0]) for found in streams]
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


def imbalance(shown: Shown) -> Iterator[Figure]:
    """Rho of every stream whose runs recorded it, four streams at a time."""
    results = shown.records.results.values()
    counted = {result.spec.place: result.imbalance for result in results if result.imbalance}
    if not counted:
        why = "there is no finished run that was graded by classes"
        if any(result.matrix.by_class for result in results):
            why = "the results are of a version that did not record the sizes of the classes"
        yield missing("imbalance", why)
    for name, streams in pages("imbalance", [s for s in shown.groups if s in counted]):
        here = [(drawn_title(s, stand_in=s in stand_ins(shown)), counted[s]) for s in streams]
        caption = "Rho_t, the nodes of a task's largest class over its smallest."
        draw = ready(imbalance_figure, here)
        yield Figure(name, "Class imbalance", caption, draw)


@sheet.house_style
def imbalance_figure(imbalance: Sequence[tuple[str, Sequence[float]]]) -> Any:
    """Bars of rho_t from 1, a panel per title.

    The scale is a log one where rho varies tenfold; an infinite rho (an empty class) is hatched.
    """
    figure, panels, inner = sheet.panels(len(imbalance), 26.0, right=1.5)
    for axes, (title, rho) in zip(panels, imbalance, strict=True):
        _ratios(axes, rho, inner)
        sheet.heading(axes, title, "largest class over smallest")
    return figure


def _ratios(axes: Axes, rho: Sequence[float], width: float) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    finite = [value for value in rho if isfinite(value)] or [1.0]
    wide = max(finite) > _WIDE * min(finite)
    top = max(finite) ** 1.22 if wide else max(1 + (max(finite) - 1) * 1.2, 1.5)
    if wide:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 100 else (1,), numticks=9))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        steps = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(1, top)
        axes.set_yticks([1, *(step for step in steps if 1.2 < step <= top)])
    axes.set_ylim(1, top)
    full: dict[str, Any] = {"color": _COLOUR}
    empty = {"color": "white", "edgecolor": _COLOUR, "hatch": "////", "linewidth": 0.6}
    over: dict[str, Any] = {"xytext": (0, 1.5), "va": "bottom"}
    inside: dict[str, Any] = {"xytext": (0, -3), "va": "top"}
    inside |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}}
    for t, value in enumerate(rho):
        axes.bar(t, min(value, top) - 1, 0.72, bottom=1, **(full if isfinite(value) else empty))
    words: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": sheet.SMALL}
    for t, label in enumerate(_labels(rho, width)):
        place = over if isfinite(rho[t]) else inside
        axes.annotate(label, (t, min(rho[t], top)), **place, **words)
    axes.set_xticks(range(0, len(rho), ceil(len(rho) * 3.6 / width)))
    axes.set_xlim(-0.6, len(rho) - 0.4)
    sheet.label(axes, "task $t$", r"imbalance $\rho_t$")
    sheet.dress(axes, "y")


def _labels(rho: Sequence[float], width: float) -> list[str]:
    """The numbers over the bars: with a decimal where it fits, else without."""
    for decimals in (1, 0):
        texts = [f"{v:.{decimals if v < 100 else 0}f}" if isfinite(v) else "∞" for v in rho]
        if all(sheet.text_width(text) + 0.2 < width / (len(rho) + 0.2) for text in texts):
            return texts
    return []
