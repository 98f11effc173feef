"""`Figure`: one figure of the report, and all of them, ours and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS, Metric
from undrift.experiments.result import Result
from undrift.experiments.standing import standing
from undrift.experiments.store import Records
from undrift.plugins import Registry
from undrift.reporting.figures.style import title_of

HEADLINE: Metric = METRICS["a_avg"]
"""The metric that a figure shows where it shows one."""

Groups = Mapping[str, Mapping[str, "Sequence[Result]"]]
"""Results over seeds, by stream and then by method."""

AT_ONCE = 4  # streams in a figure: as many panels as fill a page


@dataclass(frozen=True)
class Figure:
    """A figure: its file's name, what stands under it, and what draws it.

    `draw` gets the records of a folder of runs (`undrift.experiments.store.Records`) and returns a
    matplotlib figure, or None where there is nothing to draw. `left_out` says why it cannot.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Records], Any]
    left_out: str = ""


def ready(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[Records], Any]:
    """A `draw` whose data was chosen beforehand."""
    return lambda _: make(*args, **kwargs)


def missing(name: str, why: str) -> Figure:
    """A figure that cannot be drawn."""
    return Figure(name, name, "", lambda _: None, why)


@dataclass(eq=False)
class Shown:
    """What figures are drawn from: the records, and which of them stand for what."""

    records: Records

    @cached_property
    def every(self) -> Groups:
        """The runs that stand for every method on every stream, also where classes come back."""
        return standing(self.records.results, self.records.manifests)

    @cached_property
    def groups(self) -> Groups:
        """Those of streams in which no class comes back: they have tasks."""
        return {
            stream: found
            for stream, found in self.every.items()
            if not any(run.returning for runs in found.values() for run in runs)
        }


def pages(name: str, streams: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Streams in parts that fill a page each, with names that stay when streams are added."""
    for k, start in enumerate(range(0, len(streams), AT_ONCE), 1):
        yield (name if k == 1 else f"{name}-{k}"), streams[start : start + AT_ONCE]


def of_all_streams(
    shown: Shown, name: str, title: str, caption: str, make: Callable[..., Any], *args: Any
) -> Iterator[Figure]:
    """A figure of all methods on four streams at a time; `%s` in the words names the streams."""
    if not shown.every:
        yield missing(name, "there is no finished run of any method")
    for page, streams in pages(name, list(shown.every)):
        here = {stream: shown.every[stream] for stream in streams}
        titles = named(here)
        draw = ready(make, here, *args)
        yield Figure(page, title.replace("%s", titles), caption.replace("%s", titles), draw)


def named(groups: Groups) -> str:
    """The titles of the streams."""
    return ", ".join(title_of(next(iter(found.values()))[0]) for found in groups.values())


FIGURES = Registry(
    "figure",
    "undrift.figures",
    {
        "learning-curves": "undrift.reporting.figures.curves:figures",
        "accuracy-cost": "undrift.reporting.figures.trade_off:figures",
    },
)
"""Every figure of the report, in order: a `Figure`, or a function of `Shown` that gives some."""


def all_figures(records: Records) -> list[Figure]:
    """Every figure, those that cannot be drawn with the reason; nothing is drawn yet."""
    shown = Shown(records)
    return [figure for name in FIGURES.names() for figure in _figures(name, shown)]


def _figures(name: str, shown: Shown) -> list[Figure]:
    if name in FIGURES.own:
        return list(FIGURES.load(name)(shown))

    # another package's code may fail in any way: the rest of the report is made all the same
    def told(error: Exception) -> str:
        if isinstance(error, InputError):
            return str(error)
        return f"the package {FIGURES.origin(name)} failed ({type(error).__name__}: {error})"

    def guarded(draw: Callable[[Records], Any], records: Records) -> Any:
        try:
            return draw(records)
        except Exception as error:
            raise InputError(told(error)) from error

    try:
        found: Figure | Callable[[Shown], Iterable[Figure]] | Any = FIGURES.load(name)
        if not isinstance(found, Figure) and not callable(found):
            where = FIGURES.where(name)
            return [missing(name, f"{where} is no Figure, nor a function that gives some")]
        figures = [found] if isinstance(found, Figure) else list(found(shown))
    except Exception as error:
        return [missing(name, told(error))]
    return [replace(each, draw=partial(guarded, each.draw)) for each in figures]
