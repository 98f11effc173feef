"""What a page is made of, and its head: plans, streams, seeds, versions, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from undrift.experiments.manifest import Manifest
from undrift.experiments.result import Result
from undrift.experiments.search_record import Search
from undrift.experiments.standing import finished_rows
from undrift.formatting import counted, duration
from undrift.reporting.names import number_ranges, short_title
from undrift.reporting.tables.compare import Grading
from undrift.reporting.tables.comparison import Comparison


@dataclass(frozen=True)
class PlanTable:
    """One plan of the page: what it asked for, and its tables, of the same rows and streams."""

    manifest: Manifest
    tables: Mapping[Grading, Comparison]

    @property
    def first(self) -> Comparison:
        """The table that is shown first."""
        return next(iter(self.tables.values()))

    def method_of(self, row: str) -> str:
        """The method behind a row."""
        return self.manifest.row_methods.get(row, row)

    def cells(
        self, number: int, results: Mapping[str, Result]
    ) -> Iterator[tuple[str, str, str, dict[str, Result]]]:
        """Every cell of the plan with this number: its key, row, stream and finished runs."""
        finished = finished_rows(self.manifest, results)
        for r, row in enumerate(self.first.rows):
            for s, stream in enumerate(self.first.streams):
                runs = dict(finished.get((row, stream), {}).values())
                yield f"{number}-{r}-{s}", row, stream, runs


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
        ran = (result.spec.place for result in self.results.values() if result.stand_in)
        return frozenset(ran).union(*(plan.first.stand_ins for plan in self.plans))


def overview(page: Page) -> dict[str, Any]:
    """The head of the page: what it is made of, counted."""
    results = page.results.values()
    streams = dict.fromkeys(s for plan in page.plans for s in plan.first.streams)
    streams |= dict.fromkeys(sorted({result.spec.place for result in results}))
    versions: dict[str, Counter[str]] = defaultdict(Counter)
    machines: Counter[str] = Counter()
    for result in results:
        for package, version in result.versions.items():
            versions[package][version] += 1
        machines[f"{result.spec.device}, {counted(result.cost.threads, 'thread')}"] += 1
    spent = sum(result.cost.total_seconds for result in results)
    # searches that were done together each have the seconds of all
    spent += sum(search.seconds / (1 + len(search.shared_with)) for search in page.searches)
    return {
        "runs": len(page.results),
        "searches": len(page.searches),
        "methods": len({result.spec.method for result in results}),
        "streams": _named(streams, page.stand_ins),
        "time": duration(spent),
        "newest": page.newest,
        "versions": [f"{package} {_counted(found, ', ')}" for package, found in versions.items()],
        "machines": _counted(machines, "; "),
        "plans": [_facts(plan) for plan in page.plans],
    }


def _named(streams: Iterable[str], stand_ins: Collection[str]) -> list[tuple[str, bool]]:
    return [(short_title(name), name in stand_ins) for name in streams]


def _facts(plan: PlanTable) -> dict[str, Any]:
    """How far a plan is."""
    table, manifest = plan.first, plan.manifest
    done = {run for entry in table.entries.values() for run in entry.runs}
    seeds = {seed for entry in table.entries.values() for seed in entry.seeds}
    return {
        "title": manifest.title,
        "name": manifest.plan,
        "rows": len(table.rows),
        "streams": _named(table.streams, table.stand_ins),
        "seeds": number_ranges(seeds | {cell.seed for cell in manifest.cells}, "–") or "none",
        "done": len(done),
        "failed": sum(cell.failed is not None for cell in manifest.cells),
        "missing": sum(c.failed is None and c.run not in done for c in manifest.cells),
        "skipped": [(short_title(each.stream), each.why) for each in manifest.skipped],
    }


def _counted(found: Counter[str], between: str) -> str:
    """Every name, with how many runs had it where they differ."""
    each = (f"{name} ({n} runs)" if len(found) > 1 else name for name, n in sorted(found.items()))
    return between.join(each)
