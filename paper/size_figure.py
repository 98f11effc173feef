"""The figure of `results/sizes/frontier.json`: accuracy and membership against bytes."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from paper.compact import read_compact
from undrift.errors import InputError
from undrift.experiments.result import Result
from undrift.reporting.figures import sheet
from undrift.reporting.figures.style import drawn_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["read_sizes", "size_figure"]

Sizes = dict[str, list[dict[str, Any]]]
"""Points that were swept, and those of the learner as it is built."""

_LOOKS: dict[str, dict[str, Any]] = {
    "dealt": {"color": "#8C8C8C", "marker": "s", "markersize": 2.6, "linewidth": 0.9},
    "thin": {"color": "#0072B2", "marker": "o", "markersize": 2.8, "linewidth": 0.9},
}
_WORDS = {"dealt": "whole Gram of fewer columns", "thin": "Gram through few directions"}
_BUILT: dict[str, Any] = {
    "color": "#D55E00",
    "marker": "*",
    "markersize": 7.0,
    "linestyle": "",
}
_ACROSS, _HIGH, _LEFT, _GAP, _HEAD = 21.0, 28.0, 14.0, 7.0, 8.0  # in mm


def read_sizes(folder: Path) -> Sizes:
    """What was measured, of a folder of results."""
    path = folder / "sizes" / "frontier.json"
    if not path.is_file():
        raise InputError(f"there is no {path}; it is part of the repository, take it from there")
    found: dict[str, Any] = json.loads(path.read_text())
    streams = sorted({each["stream"] for each in found["swept"]})
    runs = list(read_compact(folder).results.values())
    return {"swept": found["swept"], "built": [*found["built"], *_defaults(runs, streams)]}


def _defaults(runs: list[Result], streams: list[str]) -> list[dict[str, Any]]:
    """The default as it was recorded: bytes and accuracy, means over seeds."""
    points = []
    for stream in streams:
        specs = ((run, run.spec) for run in runs if run.spec.stream == stream)
        of = [
            run
            for run, spec in specs
            if spec.method == "propagation" and not spec.params and spec.arrive == "classes"
        ]
        if of:
            a_f = fmean(r.metrics.by_class.a_f for r in of)
            size = fmean(r.cost.state_mb for r in of) * 1e6
            points.append({"stream": stream, "budget": "default", "bytes": size, "a_f": a_f})
    return points


@sheet.house_style
def size_figure(sizes: Sizes) -> Figure:
    """Above accuracy, below membership, a column for every stream; the best of each size."""
    streams = sorted({each["stream"] for each in sizes["swept"]}, key=_order)
    width = len(streams) * (_ACROSS + _GAP) + _LEFT
    height = _HEAD + sheet.TOP + 2 * _HIGH + 12.0 + sheet.BOTTOM
    figure = sheet.blank(width, height)
    for k, stream in enumerate(streams):
        left = _LEFT + k * (_ACROSS + _GAP)
        for row, figure_of in enumerate(("a_f", "auc")):
            top = _HEAD + sheet.TOP + row * (_HIGH + 12.0)
            axes = sheet.panel(figure, left, top, _ACROSS, _HIGH)
            _draw(axes, sizes, stream, figure_of)
            axes.tick_params(labelleft=row == 0 or k == 0)
            if row == 0:
                sheet.heading(axes, drawn_title(stream))
            what = ("class accuracy (%)", "membership AUC")[row]
            sheet.label(axes, "MB" if row else "", what if k == 0 else "")
    entries = [(look, _WORDS[kind]) for kind, look in _LOOKS.items()]
    sheet.legend_above(figure, [*entries, (_BUILT, "as built, five seeds")], width / 2)
    return figure


def _draw(axes: Axes, sizes: Sizes, stream: str, what: str) -> None:
    for kind, look in _LOOKS.items():
        points = frontier([e for e in sizes["swept"] if (e["stream"], e["kind"]) == (stream, kind)])
        axes.plot([e["bytes"] / 1e6 for e in points], [e[what] for e in points], **look)
    if what == "a_f":
        built = [e for e in sizes["built"] if e["stream"] == stream]
        axes.plot([e["bytes"] / 1e6 for e in built], [e["a_f"] for e in built], **_BUILT)
    else:
        axes.set_ylim(0.48, 1.01)
    axes.set_xscale("log")
    axes.set_xlim(0.04, 60)


def frontier(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that no smaller one beats in accuracy, in the order of their bytes."""
    best: list[dict[str, Any]] = []
    for point in sorted(points, key=lambda e: (e["bytes"], -e["a_f"])):
        if not best or point["a_f"] > best[-1]["a_f"]:
            best.append(point)
    return best


def _order(stream: str) -> int:
    shown = ("cs-cl", "physics-cl", "computers-cl", "photo-cl", "coraml-cl", "citeseer-cl")
    return shown.index(stream) if stream in shown else len(shown)
