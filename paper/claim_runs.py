"""The runs and searches that the paper's claims are checked on. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from undrift.experiments.manifest import Manifest
from undrift.experiments.result import Result
from undrift.experiments.search_record import Search
from undrift.experiments.store import Records

__all__ = ["Runs", "adr_searches", "claimed_runs"]

Runs = Mapping[str, Mapping[int, Result]]
"""On one stream: the runs by seed of every method, and of every merging rule as `merge=RULE`."""

_FIRST_PLANS = ("paper-table1", "paper-ablation")


def claimed_runs(records: Records) -> dict[str, dict[str, dict[int, Result]]]:
    """By stream: the runs of every method and merging rule, each from the first plan with it.

    The paper's plans come first, then the largest.
    """
    found: dict[str, dict[str, dict[int, Result]]] = {}
    plans = sorted(
        records.manifests, key=lambda plan: (plan.plan not in _FIRST_PLANS, -len(plan.cells))
    )
    for plan in plans:
        for stream in plan.streams:
            runs = found.setdefault(stream, {})
            for key, by_seed in _of_plan(plan, stream, records.results).items():
                runs.setdefault(key, by_seed)
    return {stream: runs for stream, runs in found.items() if runs}


def _of_plan(
    plan: Manifest, stream: str, results: Mapping[str, Result]
) -> dict[str, dict[int, Result]]:
    rows: dict[str, dict[str, dict[int, Result]]] = {}
    for cell in sorted(plan.cells, key=lambda cell: cell.seed):
        result = results.get(cell.run or "")
        if result is None or cell.stream != stream or result.spec.protocol != "global":
            continue
        merge = str(result.spec.params.get("merge", "ham"))
        keys = [f"merge={merge}"] if cell.method == "adr" else []
        keys += [cell.method] if merge == "ham" else []
        for key in keys:
            rows.setdefault(key, {}).setdefault(cell.row, {})[cell.seed] = result
    # several rows of one method (a grid): only one with the method's own name is the method
    return {
        key: found[key] if key in found else next(iter(found.values()))
        for key, found in rows.items()
        if key in found or len(found) == 1
    }


def adr_searches(searches: Iterable[Search]) -> dict[str, Search]:
    """The search of plain ADR over alpha and gamma on every stream, that of the lowest seed."""
    found: dict[str, Search] = {}
    for search in sorted(searches, key=lambda search: (search.spec.base.seed, search.spec.id)):
        base = search.spec.base
        plain = base.method == "adr" and base.params.get("merge", "ham") == "ham"
        if plain and {"alpha", "gamma"} <= set(search.spec.grid) and base.protocol == "global":
            found.setdefault(base.stream, search)
    return found
