"""Figures of results: SVG, PDF or PNG by the suffix of the path. Needs `undrift[figures]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError, unknown_name
from undrift.learners.registry import METHODS
from undrift.reporting.figures.sheet import blank_figure
from undrift.reporting.figures.style import display, style_of
from undrift.storage.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from undrift.experiments.result import Result

__all__ = [
    "accuracy_matrix_figure",
    "canvas",
    "learning_curves",
    "limits",
    "spread_apart",
    "style_of",
    "write_figure",
]

SUFFIXES = (".pdf", ".png", ".svg")


def learning_curves(results: Mapping[str, Sequence[Result]], path: str | Path) -> None:
    """A_t by class after each task, one line per method: the mean over seeds, and a band.

    `results` maps a method's name to its results over seeds, all of one stream. The band is one
    standard deviation to either side. Every line is named at its end, without a legend to look
    up.
    """
    every = [result for group in results.values() for result in group]
    if not every or not all(results.values()):
        raise InputError("learning curves need at least one result per method; run some first")
    streams = sorted({result.spec.stream for result in every})
    if len(streams) > 1:
        raise InputError(
            f"one figure shows one stream, not {len(streams)} ({', '.join(streams)}); draw one "
            "figure per stream"
        )
    figure, axes = canvas(path, width=7.2, height=4.2)
    outside = [name for name in results if name not in METHODS]
    labels: dict[str, tuple[float, str]] = {}
    for method, group in results.items():
        style = style_of(method, outside.index(method) if method in outside else 0)
        height = _curve(axes, style, [result.by_class.a_t for result in group])
        labels[method] = height, style["color"]
    steps = max(len(result.by_class) for result in every)
    axes.set_xticks(range(0, steps, 1 + (steps - 1) // 12))
    axes.set_xlim(-0.25, steps - 1 + 0.25)
    axes.set_xlabel("task t")
    axes.set_ylabel("accuracy $A_t$ by class (%)")
    axes.grid(axis="y", color="#E3E3E3", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(*limits(*axes.get_ylim()))
    _title(axes, every[0], f"accuracy after each task, {_seeds(results)}")
    _name_lines(axes, labels)
    write_figure(figure, path)


def accuracy_matrix_figure(result: Result, path: str | Path) -> None:
    """The accuracy matrix by class as a heat map with its numbers, and A_t in a last column.

    Colours run from 0 to 100 percent whatever the values, so that figures can be compared. The
    numbers are in the cells; there is no colour bar to read them from.
    """
    matrix = result.by_class
    size = len(matrix)
    figure, axes = canvas(path, width=max(1.2 + 0.52 * size, 3.4), height=1.2 + 0.42 * size)
    blank = float("nan")
    cells = [[*row, *[blank] * (size - len(row))] for row in matrix.rows]
    axes.imshow(cells, cmap="cividis", vmin=0, vmax=100, aspect="auto")
    for t, row in enumerate(matrix.rows):
        for i, accuracy in enumerate(row):
            shade = "black" if accuracy > 55 else "white"  # cividis is light from there on
            axes.text(i, t, f"{accuracy:.1f}", ha="center", va="center", color=shade, fontsize=8)
    axes.set_xticks(range(size))
    axes.set_yticks(range(size))
    axes.set_xlabel("accuracy on task i (%)")
    axes.set_ylabel("after task t")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    means = axes.secondary_yaxis("right")  # A_t of each row, where the eye ends reading it
    means.set_yticks(range(size), [f"{value:.1f}" for value in matrix.a_t], weight="bold")
    means.tick_params(length=0, labelsize=8)
    means.spines[:].set_visible(False)
    axes.annotate("$A_t$", (1, 0), (8, -13), "axes fraction", "offset points", va="center")
    _title(axes, result, f"{display(result.spec.method)}, seed {result.spec.seed}")
    write_figure(figure, path)


def limits(low: float, high: float) -> tuple[float, float]:
    """At least ten points high, so that noise does not look like a trend, and in 0 to 101."""
    middle, half = (low + high) / 2, max(high - low, 10.0) / 2
    top = min(middle + half, 101.0)
    return max(min(low, top - 2 * half), 0.0), top


def _curve(axes: Axes, style: Mapping[str, Any], runs: Sequence[Sequence[float]]) -> float:
    """Draw a method's mean and band; the height at which its line ends."""
    columns = list(zip(*runs, strict=False))  # a run that is still going ends the line early
    means = [fmean(column) for column in columns]
    steps = range(len(means))
    axes.plot(steps, means, linewidth=1.8, markersize=4.5, **style)
    if len(runs) > 1:
        spread = [stdev(column) for column in columns]
        low = [mean - width for mean, width in zip(means, spread, strict=True)]
        high = [mean + width for mean, width in zip(means, spread, strict=True)]
        axes.fill_between(steps, low, high, color=style["color"], alpha=0.16, linewidth=0)
    return means[-1]


def _name_lines(axes: Axes, labels: Mapping[str, tuple[float, str]]) -> None:
    """Write each method's name right of its line's end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    names = sorted(labels, key=lambda name: labels[name][0])
    ends = [labels[name][0] for name in names]
    heights = spread_apart(ends, (high - low) * 0.055, low, high)
    for name, height in zip(names, heights, strict=True):
        axes.annotate(
            display(name),
            xy=(1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=labels[name][1],
            fontsize=9,
            weight="bold",
            annotation_clip=False,
        )


def spread_apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending places moved as little as possible to lie `gap` apart, from low to high.

    Place k minus k gaps must not decrease: a monotone regression, solved by pooling neighbours
    that are out of order. Where all of them do not fit, they start at `low`.

    >>> spread_apart([1.0, 1.0, 5.0], gap=1.0, low=0.0, high=5.0)
    [0.5, 1.5, 5.0]
    """
    pools: list[list[float]] = []
    for k, place in enumerate(places):
        pools.append([place - k * gap])
        while len(pools) > 1 and fmean(pools[-1]) < fmean(pools[-2]):
            last = pools.pop()
            pools[-1].extend(last)
    most = high - (len(places) - 1) * gap
    level = [max(min(fmean(pool), most), low) for pool in pools for _ in pool]
    return [height + k * gap for k, height in enumerate(level)]


def _seeds(results: Mapping[str, Sequence[Result]]) -> str:
    counts = sorted({len(group) for group in results.values()})
    if counts == [1]:
        return "one seed"
    several = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"mean and deviation over {several} seeds"


def _title(axes: Axes, result: Result, rest: str) -> None:
    stream = result.spec.stream + (" (stand-in)" if result.stand_in else "")
    axes.set_title(f"{stream}, {result.spec.protocol} protocol\n{rest}", loc="left", fontsize=10)


def canvas(path: str | Path, *, width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure in inches; refuses a suffix that cannot be written."""
    _suffix(path)
    figure = blank_figure(width, height, layout="constrained")
    return figure, figure.add_subplot()


def _suffix(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise unknown_name("kind of figure", suffix, SUFFIXES)
    return suffix


def write_figure(figure: Figure, path: str | Path, *, dpi: int = 160) -> None:
    """Write a figure in the form of the path's suffix, whole or not at all."""
    from matplotlib import rc_context, rcdefaults, rcParams

    kind = _suffix(path).removeprefix(".")
    # no date and a fixed salt: the same results give the same file
    dated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    image = BytesIO()
    with rc_context():
        rcdefaults()  # not the user's: the same file on every machine
        rcParams.update({"svg.hashsalt": "undrift", "svg.fonttype": "path", "pdf.fonttype": 42})
        figure.savefig(image, format=kind, dpi=dpi, metadata=dated[kind])
    write_atomically(path, image.getvalue())
