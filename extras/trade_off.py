"""What accuracy costs: the first metric against the bytes a method keeps, or its seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, log10
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from undrift.evaluation.metrics import METRICS, Metric
from undrift.experiments.result import Result
from undrift.formatting import size
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import Figure, Groups, Runs, Shown, of_all_streams
from undrift.reporting.figures.style import display, name_style, panel_words, style_of
from undrift.reporting.names import method_facts, symbol
from undrift.reporting.tables.comparison import seed_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[Any]]
Pairs = Sequence[tuple[float, float]]

_HEIGHT, _RIGHT, _KEY = 44.0, 2.5, 5.0  # in mm
_STEPS = "#B0B0B0"
_MARK = 1.0  # half the width of a mark, in mm
_LEAST = {"bytes": 1.0, "seconds": 1e-3}  # a log scale has no zero
# of the places of names: those tried around a point (at a distance in heights of a line), and what
# is lost by covering and by leaving the space, beside 1 for a line's height away
_TURNS, _REACH, _CROWD = 16, (0.0, 0.9, 2.0, 3.4, 5.2, 7.5, 10.5), 12
_COVERS, _OUTSIDE = 60.0, 100.0


def figures(shown: Shown) -> Iterator[Figure]:
    """Accuracy against bytes, then against seconds, four streams at a time."""
    shown_by = dict.fromkeys(map(_metric_of, shown.compared.values()))
    names = " and ".join(f"{metric.title} {metric.symbol}" for metric in shown_by)
    caption = "On %s; mean over seeds. Hollow marks keep examples; grey steps join the methods "
    caption += "that no other beats in both, bounds left out."
    for against, what in (("bytes", "the bytes kept"), ("seconds", "the seconds of a run")):
        words = f"accuracy-{against}", f"{names[:1].upper()}{names[1:]} against {what}", caption
        yield from of_all_streams(shown.compared, *words, trade_off_figure, against)


class _Point(NamedTuple):
    method: str
    x: float
    y: float
    deviation: float | None


@sheet.house_style
def trade_off_figure(groups: Groups, against: Literal["bytes", "seconds"]) -> Any:
    """A stream's first metric against what is kept at the end, or against the run's seconds."""
    figure, panels, inner = sheet.panels(len(groups), _HEIGHT, right=_RIGHT, head=_KEY)
    for axes, found in zip(panels, groups.values(), strict=True):
        metric = _metric_of(found)
        _draw(axes, [_point(*each, metric, against) for each in found.items()], metric, inner)
        axes.set_xlabel(_axis(against, found), fontsize=sheet.PLAIN, labelpad=1)
        _ticks(axes, against)
        sheet.heading(axes, *panel_words(found))
    dot = {"color": "black", "linestyle": "none", "marker": "o", "markersize": 4}
    key = [(dot, "keeps no examples"), (dot | {"markerfacecolor": "white"}, "keeps examples")]
    key += [({"color": _STEPS, "linewidth": 0.8}, "best at its cost")]
    sheet.legend_above(figure, key, sheet.COLUMN / 2)
    return figure


def _metric_of(found: Runs) -> Metric:
    """The metric by which these methods are compared: the first that all runs have."""
    every = [run for runs in found.values() for run in runs]
    return next(m for m in METRICS.values() if not any(isnan(run.value(m.key)) for run in every))


def _point(method: str, runs: Sequence[Result], metric: Metric, against: str) -> _Point:
    spent = [run.cost for run in runs]
    x = fmean(cost.kept_bytes if against == "bytes" else cost.total_seconds for cost in spent)
    y = seed_mean(run.value(metric.key) for run in runs)
    return _Point(method, max(x, _LEAST[against]), y.mean, y.deviation)


def _axis(against: str, found: Runs) -> str:
    if against == "bytes":
        return "kept after the last task"
    every = [run for runs in found.values() for run in runs]
    threads = sorted({run.cost.threads for run in every})
    devices = sorted({run.spec.device for run in every} - {"cpu"} or {"cpu"})
    many = " to ".join(map(str, dict.fromkeys((threads[0], threads[-1]))))
    where = f" on {', '.join(devices)}" if devices != ["cpu"] else ""
    return f"seconds for the whole stream ({many} thread{'s' * (many != '1')}{where})"


def _draw(axes: Axes, points: Sequence[_Point], metric: Metric, width: float) -> None:
    axes.set_xscale("log")
    low, high = min(p.x for p in points), max(p.x for p in points)
    pad = (high / low) ** 0.06 * 1.3
    axes.set_xlim(low / pad, high * pad)
    ends = [p.y + sign * (p.deviation or 0) for p in points for sign in (-1, 1)]
    margin = 0.08 * max(max(ends) - min(ends), 10)
    axes.set_ylim(*sheet.limits(min(ends) - margin, max(ends) + margin))
    kind = "accuracy " if metric.of else ""
    sheet.label(axes, "", f"{kind}{symbol(metric.key, sheet.MATHS)} (%)")
    sheet.dress(axes, "both")
    _front(axes, points)
    for point in points:
        style = style_of(point.method) | {"linestyle": "none", "elinewidth": 0.6, "zorder": 3}
        axes.errorbar(*point[1:], markersize=4.2, markeredgewidth=0.9, **style)
    _name(axes, points, width)


def _front(axes: Axes, points: Sequence[_Point]) -> None:
    rivals = [p for p in points if method_facts(p.method).family != "bound"]
    best: list[_Point] = []
    for point in sorted(rivals, key=lambda p: (p.x, -p.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    if best:
        xs = [*(p.x for p in best), axes.get_xlim()[1]]
        ys = [*(p.y for p in best), best[-1].y]
        axes.step(xs, ys, where="post", color=_STEPS, linewidth=0.8, zorder=1.5)


def _name(axes: Axes, points: Sequence[_Point], width: float) -> None:
    """Names beside the points, with a line to those that had to be put further off."""
    from matplotlib.patheffects import withStroke

    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    across, up = width / log10(right / left), _HEIGHT / (high - low)
    places = [(log10(p.x / left) * across, (p.y - low) * up) for p in points]
    height = sheet.POINT * sheet.SMALL * 0.95
    sizes = [(sheet.text_width(display(p.method)) + 0.4, height) for p in points]
    boxes = label_places(places, sizes, (0.5, 0.5, width + 1.5, _HEIGHT), mark=_MARK)
    white = [withStroke(linewidth=1.6, foreground="white")]
    over: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 5, "path_effects": white}
    for point, (x, y), box in zip(points, places, boxes, strict=True):
        name = name_style(point.method)
        at = left * 10 ** ((box[0] + box[2]) / 2 / across), low + (box[1] + box[3]) / 2 / up
        axes.text(at[0], at[1], **name, **over)
        near = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
        if abs(near[0] - x) + abs(near[1] - y) > 2.6 * _MARK:
            xs = [point.x, left * 10 ** (near[0] / across)]
            ys = [point.y, low + near[1] / up]
            axes.plot(xs, ys, color=name["color"], linewidth=0.4, zorder=2)


def _ticks(axes: Axes, against: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    left, right = axes.get_xlim()
    decades = log10(right / left)
    subs = (1.0,) if decades > 2.2 else (1.0, 2.0, 5.0) if decades > 0.7 else tuple(range(1, 10))
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=9))
    axes.xaxis.set_minor_locator(LogLocator(subs=tuple(range(2, 10)), numticks=9))
    axes.xaxis.set_minor_formatter(NullFormatter())
    say = size if against == "bytes" else "{:,.6g}".format
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: say(value).replace(".0 ", " ")))


def label_places(
    points: Pairs, sizes: Pairs, space: tuple[float, float, float, float], *, mark: float
) -> list[list[float]]:
    """A box (left, low, right, high) for the name of every point, near it and inside the space.

    Each name in turn takes the best of a hundred places around its point, those in a crowd first.
    """
    centres, extents = np.array(points, dtype=float), np.array(sizes, dtype=float)
    taken = np.hstack([centres - mark, centres + mark])
    found = np.empty((len(points), 4))
    crowd = (np.linalg.norm(centres[:, None] - centres, axis=2) < _CROWD * mark).sum(1)
    for k in np.argsort(-crowd, kind="stable"):
        places, taste = _places(centres[k], extents[k], mark)
        nearest = np.clip(centres[k], places[:, :2], places[:, 2:])
        far = np.linalg.norm(nearest - centres[k], axis=1) / extents[k, 1]
        inside, covered = _shared(places, np.array([space])), _shared(places, taken).sum(1)
        lost = (_COVERS * covered - _OUTSIDE * inside[:, 0]) / extents[k].prod()
        found[k] = places[np.argmin(lost + far + taste)]
        taken = np.vstack([taken, found[k]])
    return list(found.tolist())


def _places(point: Array, extent: Array, mark: float) -> tuple[Array, Array]:
    """Boxes that touch circles around a point, near ones first, and how ill each reads."""
    radius = mark * 1.3 + np.repeat(_REACH, _TURNS) * extent[1]
    angle = np.tile(2 * np.pi * np.arange(_TURNS) / _TURNS, len(_REACH))
    turned = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    low = point + turned * (radius[:, None] + extent / 2) - extent / 2
    # right of the point reads best, then left of it
    return np.hstack([low, low + extent]), 0.3 * np.abs(turned[:, 1]) + 0.1 * (turned[:, 0] < 0)


def _shared(boxes: Array, others: Array) -> Array:
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(-1))
