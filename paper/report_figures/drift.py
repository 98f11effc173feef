"""Feature drift: the base task's embeddings under the first and under the last encoder."""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paper.published import SHOWN
from paper.report_figures.chosen import choice, not_run, only
from undrift.errors import InputError
from undrift.experiments.result import Result
from undrift.formatting import percent
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import Figure, Shown, missing, pages, ready
from undrift.reporting.figures.sheet import COLUMN, LARGE, PLAIN
from undrift.reporting.figures.style import display, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[Any]]

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError, MemoryError)
_NODES = 200  # drawn per panel: more is a blot at this size, and a file of megabytes
_MEANS = 12  # classes at most whose means are joined: more lines are a tangle
_LEFT, _TOP, _HEAD, _GAP, _EDGE = 5.0, 4.5, 5.5, 1.5, 1.0  # in mm
# hues of classes: dark for the last encoder, mixed with white for the first
_HUES = ("#0072B2", "#D55E00", "#009E73", "#B3478C", "#A87400", "#332288", "#5F5F5F", "#117733")


def figures(shown: Shown) -> Iterator[Figure]:
    """Four streams at a time, one run of each method; those without a picture are named."""
    methods = SHOWN["drift"]
    groups = only(shown, methods)
    panels: dict[str, list[tuple[Result, DrawnNodes]]] = defaultdict(list)
    absent = []
    for stream, found in groups.items():
        for run, *_ in found.values():
            what = f"{display(run.spec.method)} on {title_of(run)}"
            path = shown.records.folder / run.spec.id / "embedding.npz"
            try:
                if path.exists():
                    panels[stream].append((run, load_embedding(path)))
                else:
                    absent.append(what)
            except InputError as error:
                yield missing("drift", f"{what}: {error}")
    if not groups:
        yield not_run("drift")
    elif absent:
        yield missing("drift", f"there is no embedding.npz of {', '.join(absent)}")
    for name, streams in pages("drift", list(panels)):
        here = [panel for stream in streams for panel in panels[stream]]
        titles = dict.fromkeys(title_of(run) for run, _ in here)
        caption = (
            "Principal components of the base task's embeddings under the first encoder (light "
            "circles) and the last (dark triangles), coloured by class, a line from the old mean "
            "of a class to the new; one seed. The percentage is measured on all embeddings: how "
            f"far they moved over how long they were.{choice(shown, 'drift', streams)}"
        )
        title = f"Feature drift on {', '.join(titles)}"
        yield Figure(name, title, caption, ready(drift_figure, here, methods))


class DrawnNodes(NamedTuple):
    """Nodes of the base task in the plane: `first` and `last` are [m, 2], `labels` is [m]."""

    first: Array
    last: Array
    labels: Array


def load_embedding(path: str | Path) -> DrawnNodes:
    """Read an `embedding.npz`; a missing, damaged or foreign file is an `InputError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            if (bad := archive.testzip()) is not None:  # numpy does not read to the checksum
                raise InputError(f"{bad} is not what was written")
        with np.load(path, allow_pickle=False) as file:
            found = DrawnNodes(*(np.asarray(file[name]) for name in DrawnNodes._fields))
        if not found.first.shape == found.last.shape == (found.labels.size, 2):
            raise InputError(f"its shapes are {', '.join(str(part.shape) for part in found)}")
        numbers = all(part.dtype.kind in "fiu" and np.isfinite(part).all() for part in found)
        if not numbers or found.labels.dtype.kind == "f" or not found.labels.size:
            raise InputError("it holds no numbers of the right kind")
        return found
    except FileNotFoundError as error:
        raise InputError(f"there is no {path}; run the method again to get it") from error
    except _DAMAGE as error:  # an InputError is a ValueError
        raise InputError(
            f"{path} is damaged or holds no embedding ({error}); delete it and run again"
        ) from error


@sheet.house_style
def drift_figure(panels: Sequence[tuple[Result, DrawnNodes]], methods: Sequence[str]) -> Any:
    """Runs and where their encoders put the base task: a row per stream, a column per method."""
    placed = {(run.spec.place, run.spec.method): (run, at) for run, at in panels}
    methods = [m for m in methods if any(m == method for _, method in placed)]
    streams = {run.spec.place: title_of(run) for run, _ in panels}
    size = min((COLUMN - _LEFT - _EDGE + _GAP) / len(methods) - _GAP, 58.0)
    figure = sheet.blank(COLUMN, _TOP + len(streams) * (size + _HEAD) + _EDGE)
    for row, (stream, title) in enumerate(streams.items()):
        top = _TOP + row * (size + _HEAD) + _HEAD
        for column, method in enumerate(methods):
            axes = sheet.panel(figure, _LEFT + column * (size + _GAP), top, size, size)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(color="#999999", linewidth=0.5)
            name = display(method)
            if (stream, method) in placed:
                run, embedding = placed[stream, method]
                _points(axes, embedding, size)
                name += f": {_drift(run)}"
            else:
                axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes)
            axes.set_title(name, fontsize=PLAIN, pad=2.5)
            if column == 0:
                axes.set_ylabel(title, fontsize=LARGE, weight="bold", labelpad=3)
    none = {"linestyle": "none"}
    key: list[tuple[Any, str]] = [
        (none | {"marker": "o", "color": "#A8C8DE", "markersize": 4.5}, "first encoder"),
        (none | {"marker": "^", "color": "#004B76", "markersize": 3.5}, "last encoder"),
    ]
    if any(np.unique(embedding.labels).size <= _MEANS for _, embedding in panels):
        key.append(({"color": "black", "linewidth": 0.8}, "a class's mean moved"))
    sheet.legend_above(figure, key, (_LEFT + COLUMN - _EDGE) / 2)
    return figure


def _drift(result: Result) -> str:
    last = result.drift[-1] if result.drift else None
    if last is None:
        return "drift undefined"
    digits = 0 if last >= 0.1 or last == 0 else 1
    return "drift < 0.1 %" if 0 < last < 0.001 else f"drift {percent(last, digits)}"


def _points(axes: Axes, embedding: DrawnNodes, size: float) -> None:
    from matplotlib.colors import to_rgb

    kept = np.unique(np.linspace(0, embedding.labels.size - 1, _NODES).astype(int))
    first, last, labels = (part[kept] for part in embedding)
    classes = np.unique(embedding.labels)
    dark = np.array([to_rgb(_HUES[k % len(_HUES)]) for k in range(classes.size)])
    of = np.searchsorted(classes, labels)
    light = 1 - 0.38 * (1 - dark)
    (x, y), (u, v) = first.T, last.T
    area = 5.0 * (size / 26) ** 1.2
    axes.scatter(x, y, s=area * 1.9, c=light[of], marker="o", linewidths=0, zorder=2)
    axes.scatter(u, v, s=area * 0.55, c=dark[of] * 0.8, marker="^", linewidths=0, zorder=3)
    for c in classes if classes.size <= _MEANS else ():
        mine = embedding.labels == c
        ends = np.stack([embedding.first[mine].mean(0), embedding.last[mine].mean(0)])
        axes.plot(*ends.T, color="white", linewidth=1.6, zorder=4, solid_capstyle="round")
        axes.plot(*ends.T, color="black", linewidth=0.7, zorder=5, solid_capstyle="round")
    every = np.concatenate([first, last])
    middle = (every.max(0) + every.min(0)) / 2
    half = max(float((every.max(0) - every.min(0)).max()) / 2, 1e-12) * 1.08
    axes.set_xlim(middle[0] - half, middle[0] + half)  # one scale both ways: lengths are real
    axes.set_ylim(middle[1] - half, middle[1] + half)
