"""Which runs a figure shows: those that stand in a plan's table, by stream and method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from undrift.learners.registry import METHODS
from undrift.reporting.figures.style import display
from undrift.streams.benchmarks import STREAMS

if TYPE_CHECKING:
    from undrift.experiments.manifest import Cell, Manifest
    from undrift.experiments.result import Result

__all__ = ["Groups", "mean_and_deviation", "outside_methods", "runs_by_stream", "seeds_of"]

Groups = Mapping[str, Mapping[str, "Sequence[Result]"]]
"""Results over seeds, by stream and then by method."""

FIRST_PLAN = "paper-table1"
"""The plan whose runs are shown where several plans ran the same method on the same stream."""


def runs_by_stream(results: Mapping[str, Result], manifests: Iterable[Manifest]) -> Groups:
    """The results over seeds of every method on every stream, from the plan that has them.

    A plan with several rows of one method on a stream (an ablation) does not say which of them
    is the method, unless a row has its name. Where no plan has a method on a stream, loose runs
    do: of those with the same settings the ones with most seeds, then best on validation nodes.
    Streams and methods are in the order of the plans and of the registry.
    """
    plans = sorted(manifests, key=lambda plan: plan.plan != FIRST_PLAN)  # the rest as given
    found: dict[str, dict[str, list[Result]]] = defaultdict(dict)
    for plan in plans:
        for (stream, method), runs in _of_plan(plan, results).items():
            found[stream].setdefault(method, runs)
    planned = {cell.run for plan in plans for cell in plan.cells}
    loose = [result for run, result in results.items() if run not in planned]
    for (stream, method), runs in _of_loose(loose).items():
        found[stream].setdefault(method, runs)
    named = [stream for plan in plans for stream in plan.streams]
    order = list(dict.fromkeys([*named, *STREAMS, *sorted(found)]))
    return {
        stream: {method: found[stream][method] for method in _in_order(found[stream])}
        for stream in order
        if found.get(stream)
    }


def _in_order(methods: Iterable[str]) -> list[str]:
    known = list(METHODS)
    return sorted(methods, key=lambda name: (known.index(name) if name in known else 999, name))


def _of_plan(plan: Manifest, results: Mapping[str, Result]) -> dict[tuple[str, str], list[Result]]:
    rows: dict[tuple[str, str], dict[str, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in plan.cells:
        rows[cell.stream, cell.method][cell.row].append(cell)
    found = {}
    for (stream, method), by_row in rows.items():
        own = [row for row in by_row if row.lower() in (method, display(method).lower())]
        chosen = own or list(by_row)
        cells = by_row[chosen[0]] if len(chosen) == 1 else []
        runs = [results[cell.run] for cell in cells if cell.run is not None and cell.run in results]
        if runs:
            found[stream, method] = sorted(runs, key=lambda result: result.spec.seed)
    return found


def _of_loose(results: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    alike: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda result: result.spec.seed):
        spec = result.spec
        same = spec.model_copy(update={"seed": 0}).model_dump_json()
        alike[spec.stream, spec.method][same].append(result)
    return {key: max(groups.values(), key=_worth) for key, groups in alike.items()}


def _worth(runs: Sequence[Result]) -> tuple[bool, int, float]:
    scores = [run.validation.by_class.a_avg for run in runs if run.validation is not None]
    return runs[0].spec.protocol == "global", len(runs), fmean(scores) if scores else 0.0


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and the sample deviation where there are two values or more.

    >>> mean_and_deviation([1.0, 3.0]), mean_and_deviation([2.0])
    ((2.0, 1.4142135623730951), (2.0, None))
    """
    return fmean(values), stdev(values) if len(values) > 1 else None


def seeds_of(groups: Iterable[Sequence[Result]]) -> str:
    """How many seeds were run, in words.

    >>> seeds_of([[], []])
    'no seed'
    """
    counts = sorted({len(group) for group in groups} - {0})
    if not counts:
        return "no seed"
    if counts == [1]:
        return "one seed"
    return f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def outside_methods(groups: Groups) -> dict[str, int]:
    """The place of every method that is not registered, for `style_of`."""
    names = dict.fromkeys(method for by_method in groups.values() for method in by_method)
    listed = set(METHODS)
    return {name: k for k, name in enumerate(name for name in names if name not in listed)}
