"""What a page is made of, before it is laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from undrift.experiments.manifest import Manifest
from undrift.experiments.result import Result
from undrift.experiments.search_record import Search
from undrift.reporting.tables.comparison import Comparison

__all__ = ["Grading", "Page", "PageFigure", "PlanTable"]

Grading = Literal["class", "node"]


@dataclass(frozen=True)
class PlanTable:
    """One plan of the page: its table by class and by node, and what it asked for.

    The tables have the same rows and streams. `manifest` is None for runs without a plan;
    `rule` says how settings were chosen.
    """

    name: str
    title: str
    rule: str
    tables: Mapping[Grading, Comparison]
    manifest: Manifest | None = None

    def method_of(self, row: str, results: Mapping[str, Result]) -> str:
        """The method behind a row: the plan's, else that of its runs, else the row's own name."""
        if self.manifest is not None and row in self.manifest.row_methods:
            return self.manifest.row_methods[row]
        for table in self.tables.values():
            for (of, _, _), entry in table.entries.items():
                known = [run for run in entry.runs if run in results]
                if of == row and known:
                    return results[known[0]].spec.method
        return row


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
        tables = [table for plan in self.plans for table in plan.tables.values()]
        ran = (result.spec.stream for result in self.results.values() if result.stand_in)
        return frozenset(ran).union(*(table.stand_ins for table in tables))
