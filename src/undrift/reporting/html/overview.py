"""What was run: plans, streams, seeds, versions; and what was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from undrift.experiments.result import Result
from undrift.formatting import duration
from undrift.reporting.html.parts import Page, PlanTable
from undrift.reporting.html.words import stream_title
from undrift.reporting.names import number_ranges


def overview(page: Page) -> dict[str, Any]:
    """The head of the page: what it is made of, counted."""
    results = page.results.values()
    streams = dict.fromkeys(s for plan in page.plans for s in plan.first.streams)
    streams |= dict.fromkeys(sorted({result.spec.stream for result in results}))
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
        "versions": _versions(page.results),
        "machines": _machines(page.results),
        "plans": [_facts(plan) for plan in page.plans],
    }


def _named(streams: Iterable[str], stand_ins: Collection[str]) -> list[tuple[str, bool]]:
    """Streams by their titles, and whether their data only imitates the benchmark."""
    return [(stream_title(name), name in stand_ins) for name in streams]


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
        "skipped": [(stream_title(each.stream), each.why) for each in manifest.skipped],
    }


def _versions(results: Mapping[str, Result]) -> list[str]:
    """Every version of every package, with how many runs had it where they differ."""
    counts: dict[str, Counter[str]] = {}
    for result in results.values():
        for package, version in result.versions.items():
            counts.setdefault(package, Counter())[version] += 1
    return [f"{package} {_counted(found, ', ')}" for package, found in counts.items()]


def _machines(results: Mapping[str, Result]) -> str:
    kinds: Counter[str] = Counter()
    for result in results.values():
        many = result.cost.threads
        kinds[f"{result.spec.device}, {many} thread{'s' if many != 1 else ''}"] += 1
    return _counted(kinds, "; ")


def _counted(found: Counter[str], between: str) -> str:
    each = (f"{name} ({n} runs)" if len(found) > 1 else name for name, n in sorted(found.items()))
    return between.join(each)
