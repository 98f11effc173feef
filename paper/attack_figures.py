"""The figures of `results/privacy/attacks.json`: who is recognised, and what is read out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from undrift.errors import InputError
from undrift.experiments.store import Records
from undrift.reporting.figures import sheet
from undrift.reporting.figures.style import drawn_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ATTACK_FIGURES", "ONE_ROW", "Found", "best_of_one_row", "read_attacks"]

Found = dict[str, dict[str, Any]]
"""What was measured, by stream and part."""

ONE_ROW = (
    "span",
    "leverage",
    "normalised leverage",
    "likelihood",
    "own class",
    "unexplained",
)
"""The attacks that need one row."""

_BLUE, _VERMILION, _GREEN, _GREY, _PINK = "#0072B2", "#D55E00", "#009E73", "#8C8C8C", "#CC79A7"
_FORMS: dict[str, dict[str, Any]] = {
    "was": {"color": _VERMILION, "linewidth": 1.2},
    "now": {"color": _BLUE, "linewidth": 1.2},
    "all": {"color": "black", "linewidth": 1.0, "linestyle": "--"},
}
_WIDTHS: dict[str, dict[str, Any]] = {
    "span": {"color": _GREY, "marker": "s"},
    "leverage": {"color": _PINK, "marker": "^"},
    "normalised leverage": {"color": _BLUE, "marker": "D"},
    "own class": {"color": _GREEN, "marker": "v"},
    "all candidates": {"color": "black", "marker": "o", "linestyle": "--"},
}
_STREAMS: dict[str, dict[str, Any]] = {
    "citeseer-cl": {"color": _VERMILION, "marker": "o"},
    "coraml-cl": {"color": _BLUE, "marker": "s"},
    "cs-cl": {"color": _GREEN, "marker": "^"},
    "photo-cl": {"color": _PINK, "marker": "D"},
}
_SMALL: dict[str, Any] = {"markersize": 3.0, "linewidth": 1.0}
_ACCUSED = np.logspace(-3.3, 0, 120)
_ACROSS, _HIGH, _LEFT, _GAP, _HEAD = 34.0, 34.0, 10.0, 9.5, 8.0  # in mm


def read_attacks(folder: Path) -> Found:
    """What was measured, of a folder of results."""
    path = folder / "privacy" / "attacks.json"
    if not path.is_file():
        raise InputError(f"there is no {path}; measure it with: python -m paper attacks {path}")
    found: Found = json.loads(path.read_text())
    return found


def best_of_one_row(attacked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The strongest attack that needs one row, on one sum."""
    tried = {name: numbers for name, numbers in attacked["attacks"].items() if name in ONE_ROW}
    name = max(tried, key=lambda each: tried[each]["auc"])
    return name, tried[name]


def _sheet(count: int) -> tuple[Figure, list[Axes], float]:
    width = _LEFT + count * (_ACROSS + _GAP)
    figure = sheet.blank(width, _HEAD + sheet.TOP + _HIGH + sheet.BOTTOM)
    top = _HEAD + sheet.TOP
    lefts = (_LEFT + k * (_ACROSS + _GAP) for k in range(count))
    return figure, [sheet.panel(figure, left, top, _ACROSS, _HIGH) for left in lefts], width


@sheet.house_style
def roc_figure(found: Found) -> Figure:
    """Members found against others accused, of the default as it was and as it is."""
    figure, panels, width = _sheet(len(found))
    for axes, (stream, parts) in zip(panels, found.items(), strict=True):
        attacked = {form: parts[form]["membership"][0] for form in ("was", "now")}
        curves = {form: best_of_one_row(each)[1]["roc"] for form, each in attacked.items()}
        if "all candidates" in attacked["now"]["attacks"]:
            curves["all"] = attacked["now"]["attacks"]["all candidates"]["roc"]
        for form, points in curves.items():
            # between two thresholds a numbers is straight, which on this axis is not a line
            found_by = np.interp(_ACCUSED, [x for x, _ in points], [y for _, y in points])
            axes.plot(_ACCUSED, found_by, **_FORMS[form])
        axes.plot(_ACCUSED, _ACCUSED, color=_GREY, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_xlim(5e-4, 1)
        axes.set_ylim(-0.02, 1.02)
        sheet.heading(axes, drawn_title(stream))
        sheet.label(axes, "others accused", "" if axes is not panels[0] else "members found")
        sheet.dress(axes, "both")
    words = {"was": "one row, 3,072 columns", "now": "one row, the default", "all": "every row"}
    entries = [(look, words[form]) for form, look in _FORMS.items()]
    chance_look = {"color": _GREY, "linewidth": 0.8, "linestyle": ":"}
    sheet.legend_above(figure, [*entries, (chance_look, "chance")], width / 2)
    return figure


@sheet.house_style
def width_figure(found: Found) -> Figure:
    """The AUC of each attack against the columns of the sum."""
    figure, panels, width = _sheet(len(found))
    for axes, (stream, parts) in zip(panels, found.items(), strict=True):
        for name, look in _WIDTHS.items():
            points = [(each["columns"], each["auc"].get(name)) for each in parts["widths"]]
            _line(axes, ((x, y) for x, y in points if y is not None), look)
        _doubling(axes, [each["columns"] for each in parts["widths"]])
        axes.axhline(0.5, color=_GREY, linewidth=0.8, linestyle=":")
        axes.set_ylim(0.48, 1.02)
        rows = parts["widths"][0]["rows"]
        sheet.heading(axes, drawn_title(stream), f"{rows:,} rows")
        sheet.label(axes, "columns", "" if axes is not panels[0] else "AUC, members told apart")
        sheet.dress(axes, "y")
    entries = [(look | _SMALL, name) for name, look in _WIDTHS.items()]
    sheet.legend_above(figure, entries, width / 2)
    return figure


@sheet.house_style
def rows_figure(found: Found) -> Figure:
    """What is read out: of two states by batch and by width, of a class's mean by its rows."""
    figure, panels, width = _sheet(4)
    states, widths, means, shares = panels
    for stream, parts in found.items():
        look = _STREAMS[stream]
        for form, dash in (("was", "-"), ("now", ":")):
            points = ((e["nodes"], e["read"] / e["nodes"]) for e in parts[form]["two_states"])
            _line(states, points, look | {"linestyle": dash})
        points = ((e["rows"], e["cosine"]) for e in parts["small_classes"])
        _line(means, points, look)
    cora = found["coraml-cl"]
    for nodes, marker in ((8, "s"), (32, "o")):
        points = (
            (e["columns"], e["read"] / e["nodes"])
            for e in cora["two_states_by_width"]
            if e["nodes"] == nodes
        )
        _line(widths, points, {"color": _BLUE, "marker": marker})
        widths.plot([], [], color=_BLUE, marker=marker, label=f"{nodes} nodes", **_SMALL)
    for columns, marker in ((64, "s"), (256, "o")):
        points = ((e["share"], e["auc"]) for e in cora["known_shares"] if e["width"] == columns)
        _line(shares, points, {"color": _BLUE, "marker": marker})
        shares.plot([], [], color=_BLUE, marker=marker, label=f"{columns} columns", **_SMALL)
    _doubling(states, [1, 4, 16, 64])
    _doubling(means, [1, 4, 16, 64])
    _doubling(widths, [64, 256, 1024])
    titles = ("Two states", "by width", "Class means", "Rows known")
    names = ("nodes in the batch", "columns (CoraML)", "rows of the class", "share (CoraML)")
    sides = ("share of nodes read out", "share read out", "cosine with a row", "AUC")
    for axes, title, name, side in zip(panels, titles, names, sides, strict=True):
        sheet.heading(axes, title)
        sheet.label(axes, name, side)
        sheet.dress(axes, "y")
        axes.set_ylim(-0.03, 1.03)
    shares.set_ylim(0.48, 1.02)
    for axes in (widths, shares):
        axes.legend(fontsize=sheet.SMALL, frameon=False, loc="lower right")
    entries = [(look | _SMALL, drawn_title(name)) for name, look in _STREAMS.items()]
    now: dict[str, Any] = {"color": "black", "linewidth": 1.0, "linestyle": ":"}
    sheet.legend_above(figure, [*entries, (now, "the default now")], width / 2)
    return figure


def _line(axes: Axes, points: Iterable[tuple[float, float]], look: dict[str, Any]) -> None:
    there = list(points)
    axes.plot([x for x, _ in there], [y for _, y in there], **(_SMALL | look))


def _doubling(axes: Axes, ticks: list[int]) -> None:
    axes.set_xscale("log", base=2)
    shown = ticks[:: 2 if len(ticks) > 3 and ticks[-1] > 100 else 1]
    axes.set_xticks(shown, [f"{tick}" for tick in shown])
    axes.minorticks_off()


def _drawn(draw: Callable[[Found], Any]) -> Callable[[Records], Any]:
    return lambda records: draw(read_attacks(records.folder))


ATTACK_FIGURES: dict[str, Callable[[Records], Any]] = {
    "attacks-roc": _drawn(roc_figure),
    "attacks-width": _drawn(width_figure),
    "attacks-rows": _drawn(rows_figure),
}
"""By name."""
