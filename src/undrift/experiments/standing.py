"""Which runs stand for a method on a stream: decided here for tables, figures and claims alike.

1. Plans that say so come first, then the other plans in the order given, then other runs.
2. In a plan, the row with the method's own name is the method. Without one it is the only row of
   the method; several (an ablation, a grid) do not say which of them is it, so none stands.
3. Of runs outside plans, those with the same settings belong together: global testing first, then
   most seeds, then best on validation nodes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from undrift.evaluation.metrics import METRICS
from undrift.experiments.plans import PLANS
from undrift.experiments.result import Result
from undrift.experiments.store import Manifest
from undrift.learners.registry import METHODS
from undrift.streams.arrival import split_place
from undrift.streams.benchmarks import STREAMS

Standing = dict[str, dict[str, list[Result]]]
"""By stream and then by method: the results over seeds, the lowest seed first."""

Names = Callable[[Result], Iterable[str]]


def finished_rows(
    manifest: Manifest, results: Mapping[str, Result]
) -> dict[tuple[str, str], dict[int, tuple[str, Result]]]:
    """What is finished of a plan: by row and stream, for every seed the first id and its result."""
    found: dict[tuple[str, str], dict[int, tuple[str, Result]]] = defaultdict(dict)
    for cell in sorted(manifest.cells, key=lambda cell: cell.seed):
        if cell.run is not None and cell.run in results:
            found[cell.row, cell.stream].setdefault(cell.seed, (cell.run, results[cell.run]))
    return dict(found)


def standing(
    results: Mapping[str, Result],
    manifests: Iterable[Manifest],
    names_of: Names = lambda result: (result.spec.method,),
) -> Standing:
    """The runs that stand for every method on every stream, by the rule above.

    `names_of` says what a run may stand for. Streams are in the plans' order, methods in ours.
    """
    first = [name for name, plan in PLANS.items() if plan.stands_first]
    plans = sorted(manifests, key=lambda each: [*first, each.plan].index(each.plan))
    planned = {cell.run for plan in plans for cell in plan.cells}
    loose = [result for run, result in results.items() if run not in planned]
    found: Standing = defaultdict(dict)
    ruled = [*(_of_plan(plan, results, names_of) for plan in plans), _of_loose(loose, names_of)]
    for (stream, name), runs in (pair for each in ruled for pair in each.items()):
        found[stream].setdefault(name, runs)
    named = [stream for plan in plans for stream in plan.streams]
    streams = dict.fromkeys([*named, *in_order(found, STREAMS)])
    return {
        stream: {name: found[stream][name] for name in in_order(found[stream], METHODS)}
        for stream in streams
        if found.get(stream)
    }


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Names in the order of a list, others after them; a stream with an option after its own.

    >>> in_order(["z", "b@x", "b+online", "b", "a"], ["b", "a"])
    ['b', 'b+online', 'b@x', 'a', 'z']
    """
    places = {name: place for place, name in enumerate(known)}

    def plain(name: str) -> str:
        return split_place(name)[0].partition("@")[0]

    return sorted(names, key=lambda name: (places.get(plain(name), len(places)), name))


def _of_plan(
    plan: Manifest, results: Mapping[str, Result], names_of: Names
) -> dict[tuple[str, str], list[Result]]:
    rows: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for (row, stream), by_seed in finished_rows(plan, results).items():
        for _, result in by_seed.values():
            for name in names_of(result):
                rows[stream, name][row].append(result)
    asked = {(cell.stream, cell.row.lower()): cell.row for cell in plan.cells}
    found = {}
    for (stream, name), by_row in rows.items():
        called = [name, METHODS[name].display.lower()] if name in METHODS else [name]
        own = next((asked[stream, word] for word in called if (stream, word) in asked), None)
        if own in by_row:
            found[stream, name] = by_row[own]
        elif own is None and len(by_row) == 1:
            found[stream, name] = next(iter(by_row.values()))
    return found


def _of_loose(results: Iterable[Result], names_of: Names) -> dict[tuple[str, str], list[Result]]:
    alike: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda result: result.spec.seed):
        same = result.spec.model_copy(update={"seed": 0}).model_dump_json()
        for name in names_of(result):
            alike[result.spec.place, name][same].append(result)
    first = next(iter(METRICS))

    def worth(runs: Sequence[Result]) -> tuple[bool, int, float]:
        scores = [run.validation.by_class.value(first) for run in runs if run.validation]
        return runs[0].spec.protocol == "global", len(runs), fmean(scores) if scores else 0.0

    return {key: max(groups.values(), key=worth) for key, groups in alike.items()}
