"""Class imbalance rho_t of every task, a panel of bars per stream."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isfinite
from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.reporting.figures.sheet import (
    COLUMN,
    PLAIN,
    SMALL,
    dress,
    heading,
    house_style,
    panel,
    sheet,
    text_width,
)
from undrift.reporting.figures.style import drawn_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["imbalance_figure"]

_LEFT, _TOP, _HEIGHT, _BOTTOM, _RIGHT = 10.0, 5.5, 26.0, 8.5, 1.5  # in mm
_WIDE = 10.0  # a range of rho over which bars need a log scale
_COLOUR = "#0072B2"


@house_style
def imbalance_figure(
    imbalance: Mapping[str, Mapping[int, float]],
    *,
    stand_ins: frozenset[str] = frozenset(),
    width: float = COLUMN,
) -> Figure:
    """rho_t, the nodes of the largest class of task t over those of its smallest, as bars.

    `imbalance` maps a stream to rho by task (`TaskSummary.imbalance`). Bars start at 1, a
    balanced task. A panel has a log scale when its largest rho is ten times its smallest. A
    task with an empty class, whose rho is infinite, has a hatched bar of the full height.
    """
    if not imbalance or not all(imbalance.values()):
        raise InputError("imbalance needs rho_t of at least one task per stream")
    for stream, rho in imbalance.items():
        for t, value in rho.items():
            if not value >= 1.0:
                raise InputError(
                    f"rho of task {t} of {stream} is {value}; it is the largest class over the "
                    "smallest, so at least 1"
                )
    columns = max(min(int(width / COLUMN), len(imbalance)), 1)
    rows, across, down = ceil(len(imbalance) / columns), width / columns, _TOP + _HEIGHT + _BOTTOM
    figure = sheet(width, rows * down)
    for k, (stream, rho) in enumerate(imbalance.items()):
        row, column = divmod(k, columns)
        inner = across - _LEFT - _RIGHT
        axes = panel(figure, column * across + _LEFT, row * down + _TOP, inner, _HEIGHT)
        _bars(axes, rho, inner)
        title = drawn_title(stream, stand_in=stream in stand_ins)
        heading(axes, title, "largest class over smallest")
    return figure


def _bars(axes: Axes, rho: Mapping[int, float], width: float) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    finite = [value for value in rho.values() if isfinite(value)] or [1.0]
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
    for t, value in rho.items():
        if isfinite(value):
            axes.bar(t, value - 1, 0.72, bottom=1, color=_COLOUR)
        else:
            empty = axes.bar(t, top - 1, 0.72, bottom=1, color="white")[0]
            empty.set(edgecolor=_COLOUR, hatch="////", linewidth=0.6)
    for t, label in _labels(rho, width):
        height = min(rho[t], top)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        inside = not isfinite(rho[t])
        axes.annotate(
            label,
            (t, height),
            (0, -3 if inside else 1.5),
            textcoords="offset points",
            ha="center",
            va="top" if inside else "bottom",
            fontsize=SMALL,
            bbox=box if inside else None,
        )
    tasks = sorted(rho)
    axes.set_xticks(tasks[:: ceil(len(tasks) * 3.6 / width)])
    axes.set_xlim(tasks[0] - 0.6, tasks[-1] + 0.6)
    axes.set_xlabel("task $t$", fontsize=PLAIN, labelpad=1)
    axes.set_ylabel(r"imbalance $\rho_t$", fontsize=PLAIN, labelpad=2)
    dress(axes, "y")


def _labels(rho: Mapping[int, float], width: float) -> list[tuple[int, str]]:
    """The numbers over the bars: with a decimal where there is room, else without."""
    slot = width / (max(rho) - min(rho) + 1.2)
    for decimals in (1, 0):
        texts = [
            (t, f"{v:.{decimals if v < 100 else 0}f}" if isfinite(v) else "∞")
            for t, v in rho.items()
        ]
        if all(text_width(text) + 0.2 < slot for _, text in texts):
            return texts
    return []
