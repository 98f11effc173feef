"""`Figure`: one figure of the report, ours or another package's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from undrift.evaluation.metrics import METRICS, Metric
from undrift.experiments.standing import standing
from undrift.reporting.figures.sheet import COLUMN
from undrift.reporting.figures.style import display, title_of

if TYPE_CHECKING:
    from undrift.experiments.result import Result
    from undrift.experiments.store import Records

__all__ = ["HEADLINE", "Figure", "Groups", "Shown", "ready"]

HEADLINE: Metric = METRICS["a_avg"]
"""The metric that a figure shows where it shows one."""

Groups = Mapping[str, Mapping[str, "Sequence[Result]"]]
"""Results over seeds, by stream and then by method."""

AT_ONCE = 4  # streams in a figure: as many panels as fill a page


@dataclass(frozen=True)
class Figure:
    """A figure: its file's name, what stands under it, and what draws it.

    `draw` gets the records of a folder of runs (`undrift.experiments.store.Records`) and returns a
    matplotlib figure, or None where there is nothing to draw. `left_out` is set for one that
    cannot be drawn, and says why.
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


@dataclass(frozen=True)
class Shown:
    """What figures are drawn from: the records, and which of them stand for what."""

    records: Records
    width: float = COLUMN

    @cached_property
    def groups(self) -> Groups:
        """The runs that stand for every method on every stream."""
        return standing(self.records.results, self.records.manifests)

    @property
    def stand_ins(self) -> frozenset[str]:
        """The streams whose data only imitates a benchmark."""
        return frozenset(r.spec.stream for r in self.records.results.values() if r.stand_in)

    def only(self, methods: Sequence[str]) -> Groups:
        """The streams that have at least one of these methods, and only those methods."""
        kept = {
            stream: {method: found[method] for method in methods if method in found}
            for stream, found in self.groups.items()
        }
        return {stream: found for stream, found in kept.items() if found}


def pages(name: str, streams: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Streams in parts that fill a page each, with names that stay when streams are added."""
    for k, start in enumerate(range(0, len(streams), AT_ONCE), 1):
        yield (name if k == 1 else f"{name}-{k}"), streams[start : start + AT_ONCE]


def of_all_streams(
    shown: Shown, name: str, title: str, caption: str, make: Callable[..., Any], *args: Any
) -> Iterator[Figure]:
    """A figure of all methods on four streams at a time; `%s` in the words names the streams."""
    if not shown.groups:
        yield missing(name, no_run_of())
    for page, streams in pages(name, list(shown.groups)):
        here = {stream: shown.groups[stream] for stream in streams}
        titles = named(here)
        draw = ready(make, here, *args, width=shown.width)
        yield Figure(page, title.replace("%s", titles), caption.replace("%s", titles), draw)


def named(groups: Groups) -> str:
    """The titles of the streams."""
    return ", ".join(title_of(next(iter(found.values()))[0]) for found in groups.values())


def no_run_of(methods: Sequence[str] = ()) -> str:
    """Why a figure has nothing to show."""
    return f"there is no finished run of {', '.join(map(display, methods)) or 'any method'}"
