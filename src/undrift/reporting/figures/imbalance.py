"""Class imbalance rho_t of every task, a panel of bars per stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import Figure, Shown, missing, pages, ready
from undrift.reporting.figures.style import drawn_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 26.0
_WIDE = 10.0  # a range of rho over which bars need a log scale
_COLOUR = "#0072B2"


def figures(shown: Shown) -> Iterator[Figure]:
    """Rho of every stream whose runs recorded it, four streams at a time."""
    counted = {
        result.spec.place: dict(enumerate(result.imbalance))
        for result in shown.records.results.values()
        if result.imbalance
    }
    if not counted:
        why = "the results are of a version that did not record the sizes of the classes"
        yield missing("imbalance", why if shown.records.results else "there is no finished run")
    for name, streams in pages("imbalance", [s for s in shown.groups if s in counted]):
        here = {stream: counted[stream] for stream in streams}
        caption = "Rho_t, the nodes of a task's largest class over its smallest."
        draw = ready(imbalance_figure, here, stand_ins=shown.stand_ins, width=shown.width)
        yield Figure(name, "Class imbalance", caption, draw)


@sheet.house_style
def imbalance_figure(
    imbalance: Mapping[str, Mapping[int, float]],
    *,
    stand_ins: frozenset[str] = frozenset(),
    width: float = sheet.COLUMN,
) -> Any:
    """rho_t, the nodes of a task's largest class over its smallest, as bars from 1, by stream.

    The scale is a log one where rho varies tenfold; an infinite rho (an empty class) is hatched.
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
    figure, panels, inner = sheet.panels(len(imbalance), width, _HEIGHT, right=1.5)
    for axes, (stream, rho) in zip(panels, imbalance.items(), strict=True):
        _bars(axes, rho, inner)
        title = drawn_title(stream, stand_in=stream in stand_ins)
        sheet.heading(axes, title, "largest class over smallest")
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
    full, empty = {"color": _COLOUR}, {"color": "white", "edgecolor": _COLOUR, "hatch": "////"}
    for t, value in rho.items():
        look = full if isfinite(value) else empty | {"linewidth": 0.6}
        axes.bar(t, min(value, top) - 1, 0.72, bottom=1, **look)
    for t, label in _labels(rho, width):
        inside = not isfinite(rho[t])
        axes.annotate(
            label,
            (t, min(rho[t], top)),
            (0, -3 if inside else 1.5),
            textcoords="offset points",
            ha="center",
            va="top" if inside else "bottom",
            fontsize=sheet.SMALL,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8} if inside else None,
        )
    tasks = sorted(rho)
    axes.set_xticks(tasks[:: ceil(len(tasks) * 3.6 / width)])
    axes.set_xlim(tasks[0] - 0.6, tasks[-1] + 0.6)
    sheet.label(axes, "task $t$", r"imbalance $\rho_t$")
    sheet.dress(axes, "y")


def _labels(rho: Mapping[int, float], width: float) -> list[tuple[int, str]]:
    """The numbers over the bars: with a decimal where there is room, else without."""
    slot = width / (max(rho) - min(rho) + 1.2)
    for decimals in (1, 0):
        texts = [
            (t, f"{v:.{decimals if v < 100 else 0}f}" if isfinite(v) else "∞")
            for t, v in rho.items()
        ]
        if all(sheet.text_width(text) + 0.2 < slot for _, text in texts):
            return texts
    return []
