"""The sheet a figure is drawn on: its size in print, its fonts, and panels placed in mm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np

from undrift.errors import not_installed
from undrift.storage.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 85.0  # the width of one column of a page with two, in mm
SMALL, PLAIN, LARGE = 6.5, 7.0, 7.5  # the sizes of letters, in points
TOP, BOTTOM = 5.5, 8.5  # over a panel for its heading, and under it for its axis, in mm
MATHS = r"$%s_{\mathrm{%s}}$"  # how a figure writes the symbol of a metric
_INCH = 25.4
POINT = _INCH / 72  # in mm

_P = ParamSpec("_P")
_T = TypeVar("_T")


def house_style(draw: Callable[_P, _T]) -> Callable[_P, _T]:
    """Draw with matplotlib's own defaults and our fonts, whatever the user's matplotlibrc says."""

    @wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        matplotlib = _matplotlib()
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update({"font.size": PLAIN, "axes.linewidth": 0.6})
            return draw(*args, **kwargs)

    return drawn


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure  # a part that is missing is found here
    except ImportError as error:
        raise not_installed("figures need matplotlib", "figures") from error
    return matplotlib


def blank(width: float, height: float) -> Figure:
    """An empty figure in mm, one of its own: pyplot's global state stays untouched."""
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / _INCH, height / _INCH))
    FigureCanvasAgg(figure)
    return figure


def panels(
    count: int, height: float, *, right: float, head: float = 0.0, width: float = COLUMN
) -> tuple[Figure, list[Axes], float]:
    """Equal panels under each other, `right` and `head` free beside and over them; their width."""
    left, down = 10.0, height + TOP + BOTTOM  # left: for the name of the axis
    inner = width - left - right
    figure = blank(width, head + count * down)
    tops = [head + k * down + TOP for k in range(count)]
    return figure, [panel(figure, left, top, inner, height) for top in tops], inner


def panel(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes in mm from the upper left corner of the figure."""
    across, down = (float(inches) * _INCH for inches in figure.get_size_inches())
    box = (left / across, 1 - (top + height) / down, width / across, height / down)
    return figure.add_axes(box)


def dress(axes: Axes, grid: Literal["x", "y", "both"] | None = None) -> None:
    """Small tick labels, no box, and a light grid behind everything."""
    axes.tick_params(labelsize=SMALL, width=0.6, length=2.5, pad=2)
    axes.tick_params(which="minor", width=0.4, length=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        axes.set_axisbelow(True)
        axes.grid(axis=grid, color="#E3E3E3", linewidth=0.5)


def label(axes: Axes, across: str, up: str) -> None:
    """The names of both axes."""
    axes.set_xlabel(across, fontsize=PLAIN, labelpad=1)
    axes.set_ylabel(up, fontsize=PLAIN, labelpad=2)


def heading(axes: Axes, title: str, rest: str = "", *, lift: float = 0.0) -> None:
    """A bold title over the left end of the axes, and plain words after it, `lift` mm higher up."""
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    place |= {"xy": (0, 1), "annotation_clip": False}
    after, up = text_width(title, LARGE, "bold") / POINT + 6, 4 + lift / POINT
    axes.annotate(title, xytext=(0, up), fontsize=LARGE, weight="bold", **place)
    axes.annotate(rest, xytext=(after, up), fontsize=PLAIN, color="#444444", **place)


def legend_above(figure: Figure, entries: Sequence[tuple[Any, str]], middle: float) -> None:
    """A legend in one line at the top, around a place in mm; a mark may be a line's style."""
    from matplotlib.lines import Line2D

    place = middle / _INCH / float(figure.get_size_inches()[0]), 1.0
    look: dict[str, Any] = {"ncols": len(entries), "fontsize": PLAIN, "frameon": False}
    look |= {"handlelength": 1.3, "handletextpad": 0.4, "columnspacing": 1.4, "borderaxespad": 0.2}
    every = ((Line2D([], [], **m) if isinstance(m, dict) else m, words) for m, words in entries)
    marks, words = zip(*every, strict=True)
    figure.legend(marks, words, loc="upper center", bbox_to_anchor=place, **look)


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = SMALL, weight: str = "normal") -> float:
    """How wide a line of text is drawn, in mm."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family="DejaVu Sans", weight=weight)
    path = TextPath((0, 0), text or " ", size=size, prop=font)
    return POINT * float(path.get_extents().x1) + 0.2


def limits(low: float, high: float) -> tuple[float, float]:
    """At least ten points high, so that noise does not look like a trend, and in 0 to 101."""
    middle, half = (low + high) / 2, max(high - low, 10.0) / 2
    top = min(middle + half, 101.0)
    return max(min(low, top - 2 * half), 0.0), top


def place_apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending places moved as little as possible (a monotone regression) to lie `gap` apart."""
    from scipy.optimize import isotonic_regression

    gaps = gap * np.arange(len(places))
    level = isotonic_regression(np.asarray(places) - gaps).x
    return [float(place) for place in np.clip(level, low, max(high - gaps[-1], low)) + gaps]


def write_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure in the form of the path's suffix, whole or not at all."""
    write_atomically(path, figure_bytes(figure, Path(path).suffix[1:].lower()))


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of a file: the same results give the same, on every machine."""
    from matplotlib import rc_context, rcdefaults, rcParams

    # no date and a fixed salt
    dated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    image = BytesIO()
    with rc_context():
        rcdefaults()  # not the user's
        rcParams.update({"svg.hashsalt": "undrift", "svg.fonttype": "path", "pdf.fonttype": 42})
        figure.savefig(image, format=kind, dpi=160, metadata=dated[kind])
    return image.getvalue()
