"""`Figure`: one figure of the report, and all of them, ours and those of other packages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import isnan
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

Runs = Mapping[str, Sequence[Result]]
"""Results over seeds, by method."""

Groups = Mapping[str, Runs]
"""The same by stream."""

AT_ONCE = 4  # streams in a figure: as many panels as fill a page


@dataclass(frozen=True)
class Figure:
    """A figure: its file's name, what stands under it, and what draws it.

    `draw` gets the records of a folder of runs and returns a matplotlib figure, or None where
    there is nothing to draw. `left_out` says why it cannot; `package` is where it comes from.

    >>> mine = Figure("mine", "My figure", "What it shows.", draw=lambda records: None)
    >>> mine.name, mine.left_out
    ('mine', '')
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Records], Any]
    left_out: str = ""
    package: str = "undrift"


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
        return self.having(HEADLINE.key)

    def having(self, key: str) -> Groups:
        """The runs that stand for every method on every stream, of those with this metric."""
        results = self.records.results.items()
        mine = {run: result for run, result in results if not isnan(result.value(key))}
        return standing(mine, self.records.manifests)

    @cached_property
    def compared(self) -> Groups:
        """The same of every stream by the first metric that a run on it has."""
        found: dict[str, Runs] = {}
        for key in METRICS:
            found |= {s: methods for s, methods in self.having(key).items() if s not in found}
        return found

    @cached_property
    def groups(self) -> Groups:
        """Those of streams in which no class comes back: they have tasks."""
        every = {s: [*chain.from_iterable(found.values())] for s, found in self.every.items()}
        return {s: self.every[s] for s, runs in every.items() if not any(r.returning for r in runs)}


def pages(name: str, streams: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Streams in parts that fill a page each, with names that stay when streams are added."""
    for k, start in enumerate(range(0, len(streams), AT_ONCE), 1):
        yield (name if k == 1 else f"{name}-{k}"), streams[start : start + AT_ONCE]


def of_all_streams(
    groups: Groups, name: str, title: str, caption: str, make: Callable[..., Any], *args: Any
) -> Iterator[Figure]:
    """A figure of all methods on four streams at a time; `%s` in the words names the streams."""
    if not groups:
        yield missing(name, "no finished run of a method has what it shows")
    for page, streams in pages(name, list(groups)):
        here = {stream: groups[stream] for stream in streams}
        about, words = (text.replace("%s", named(here)) for text in (title, caption))
        yield Figure(page, about, words, ready(make, here, *args))


def named(groups: Groups) -> str:
    """The titles of the streams."""
    return ", ".join(title_of(next(iter(found.values()))[0]) for found in groups.values())


_HERE = "undrift.reporting.figures"
_OWN = {"learning-curves": f"{_HERE}.curves:figures"}

FIGURES = Registry("figure", "undrift.figures", _OWN)
"""Every figure of the report, in order: a `Figure`, or a function of `Shown` that gives some."""


def all_figures(records: Records) -> list[Figure]:
    """Every figure, those that cannot be drawn with the reason; nothing is drawn yet."""
    shown, every = Shown(records), []
    for name in FIGURES.names():
        package = FIGURES.origin(name)
        try:
            found = FIGURES.load(name)
            if not isinstance(found, Figure) and not callable(found):
                what = "is no Figure, nor a function that gives some"
                raise InputError(f"{FIGURES.where(name)} {what}")
            figures = [found] if isinstance(found, Figure) else found(shown)
            every += [replace(each, package=package) for each in figures]
        except Exception as error:
            every.append(missing(name, failure(error, package)))
    return every


def failure(error: Exception, package: str) -> str:
    """Why a figure is left out. Its code may fail in any way: the rest of the report is made."""
    if isinstance(error, InputError):
        return str(error)
    return f"the package {package} failed ({type(error).__name__}: {error})"
