"""What the template shows beyond the records themselves: counts, curves, details of cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan
from statistics import fmean
from typing import Any

from markupsafe import Markup

from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Graded, Metrics, Result, metric_keys
from undrift.experiments.search_record import CHOSEN_BY, Search
from undrift.experiments.spec import command_of
from undrift.experiments.standing import in_order
from undrift.formatting import counted, duration, size
from undrift.learners.registry import METHODS, REGISTRY
from undrift.reporting import names
from undrift.reporting.html.page import Page, PlanTable
from undrift.reporting.names import (
    method_facts,
    metric_value,
    number_ranges,
    short_title,
    value_text,
)
from undrift.reporting.tables.comparison import IN_PRINT, ComparisonEntry
from undrift.reporting.tables.formats import legend

COSTS = {
    "seconds": ("time", "seconds of a whole run, mean over seeds"),
    "memory_mb": ("memory", "peak memory of a run, mean over seeds"),
    "kept_bytes": ("kept", "size of what is kept after the last task, mean over seeds"),
}
MANY_STREAMS = 2
"""With more streams than these, costs per stream start hidden and their mean stands at the end."""

WIDTH, HEIGHT, EDGE = 168, 44, 3  # of a curve the size of a word


def meaning(key: str) -> str:
    """What a metric is, in a few words."""
    metric = METRICS[key]
    return f"{metric.title}; {'high' if metric.better == 'up' else 'low'} is good"


def number(value: float, form: str = "{:.2f}") -> str:
    """A number with a real minus sign; a dash where there is none."""
    return names.number_text(value, form).replace("-", "−")


def cost(value: float, name: str) -> str:
    """A cost in the unit that suits it."""
    if name == "seconds":
        return duration(value)
    return size(value * 1e6 if name == "memory_mb" else value)


def tip(entry: ComparisonEntry) -> str:
    """What is said of a number when it is pointed at."""
    words = [counted(len(entry.seeds), "seed")]
    if entry.significance is not None:
        words.append(f"p = {entry.significance:.2g} against the best")
    if entry.published is not None and entry.published.deviation is not None:
        words.append(f"paper {entry.published.mean:.2f} ± {entry.published.deviation:.2f}")
    return ", ".join(words)


FILTERS: dict[str, Any] = {
    each.__name__: each
    for each in (meaning, number, cost, tip, duration, size, short_title, value_text, counted)
}
FILTERS["facts"] = method_facts
FILTERS["falls"] = lambda key: METRICS[key].better == "down"
FILTERS["head"] = lambda key: names.symbol(key, Markup("%s<sub>%s</sub>"))
"""What the template can say of a value, by name."""


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
        "methods": len({result.spec.method for result in results}),
        "streams": streams,
        "seconds": spent,
        "versions": [f"{package} {_counted(found, ', ')}" for package, found in versions.items()],
        "machines": _counted(machines, "; "),
        "plans": [_progress(plan) for plan in page.plans],
    }


def _progress(plan: PlanTable) -> dict[str, Any]:
    """How far a plan is."""
    cells, entries = plan.manifest.cells, plan.first.entries.values()
    done = {run for entry in entries for run in entry.runs}
    seeds = {seed for entry in entries for seed in entry.seeds} | {cell.seed for cell in cells}
    return {
        "manifest": plan.manifest,
        "table": plan.first,
        "seeds": number_ranges(seeds, "–") or "none",
        "done": len(done),
        "failed": sum(cell.failed is not None for cell in cells),
        "missing": sum(cell.failed is None and cell.run not in done for cell in cells),
    }


def _counted(found: Counter[str], between: str) -> str:
    """Every name, with how many runs had it where they differ."""
    each = (f"{name} ({n} runs)" if len(found) > 1 else name for name, n in sorted(found.items()))
    return between.join(each)


def table_view(plan: PlanTable) -> dict[str, Any]:
    """What the table of a plan shows beyond its numbers: what is hidden, and its mean costs.

    `troubles` has a word for a cell without numbers: a run of it failed, or none was made yet.
    """
    table = plan.first
    many = len(table.streams) > MANY_STREAMS
    # only over streams on which every row was run are means comparable
    ran = [s for s in table.streams if all((row, s) in table.costs for row in table.rows)]
    shared = ran if many else []
    hidden = {*table.metrics[IN_PRINT:], *(["cost"] if many else [])}
    shown = len(set(table.metrics) - hidden) + (0 if many else len(COSTS))
    cells = sorted(plan.manifest.cells, key=lambda cell: cell.failed is not None)
    means = {
        (row, name): fmean(table.costs[row, stream].get(name, nan) for stream in shared)
        for row in table.rows
        for name in COSTS
        if shared
    }
    return {
        "hidden": hidden,
        "shown": shown,
        "shared": shared,
        "means": {place: None if isnan(mean) else mean for place, mean in means.items()},
        "troubles": {
            (c.row, c.stream): "failed" if c.failed is not None else "not run" for c in cells
        },
        "families": sorted({method_facts(plan.method_of(row)).family for row in table.rows}),
        # examples kept have a column, not a mark
        "legends": {
            g: [each for each in legend(t) if each[0] != "†"] for g, t in plan.tables.items()
        },
        "width": 3 + shown * len(table.streams) + (len(COSTS) if shared else 0),
    }


@dataclass(eq=False)
class Curves:
    """The curves of every row on a stream, to one scale: faint ones behind each row's own."""

    name: str
    curves: list[tuple[float, ...]]

    def points(self, curve: Sequence[float]) -> list[tuple[str, str]]:
        """Where a curve goes."""
        low, high = min(map(min, self.curves)), max(map(max, self.curves))
        heights = [(value - low) / (high - low) if high > low else 0.5 for value in curve]
        step = (WIDTH - 2 * EDGE) / max(len(curve) - 1, 1)
        ys = (EDGE + (HEIGHT - 2 * EDGE) * (1 - height) for height in heights)
        return [(f"{EDGE + step * t:.4g}", f"{y:.4g}") for t, y in enumerate(ys)]

    def path(self, curve: Sequence[float]) -> str:
        """A curve as the path of an SVG."""
        return "M" + "L".join(f"{x} {y}" for x, y in self.points(curve))


def methods(page: Page) -> dict[str, Any]:
    """A section per method with a run, in our order, and the curves by stream."""
    keys = metric_keys(page.results.values())
    by_stream: dict[str, Curves] = {}
    sections: dict[str, list[dict[str, Any]]] = defaultdict(list)
    seen: set[tuple[str, ...]] = set()
    for p, plan in enumerate(page.plans):
        for key, row, stream, found in plan.cells(p, page.results):
            if not found or tuple(found) in seen:
                continue
            seen.add(tuple(found))
            runs = list(found.values())
            # A_t, the mean over seeds, as far as all of them go
            curve = tuple(map(fmean, zip(*(run.by_class.a_t for run in runs), strict=False)))
            behind = by_stream.setdefault(stream, Curves(f"others-{len(by_stream)}", []))
            behind.curves.append(curve)
            scores = ([metric_value(run.metrics.by_class, name) for run in runs] for name in keys)
            line = {"key": key, "table": plan.first, "row": row, "stream": stream}
            line |= {"seeds": len(runs), "means": [fmean(each) for each in scores]}
            line |= {"curve": curve, "behind": behind}
            line["seconds"] = fmean(run.cost.total_seconds for run in runs)
            line["kept"] = fmean(run.cost.kept_bytes for run in runs)
            sections[plan.method_of(row)].append(line)
    ordered = {name: sections[name] for name in in_order(sections, METHODS)}
    return {"sections": ordered, "curves": [*by_stream.values()], "documented": REGISTRY.own}


def details(page: Page) -> dict[str, Any]:
    """What a click on a cell shows, as plain data for the page's script."""
    searches = {search.spec.id: search for search in page.searches}
    keys = metric_keys(page.results.values())
    cells: dict[str, Any] = {}
    for p, plan in enumerate(page.plans):
        cells |= _cells(plan, p, page.results, searches)
    runs = {run for cell in cells.values() for run in cell["runs"]}
    used = {search for cell in cells.values() for search in cell["searches"]}
    return {
        "metrics": [METRICS[key].symbol for key in keys],
        "chosenBy": CHOSEN_BY.symbol,
        "cells": cells,
        "runs": {run: _run(page.results[run], keys) for run in sorted(runs)},
        "searches": {key: _search(searches[key]) for key in sorted(used)},
    }


def _cells(
    plan: PlanTable, number: int, results: Mapping[str, Result], searches: Mapping[str, Search]
) -> dict[str, Any]:
    table = plan.first
    asked: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for cell in plan.manifest.cells:
        asked[cell.row, cell.stream].append(cell)
    cells: dict[str, Any] = {}
    for key, row, stream, runs in plan.cells(number, results):
        if planned := asked[row, stream]:
            stand_in = " (stand-in)" if stream in table.stand_ins else ""
            chosen = dict.fromkeys(cell.search for cell in planned if cell.search in searches)
            cells[key] = {
                "title": f"{table.labels.get(row, row)} on {short_title(stream)}{stand_in}",
                "plan": table.title,
                "runs": list(runs),
                "failed": [[c.seed, c.failed] for c in planned if c.failed is not None],
                "missing": [c.seed for c in planned if c.failed is None and c.run not in runs],
                "searches": list(chosen),
            }
    return cells


def _run(result: Result, keys: Sequence[str]) -> dict[str, Any]:
    cost, memory = result.cost, result.cost.peak_memory_mb
    peak = "unknown" if memory is None else size(memory * 1e6)
    return {
        "seed": result.spec.seed,
        "class": [_rounded(result.metrics.by_class, key) for key in keys],
        "node": [_rounded(result.metrics.by_node, key) for key in keys],
        "validation": _score(result.validation),
        "cost": [duration(cost.total_seconds), peak, size(cost.kept_bytes)],
        "spec": result.spec.model_dump(mode="json"),
        "command": command_of(result.spec),
    }


def _rounded(metrics: Metrics, key: str) -> float | None:
    value = metric_value(metrics, key)
    return round(value, 2) if isfinite(value) else None


def _score(graded: Graded[Metrics] | None) -> float | None:
    return None if graded is None else _rounded(graded.by_class, CHOSEN_BY.key)


def _setting(params: Mapping[str, Any]) -> str:
    parts = [f"{name} {value_text(value)}" for name, value in params.items()]
    return ", ".join(parts) or "defaults"


def _search(search: Search) -> dict[str, Any]:
    return {
        "seed": search.spec.base.seed,
        "trials": [[_setting(t.params), _score(t.validation), t.failed] for t in search.trials],
        "chosen": _setting(search.chosen),
        "seconds": duration(search.seconds),
        "shared": list(search.shared_with),
    }
