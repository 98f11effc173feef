"""From finished runs to a table: means over seeds, ranks, a test, published numbers, costs.

Rows share seeds, so they share splits: a paired test drops what a lucky split gives to all.
An exact test of 5 seeds could show nothing at 0.05; the t-test assumes normal differences.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import isfinite
from statistics import fmean, stdev
from typing import Any, Literal

from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result, metric_keys
from undrift.experiments.spec import RunSpec
from undrift.experiments.standing import finished_rows, in_order
from undrift.experiments.store import Manifest, PlannedRun
from undrift.learners.registry import METHODS
from undrift.reporting.names import method_facts, row_label
from undrift.reporting.tables import comparison
from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, SeedMean, in_print
from undrift.streams.benchmarks import STREAMS, listed_stream

Grading = Literal["class", "node"]
Results = Mapping[str, Result]  # by the id of the run
BySeed = dict[int, tuple[str, Result]]
"""The finished runs of a cell: by seed, the id of the run and its result."""

_ROUNDING = 1e-9  # differences of accuracies that are closer than this differ by rounding alone

# a setting that makes another method of it is named even where all runs share it
_NAMING = ("merging", "protocol")
_DEFAULTS = {"protocol": "global", "device": "cpu", "open_world": False}


def compare(
    results: Results,
    manifest: Manifest,
    *,
    metrics: Sequence[str] | None = None,
    grading: Grading = "class",
) -> Comparison:
    """The table of a plan, every cell over its finished seeds.

    Ranks are of a column, without the bounds. The best is tested against each other row over the
    seeds they share. A published number stands beside ours by class and on real data.
    """
    methods = {row: manifest.row_methods.get(row, row) for row in manifest.rows}
    facts = {row: method_facts(method) for row, method in methods.items()}
    bounds = frozenset(row for row in manifest.rows if facts[row].family == "bound")
    groups = finished_rows(manifest, results)
    every = [result for group in groups.values() for _, result in group.values()]
    known = metric_keys(every)
    metrics = in_print(known) if metrics is None else [key for key in metrics if key in known]
    gone = {skipped.stream for skipped in manifest.skipped} - {stream for _, stream in groups}
    streams = [stream for stream in manifest.streams if stream not in gone]
    imitated = {s for (_, s), group in groups.items() for _, run in group.values() if run.stand_in}
    imitated |= {s for s in streams if (info := listed_stream(s)) and info.stand_in}
    entries: dict[tuple[str, str, str], ComparisonEntry] = {}
    for stream in streams:
        mine = {row: groups[row, stream] for row in manifest.rows if (row, stream) in groups}
        real = grading == "class" and stream not in imitated
        for metric in metrics:
            for row, entry in _column(mine, metric, grading, bounds).items():
                theirs = _published(row, stream, metric, mine[row]) if real else None
                entries[row, stream, metric] = replace(entry, published=theirs)
    table = Comparison(
        title=manifest.title,
        rows=list(manifest.rows),
        labels={row: row_label(row, method) for row, method in methods.items()},
        streams=streams,
        metrics=metrics,
        entries=entries,
        costs={cell: _costs(group) for cell, group in groups.items() if cell[1] in streams},
        keeps_examples={row: facts[row].keeps_examples for row in manifest.rows},
        stand_ins=frozenset(imitated.intersection(streams)),
        notes=(),
        bounds=bounds,
        grading=grading,
    )
    return replace(table, notes=comparison.notes_of(table, manifest, every))


def _column(
    groups: Mapping[str, BySeed], metric: str, grading: Grading, bounds: frozenset[str]
) -> dict[str, ComparisonEntry]:
    """The entries of a column, ranked and tested; a row without a finite number has none."""
    scores: dict[str, dict[int, float]] = {}
    for row, group in groups.items():
        found = {seed: result.value(metric, grading) for seed, (_, result) in group.items()}
        if finite := {seed: value for seed, value in found.items() if isfinite(value)}:
            scores[row] = finite
    ranked = {row: found for row, found in scores.items() if row not in bounds}
    sign = METRICS[metric].sign
    heights = {row: sign * fmean(found.values()) for row, found in ranked.items()}
    printed = {row: round(height, 2) for row, height in heights.items()}  # equals share a rank
    best = max(heights, key=lambda row: heights[row], default="")  # the first of equals
    tested = _tested(best, ranked, sign)
    return {
        row: ComparisonEntry(
            ours=comparison.seed_mean(found.values()),
            seeds=tuple(found),
            runs=tuple(groups[row][seed][0] for seed in found),
            rank=1 + sum(h > printed[row] for h in printed.values()) if row in printed else None,
            significance=tested.get(row),
        )
        for row, found in scores.items()
    }


def _tested(best: str, scores: Mapping[str, Mapping[int, float]], sign: float) -> dict[str, float]:
    raw = {}
    for row in scores.keys() - {best}:
        shared = scores[best].keys() & scores[row].keys()
        ahead = [sign * (scores[best][seed] - scores[row][seed]) for seed in shared]
        # on the seeds they share the best may be behind: then there is nothing to show
        if shared and fmean(ahead) >= 0 and (p := paired_t_test(ahead)) is not None:
            raw[row] = p
    return holm(raw)


def paired_t_test(differences: Sequence[float]) -> float | None:
    """The two-sided p-value of the hypothesis that the mean of these differences is 0.

    t = d / (s / sqrt(n)) with n - 1 degrees of freedom, d the mean and s the sample deviation.
    All 0 gives 1. None under two differences, and where all are the same but not 0.
    """
    n = len(differences)
    if n < 2:
        return None
    if max(map(abs, differences)) < _ROUNDING:
        return 1.0
    deviation = stdev(differences)
    if deviation < _ROUNDING:
        return None
    from scipy.special import stdtr  # here: scipy takes its time to import

    t = fmean(differences) / (deviation / n**0.5)
    return min(1.0, 2.0 * float(stdtr(n - 1, -abs(t))))


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """p-values of several tests, corrected so that one false alarm among all has its level.

    Holm 1979: with p_1 <= ... <= p_m, the corrected p_i is the largest of (m - j + 1) p_j over
    j <= i, and at most 1. It assumes nothing about how the tests depend on each other.
    """
    ascending = sorted(values.items(), key=lambda each: each[1])
    raised = [min(1.0, (len(values) - place) * p) for place, (_, p) in enumerate(ascending)]
    return dict(zip((key for key, _ in ascending), accumulate(raised, max), strict=True))


def _published(row: str, stream: str, metric: str, group: BySeed) -> SeedMean | None:
    for each in comparison.published_numbers():
        numbers = {each.number_of(row, result, stream, metric) for _, result in group.values()}
        if len(numbers) == 1 and (number := numbers.pop()) is not None:
            return SeedMean(*number)
    return None


def _costs(group: BySeed) -> dict[str, float]:
    """Means over seeds; what no run measured is left out."""
    found: dict[str, list[float]] = {"seconds": [], "kept_bytes": [], "memory_mb": []}
    for cost in (result.cost for _, result in group.values()):
        found["seconds"].append(cost.total_seconds)
        found["kept_bytes"].append(cost.kept_bytes)
        found["memory_mb"] += [] if cost.peak_memory_mb is None else [cost.peak_memory_mb]
    return {name: fmean(numbers) for name, numbers in found.items() if numbers}


def manifest_of_runs(results: Results, *, plan: str = "runs", title: str = "Runs") -> Manifest:
    """The table of some results: a row per method and setting, a column per stream and content.

    A row names what differs between the settings of its method; `rule` says what rows leave out.
    """
    specs = {run: result.spec for run, result in results.items()}
    rows: dict[str, str] = {}
    unsaid, named = list[str](), list[str]()
    for method in in_order({spec.method for spec in specs.values()}, METHODS):
        mine = {run: _setting(spec) for run, spec in specs.items() if spec.method == method}
        same = set.intersection(*({*setting.items()} for setting in mine.values()))
        same = {(name, value) for name, value in same if name not in _NAMING}
        for run, setting in mine.items():
            rows[run] = _written(method, setting.items() - same)
        named += sorted({rows[run] for run in mine}, key=_natural)
        unsaid += [_written(method, same)] if same else []
    contents = Counter(place for place, _ in {(s.place, s.stream_sha256) for s in specs.values()})
    cells = []
    for run, spec in specs.items():
        changed = spec.stream_sha256 is not None and contents[spec.place] > 1
        stream = f"{spec.place}#{spec.stream_sha256:.8}" if changed else spec.place
        about = {"row": rows[run], "method": spec.method, "stream": stream, "run": run}
        cells.append(PlannedRun(**about, seed=spec.seed, params=dict(spec.params)))
    default = "Settings that a row does not name are the method's defaults"
    return Manifest(
        plan=plan,
        title=title,
        rule=f"{default}, but in every run: {'; '.join(unsaid)}." if unsaid else f"{default}.",
        rows=named,
        streams=in_order({cell.stream for cell in cells}, STREAMS),
        cells=sorted(cells, key=lambda cell: (cell.row, cell.stream, cell.seed)),
    )


def _setting(spec: RunSpec) -> dict[str, str]:
    """What a run does other than by default, written; values as in a spec's id, so 1.0 is 1."""
    found = {**spec.params, **{name: getattr(spec, name) for name in _DEFAULTS}}
    said = {name: value for name, value in found.items() if value != _DEFAULTS.get(name, found)}
    return {name: _value(value) for name, value in said.items()}


def _written(method: str, setting: Iterable[tuple[str, str]]) -> str:
    return " ".join([method, *(f"{name}={value}" for name, value in sorted(setting))])


def _value(value: Any) -> str:
    """A tuple with commas, a word as it is, the rest as Python writes it: '1' is not 1."""
    if isinstance(value, tuple):
        return ",".join(map(_value, value)) + ("," if len(value) < 2 else "")
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    word = isinstance(value, str) and value.replace("-", "_").isidentifier()
    return value if word and value not in ("True", "False", "None") else repr(value)


def _natural(text: str) -> list[str | float]:
    """A key to sort by in which 4 comes before 16."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)", text)
    return [float(part) if at % 2 else part for at, part in enumerate(parts)]
