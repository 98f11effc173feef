"""What a page is made of, before it is laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from undrift.experiments.manifest import Manifest
from undrift.experiments.result import Result
from undrift.experiments.search_record import Search
from undrift.reporting.tables.compare import Grading
from undrift.reporting.tables.comparison import Comparison


@dataclass(frozen=True)
class PlanTable:
    """One plan of the page: what it asked for, and its table by class and by node.

    The tables have the same rows and streams.
    """

    manifest: Manifest
    tables: Mapping[Grading, Comparison]

    @property
    def first(self) -> Comparison:
        """The table that is shown first."""
        return next(iter(self.tables.values()))

    def method_of(self, row: str) -> str:
        """The method behind a row."""
        return self.manifest.row_methods.get(row, row)


@dataclass(frozen=True)
class PageFigure:
    """A figure as the text of an SVG file; `name` is that of its file, without the suffix."""

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Page:
    """Everything the report shows. `newest` is the day of the newest result, as yyyy-mm-dd."""

    title: str
    plans: Sequence[PlanTable]
    results: Mapping[str, Result]
    figures: Sequence[PageFigure] = ()
    searches: Sequence[Search] = ()
    damaged: Sequence[str] = ()
    left_out: Sequence[str] = ()
    newest: str | None = None

    @property
    def stand_ins(self) -> frozenset[str]:
        """The streams whose data only imitates a benchmark."""
        ran = (result.spec.stream for result in self.results.values() if result.stand_in)
        return frozenset(ran).union(*(plan.first.stand_ins for plan in self.plans))
