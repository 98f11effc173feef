"""The figure and the table of `results/privacy/utility.json`: accuracy against epsilon."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from paper.markdown_text import grid
from paper.private_utility import EPSILONS
from undrift.errors import InputError
from undrift.reporting.figures import sheet
from undrift.reporting.figures.style import drawn_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["private_figure", "private_table", "read_utility"]

Table = dict[str, dict[str, dict[str, float]]]
"""A_f by stream, seed, and form with epsilon."""

_LOOKS: dict[str, dict[str, Any]] = {
    "row": {"color": "#0072B2", "marker": "s", "markersize": 3.2},
    "node": {"color": "#D55E00", "marker": "o", "markersize": 3.4},
    "features": {"color": "#8C8C8C", "marker": "^", "markersize": 3.4, "linestyle": "--"},
}
_WORDS = {
    "row": "row level",
    "node": "node level",
    "features": "node level, no graph at all",
    "default": "the default, without privacy",
}
_DEFAULT: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0}
_ACROSS, _HIGH, _LEFT, _GAP, _HEAD = 25.0, 36.0, 9.0, 10.0, 8.0  # in mm


def read_utility(folder: Path) -> Table:
    """What was measured, of a folder of results; the default's are those of its other pages."""
    path = folder / "privacy" / "utility.json"
    if not path.is_file():
        raise InputError(f"there is no {path}; measure it with: python -m paper private {path}")
    table: Table = json.loads(path.read_text())
    for (stream, seed), accuracy in _default_runs(folder).items():
        if seed in table.get(stream, {}):
            table[stream][seed]["default"] = accuracy
    return table


def _default_runs(folder: Path) -> dict[tuple[str, str], float]:
    """A_f of the default learner by stream and seed, from the tables of all results."""
    cells, runs = folder / "cells.csv", folder / "runs.csv"
    if not cells.is_file() or not runs.is_file():
        return {}
    with runs.open(newline="") as file:
        accuracies = {run["id"]: float(run["a_f"]) for run in csv.DictReader(file)}
    with cells.open(newline="") as file:
        return {
            (cell["stream"], cell["seed"]): accuracies[cell["run"]]
            for cell in csv.DictReader(file)
            if (cell["plan"], cell["row"]) == ("beyond", "propagation") and cell["run"]
        }


def private_table(table: Table) -> str:
    """Means over seeds as a table of Markdown, a row for each form and epsilon."""
    lines = []
    for form in _LOOKS:
        for key in [*(f"{epsilon:g}" for epsilon in EPSILONS), "none"]:
            noise = "without noise" if key == "none" else f"epsilon {key}"
            cells = [
                f"{fmean(run[f'{form} {key}'] for run in r.values()):.1f}" for r in table.values()
            ]
            lines.append([_WORDS[form], noise, *cells])
    without = [[run["default"] for run in r.values() if "default" in run] for r in table.values()]
    lines.append(
        [_WORDS["default"], "", *(f"{fmean(each):.1f}" if each else "-" for each in without)]
    )
    header = ["", "", *map(drawn_title, table)]
    return grid(header, "ll" + "r" * len(table), lines)


@sheet.house_style
def private_figure(table: Table) -> Figure:
    """Means over seeds, bars from the worst to the best seed."""
    width = len(table) * (_ACROSS + _GAP) + _LEFT
    figure = sheet.blank(width, _HEAD + sheet.TOP + _HIGH + sheet.BOTTOM)
    for k, (stream, runs) in enumerate(table.items()):
        left = _LEFT + k * (_ACROSS + _GAP)
        axes = sheet.panel(figure, left, _HEAD + sheet.TOP, _ACROSS, _HIGH)
        _draw(axes, list(runs.values()))
        sheet.heading(axes, drawn_title(stream))
        sheet.label(axes, "epsilon", "" if k else "class accuracy at the end (%)")
    entries = [(look, _WORDS[form]) for form, look in _LOOKS.items()]
    entries.append((_DEFAULT, _WORDS["default"]))
    sheet.legend_above(figure, entries, width / 2)
    return figure


def _draw(axes: Axes, runs: list[dict[str, float]]) -> None:
    places = range(len(EPSILONS))
    for form, look in _LOOKS.items():
        found = [[run[f"{form} {epsilon:g}"] for run in runs] for epsilon in EPSILONS]
        means = [fmean(each) for each in found]
        reach = [
            [mean - min(each) for mean, each in zip(means, found, strict=True)],
            [max(each) - mean for mean, each in zip(means, found, strict=True)],
        ]
        axes.errorbar(places, means, yerr=reach, linewidth=1.0, elinewidth=0.6, capsize=1.5, **look)
    without = [run["default"] for run in runs if "default" in run]
    if without:
        axes.axhline(fmean(without), **_DEFAULT)
    axes.set_xticks(places, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_xlim(-0.3, len(EPSILONS) - 0.7)
    sheet.dress(axes, "y")
