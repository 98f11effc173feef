"""The figure of leakage studies: can a task id be read off, and what is it worth to a method?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from undrift.datasets.catalogue import marked
from undrift.errors import InputError, unknown_name
from undrift.evaluation.metrics import METRICS
from undrift.reporting.figures import sheet
from undrift.reporting.figures.style import display
from undrift.reporting.names import symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from paper.leakage.measure import Attack
    from paper.leakage.study import LeakageStudy
    from undrift.evaluation.protocols import Protocol

METRIC = METRICS["a_f"]

# Okabe and Ito's vermilion and blue: distinct with any colour vision
_COLOURS: dict[Protocol, str] = {"local": "#D55E00", "global": "#0072B2"}
_ATTACKS: tuple[Attack, ...] = ("graph", "node")
_WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "oracle": ("told the true task", {"marker": "|", "markersize": 9, "markeredgewidth": 1.6}),
    "plain": ("told nothing", {"marker": "o", "markersize": 5.5, "markerfacecolor": "none"}),
    "graph": ("told by the graph attack", {"marker": "D", "markersize": 3.6}),
    "node": ("told by the node attack", {"marker": "^", "markersize": 4, "mfc": "white"}),
}
SUFFIXES = (".pdf", ".png", ".svg")
_WIDTH, _ROW, _TOP, _BOTTOM = 188.0, 10.5, 7.0, 23.0  # in mm


@sheet.house_style
def leakage_figure(studies: Sequence[LeakageStudy], path: str | Path) -> None:
    """Left: the task-id accuracy of both attackers under both protocols, per stream, and chance.
    Right: what a task id is worth to each method. Means over seeds, after the last task.
    """
    check_suffix(path)
    if not studies:
        raise InputError("a leakage figure needs at least one study; run undrift leakage first")
    settings = sorted({f"{s.leakage.hops} {s.leakage.normalisation}" for s in studies})
    if len(settings) > 1:
        raise InputError(
            f"one figure shows one attack, not {len(settings)} ({', '.join(settings)} hops); put "
            "the studies into folders of their own"
        )
    rows: dict[str, dict[str, list[LeakageStudy]]] = {}
    for study in studies:
        rows.setdefault(study.stream, {}).setdefault(study.method, []).append(study)
    height = max(56.0, _ROW * sum(map(len, rows.values())))
    figure = sheet.blank(_WIDTH, _TOP + height + _BOTTOM)
    _bars(sheet.panel(figure, 12.0, _TOP, 74.0, height), rows)
    _lifts(sheet.panel(figure, 118.0, _TOP, 68.0, height), rows)
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found = sorted(zip(labels, handles, strict=True), key=lambda pair: pair[0])
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -9 / height)}
        place |= {"ncols": 2, "fontsize": sheet.SMALL, "frameon": False}
        axes.legend([handle for _, handle in found], [label for label, _ in found], **place)
    sheet.write_figure(figure, path)


def check_suffix(path: str | Path) -> None:
    """Refuse the path of a figure that cannot be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise unknown_name("kind of figure", suffix, SUFFIXES)


def _bars(axes: Axes, rows: dict[str, dict[str, list[LeakageStudy]]]) -> None:
    """Four bars per stream: filled for the graph attack, hatched for the node attack."""
    width = 0.21
    for at, by_method in enumerate(rows.values()):
        mine = [study for found in by_method.values() for study in found]
        for k, (attack, protocol) in enumerate((a, p) for a in _ATTACKS for p in _COLOURS):
            height = fmean(s.leakage.accuracy[protocol][attack].by_node[-1] for s in mine)
            place, colour = at + (k - 1.5) * width, _COLOURS[protocol]
            filled: dict[str, Any] = (
                {"color": colour} if attack == "graph" else {"color": "white", "hatch": "////"}
            )
            label = f"{attack} attack, {protocol}" if at == 0 else None
            axes.bar(place, height, width * 0.9, edgecolor=colour, label=label, **filled)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # over the chance line
            words = f"{height:.0f}"
            axes.text(place, height + 2, words, ha="center", fontsize=sheet.SMALL, bbox=box)
        chance = fmean(study.leakage.chance[-1] for study in mine)
        ends, label = [at - 2.15 * width, at + 2.15 * width], "chance (largest task)"
        dashed: dict[str, Any] = {"color": "black", "linestyle": (0, (2, 1))}
        axes.plot(ends, [chance] * 2, label=None if at else label, **dashed)
    axes.set_xticks(range(len(rows)), [_name(stream, found) for stream, found in rows.items()])
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_ylim(0, 108)
    axes.set_yticks(range(0, 101, 25))
    sheet.label(axes, "", "test nodes whose task is named (%)")
    sheet.dress(axes, "y")
    axes.tick_params(axis="x", length=0)
    sheet.heading(axes, "Can the task id be read off?")


def _lifts(axes: Axes, rows: dict[str, dict[str, list[LeakageStudy]]]) -> None:
    """A line per stream, method and protocol, from no task id to the true one."""
    names: list[tuple[float, str]] = []
    place = -1.1
    for stream, by_method in rows.items():
        place += 0.6  # streams stand further apart than methods
        for method, mine in by_method.items():
            place += 0.5
            for protocol, colour in _COLOURS.items():
                found = {how: fmean(getattr(s.lift[protocol], how) for s in mine) for how in _WAYS}
                line: dict[str, Any] = {"color": colour, "zorder": 2}
                axes.plot([found["plain"], found["oracle"]], [place] * 2, alpha=0.35, **line)
                for how, (_, style) in _WAYS.items():
                    axes.plot(found[how], place, linestyle="none", **(line | style))
                place += 1
            names.append((place - 1.5, f"{display(method)}, {_name(stream, {method: mine})}"))
    axes.set_yticks([y for y, _ in names], [name for _, name in names])
    axes.set_ylim(place - 0.3, -0.7)  # the first row on top
    axes.set_xlim(0, 100)
    sheet.label(axes, f"accuracy {symbol(METRIC.key, sheet.MATHS)} by class (%)", "")
    sheet.dress(axes, "x")
    axes.tick_params(axis="y", length=0)
    sheet.heading(axes, "What is it worth to a method?")
    for words, style in _WAYS.values():  # in black: colour says the protocol
        axes.plot([], [], linestyle="none", color="black", label=words, **style)
    for protocol, colour in _COLOURS.items():
        axes.plot([], [], color=colour, alpha=0.5, label=f"{protocol} testing")


def _name(stream: str, found: dict[str, list[LeakageStudy]]) -> str:
    stand_in = any(study.stand_in for studies in found.values() for study in studies)
    return marked(stream, stand_in).replace(" (", "\n(")
