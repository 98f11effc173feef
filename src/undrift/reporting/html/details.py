"""What a click on a cell shows, as plain data for the page's script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Graded, Metrics, Result, metric_keys
from undrift.experiments.search_record import CHOSEN_BY, Search
from undrift.experiments.spec import command_of
from undrift.formatting import duration, size
from undrift.reporting.html.overview import PlanTable
from undrift.reporting.names import metric_value, short_title, value_text


def details_data(
    plans: Sequence[PlanTable], results: Mapping[str, Result], searches: Sequence[Search]
) -> dict[str, Any]:
    """Every cell with the ids of its runs and searches, and those once each, 600 bytes a run."""
    by_id = {search.spec.id: search for search in searches}
    keys = metric_keys(results.values())
    cells: dict[str, Any] = {}
    for p, plan in enumerate(plans):
        cells |= _cells(plan, p, results, by_id)
    used_runs = {run for cell in cells.values() for run in cell["runs"]}
    used_searches = {search for cell in cells.values() for search in cell["searches"]}
    return {
        "metrics": [METRICS[key].symbol for key in keys],
        "chosenBy": CHOSEN_BY.symbol,
        "cells": cells,
        "runs": {run: _run(results[run], keys) for run in sorted(used_runs & results.keys())},
        "searches": {key: _search(by_id[key]) for key in sorted(used_searches)},
    }


def _cells(
    plan: PlanTable, number: int, results: Mapping[str, Result], searches: Mapping[str, Search]
) -> dict[str, Any]:
    table = plan.first
    asked: dict[tuple[str, str], list[Any]] = {}
    for cell in plan.manifest.cells:
        asked.setdefault((cell.row, cell.stream), []).append(cell)
    cells: dict[str, Any] = {}
    for key, row, stream, runs in plan.cells(number, results):
        planned = asked.get((row, stream), [])
        if runs or planned:
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
    cost = result.cost
    memory = cost.peak_memory_mb
    return {
        "seed": result.spec.seed,
        "class": _metrics(result.metrics.by_class, keys),
        "node": _metrics(result.metrics.by_node, keys),
        "validation": _score(result.validation),
        "cost": [
            duration(cost.total_seconds),
            "unknown" if memory is None else size(memory * 1e6),
            size(cost.kept_bytes),
        ],
        "spec": result.spec.model_dump(mode="json"),
        "command": command_of(result.spec),
    }


def _metrics(metrics: Metrics, keys: Sequence[str]) -> list[float | None]:
    values = [metric_value(metrics, key) for key in keys]
    return [round(value, 2) if isfinite(value) else None for value in values]


def _score(graded: Graded[Metrics] | None) -> float | None:
    return None if graded is None else round(metric_value(graded.by_class, CHOSEN_BY.key), 2)


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
