"""The sheet a figure is drawn on: its size in print, its fonts, and panels placed in mm.

Sizes are those of print: a figure is put into a paper without scaling, so that its smallest
letters are `SMALL` points there. Panels are placed by hand rather than by an automatic layout:
labels are moved apart by how large a panel is, which must be known while drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from undrift.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLUMN",
    "LARGE",
    "PAGE",
    "PLAIN",
    "SMALL",
    "blank_figure",
    "dress",
    "heading",
    "house_style",
    "legend_above",
    "mm",
    "panel",
    "sheet",
    "text_width",
]

COLUMN, PAGE = 85.0, 178.0
"""The width of one column and of a page with two, in mm."""

SMALL, PLAIN, LARGE = 6.5, 7.0, 7.5
"""The sizes of letters, in points."""

_INCH = 25.4
_POINT = _INCH / 72

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
        raise InputError(
            "figures need matplotlib; install it with: pip install 'undrift[figures]'"
        ) from error
    return matplotlib


def blank_figure(
    width: float, height: float, layout: Literal["constrained"] | None = None
) -> Figure:
    """An empty figure in inches, one of its own: pyplot's global state stays untouched."""
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def sheet(width: float, height: float) -> Figure:
    """An empty figure in mm, for panels placed by hand."""
    return blank_figure(width / _INCH, height / _INCH)


def panel(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes in mm from the upper left corner of the figure."""
    across, down = (float(inches) * _INCH for inches in figure.get_size_inches())
    box = (left / across, 1 - (top + height) / down, width / across, height / down)
    axes: Axes = figure.add_axes(box)
    return axes


def dress(axes: Axes, grid: Literal["x", "y", "both"] | None = None) -> None:
    """Small tick labels, no box, and a light grid behind everything."""
    axes.tick_params(labelsize=SMALL, width=0.6, length=2.5, pad=2)
    axes.tick_params(which="minor", width=0.4, length=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        axes.set_axisbelow(True)
        axes.grid(axis=grid, color="#E3E3E3", linewidth=0.5)


def heading(axes: Axes, title: str, rest: str = "", *, lift: float = 0.0) -> None:
    """A bold title over the left end of the axes, and plain words after it, `lift` mm higher up."""
    place: dict[str, Any] = {
        "xy": (0, 1),
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "annotation_clip": False,
    }
    up = 4 + lift / _POINT
    axes.annotate(title, xytext=(0, up), fontsize=LARGE, weight="bold", **place)
    after = text_width(title, LARGE, "bold") / _POINT + 6
    axes.annotate(rest, xytext=(after, up), fontsize=PLAIN, color="#444444", **place)


def legend_above(figure: Figure, entries: Sequence[tuple[Artist, str]], middle: float) -> None:
    """A legend in one line at the top of the figure, around the given place across, in mm."""
    figure.legend(
        [mark for mark, _ in entries],
        [words for _, words in entries],
        loc="upper center",
        bbox_to_anchor=(middle / _INCH / float(figure.get_size_inches()[0]), 1.0),
        ncols=len(entries),
        fontsize=PLAIN,
        frameon=False,
        handlelength=1.3,
        handletextpad=0.4,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def mm(points: float) -> float:
    """Points in mm.

    >>> mm(72)
    25.4
    """
    return points * _POINT


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = SMALL, weight: str = "normal") -> float:
    """How wide a line of text is drawn, in mm."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family="DejaVu Sans", weight=weight)
    return mm(float(TextPath((0, 0), text or " ", size=size, prop=font).get_extents().x1)) + 0.2
