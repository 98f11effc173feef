"""Performance matrices of several methods side by side, under one colour scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.experiments.result import Result
from undrift.reporting.figures import sheet
from undrift.reporting.figures.figure import HEADLINE, Figure, Shown, chosen, not_run, ready
from undrift.reporting.figures.sheet import PLAIN, SMALL
from undrift.reporting.figures.style import display, safe_name, seeds_of, title_of
from undrift.reporting.names import metric_value, symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS_SHOWN = ("acil", "ds-al", "adr")  # of the paper's figure

_LEFT, _TOP, _HEAD, _BOTTOM, _GAP, _BAR = 8.5, 5.5, 7.5, 8.0, 2.0, 10.5  # in mm
_WIDEST = f"{HEADLINE.symbol.replace('_', '')} 100.0"  # as wide as what stands under a name
_LEAST = 18.0  # the least width of a matrix


def figures(shown: Shown) -> Iterator[Figure]:
    """A figure per stream."""
    groups = shown.only(METHODS_SHOWN)
    if not groups:
        yield not_run("matrices", METHODS_SHOWN)
    for stream, found in groups.items():
        title = f"Performance matrices on {title_of(next(iter(found.values()))[0])}"
        caption = (
            "The accuracy on task i after learning task t, mean over seeds, under one colour scale."
            + chosen(METHODS_SHOWN, {stream: shown.groups[stream]})
        )
        draw = ready(matrices_figure, found, width=shown.width)
        yield Figure(f"matrices-{safe_name(stream)}", title, caption, draw)


@sheet.house_style
def matrices_figure(found: Mapping[str, Sequence[Result]], *, width: float = sheet.COLUMN) -> Any:
    """M[t, i] by class of several methods on one stream, each the mean over its seeds.

    Colours run from 0 to 100 percent whatever the values, so that figures can be compared.
    """
    found = {method: runs for method, runs in found.items() if runs}
    streams = sorted({run.spec.place for runs in found.values() for run in runs})
    if len(streams) != 1:
        raise InputError(
            f"matrices side by side are of one stream, not {len(streams)} "
            f"({', '.join(streams) or 'there are no runs'}); give the results of one"
        )
    inner = width - _LEFT - _BAR
    columns = min(int((inner + _GAP) / (_LEAST + _GAP)), len(found))
    rows = ceil(len(found) / columns)
    columns = ceil(len(found) / rows)  # as even as the rows allow
    size = min((inner + _GAP) / columns - _GAP, 60.0)
    tasks = max(len(run.by_class) for runs in found.values() for run in runs)
    head = 0.0 if _fits_inside(size, tasks, found) else _HEAD
    down = head + size + _GAP
    figure = sheet.blank(width, _TOP + rows * down - _GAP + _BOTTOM)
    for k, (method, runs) in enumerate(found.items()):
        row, column = divmod(k, columns)
        left, top = _LEFT + column * (size + _GAP), _TOP + row * down + head
        axes = sheet.panel(figure, left, top, size, size)
        _matrix(axes, method, runs, size, inside=not head)
        if column == 0:
            axes.set_ylabel("after task $t$", fontsize=PLAIN, labelpad=1)
        else:
            axes.tick_params(labelleft=False)
        if k + columns >= len(found):
            axes.set_xlabel("on task $i$", fontsize=PLAIN, labelpad=1)
        else:
            axes.tick_params(labelbottom=False)
    first = next(iter(found.values()))[0]
    words = f"accuracy per task (%), {seeds_of(found.values())}"
    sheet.heading(figure.axes[0], title_of(first), words, lift=head)
    place = sheet.panel(figure, _LEFT + columns * (size + _GAP), _TOP + head, 2.2, size)
    bar = figure.colorbar(figure.axes[0].images[0], cax=place, ticks=range(0, 101, 25))
    bar.outline.set_visible(False)
    place.tick_params(labelsize=SMALL, width=0.6, length=2, pad=1.5)
    return figure


def _fits_inside(size: float, tasks: int, methods: Iterable[str]) -> bool:
    """Whether two lines of text in the upper right corner stay clear of the diagonal."""
    longest = max(sheet.text_width(words, PLAIN) for words in (*map(display, methods), _WIDEST))
    cell = size / tasks
    return tasks - (longest + 0.5) / cell > 7.0 / cell


def _matrix(axes: Axes, method: str, runs: Sequence[Result], size: float, *, inside: bool) -> None:
    # a run that is still going cuts the mean short
    rows = [
        [fmean(cell) for cell in zip(*rows, strict=True)]
        for rows in zip(*(run.by_class.rows for run in runs), strict=False)
    ]
    tasks = len(rows)
    cells = [[*row, *[float("nan")] * (tasks - len(row))] for row in rows]
    axes.imshow(cells, cmap="cividis", vmin=0, vmax=100, interpolation="none")
    widest = max(sheet.text_width(f"{accuracy:.0f}") for row in rows for accuracy in row)
    numbers = size / tasks > widest + 0.4
    for t, row in enumerate(rows if numbers else ()):
        for i, accuracy in enumerate(row):
            shade = "black" if accuracy > 50 else "white"
            axes.text(i, t, f"{accuracy:.0f}", color=shade, **sheet.CENTRED)
    step = ceil(tasks * 3.6 / size)
    axes.set_xticks(range(0, tasks, step))
    axes.set_yticks(range(0, tasks, step))
    sheet.dress(axes)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=1.5, pad=1)
    average = fmean(metric_value(run.metrics.by_class, HEADLINE.key) for run in runs)
    name = f"{display(method)}\n{symbol(HEADLINE.key, sheet.MATHS)} {average:.1f}"
    corner, offset, across, up = (
        ((1, 1), (-1, -2), "right", "top") if inside else ((0, 1), (0, 2), "left", "bottom")
    )
    units = "axes fraction", "offset points"
    side: dict[str, Any] = {"ha": across, "va": up, "fontsize": PLAIN, "linespacing": 1.25}
    axes.annotate(name, corner, offset, *units, **side)
