"""The runs and searches that the paper's claims are checked on. Does not import torch."""

from collections.abc import Iterable, Mapping

from undrift.experiments.result import Result
from undrift.experiments.search import Search
from undrift.experiments.standing import standing
from undrift.experiments.store import Records

__all__ = ["Runs", "adr_searches", "claimed_runs"]

Runs = Mapping[str, Mapping[int, Result]]
"""On one stream: the runs by seed of every method, and of every merging rule as `merging=RULE`."""


def claimed_runs(records: Records) -> dict[str, dict[str, dict[int, Result]]]:
    """By stream: the runs by seed of every method and merging rule that stand for it in a plan.

    Only global testing counts, and only streams in which no class comes back: the paper's numbers
    are by those.
    """
    planned = {cell.run for plan in records.manifests for cell in plan.cells}
    results = {run: result for run, result in records.results.items() if run in planned}
    found = standing(results, records.manifests, _claimed_names)
    return {
        stream: {name: {run.spec.seed: run for run in runs} for name, runs in by_name.items()}
        for stream, by_name in found.items()
    }


def _claimed_names(result: Result) -> list[str]:
    """What a run may stand for in a claim: its method, and ADR's merging rule as `merging=RULE`."""
    if result.spec.protocol != "global" or result.returning:
        return []
    rule = str(result.spec.params.get("merging", "ham"))
    names = [f"merging={rule}"] if result.spec.method == "adr" else []
    return [*names, result.spec.method] if rule == "ham" else names


def adr_searches(searches: Iterable[Search]) -> dict[str, Search]:
    """The search of plain ADR over alpha and gamma on every stream, that of the lowest seed."""
    found: dict[str, Search] = {}
    for search in sorted(searches, key=lambda search: (search.spec.base.seed, search.spec.id)):
        base = search.spec.base
        plain = base.method == "adr" and base.params.get("merging", "ham") == "ham"
        plain = plain and base.place == base.stream  # no class comes back
        if plain and {"alpha", "gamma"} <= set(search.spec.grid) and base.protocol == "global":
            found.setdefault(base.stream, search)
    return found
