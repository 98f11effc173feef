"""What the recorded runs in results/ say of a method: its table, and the front page's picture."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from html import escape
from pathlib import Path
from statistics import fmean, stdev

from undrift.evaluation.metrics import METRICS
from undrift.learners.registry import DEFAULT, METHODS

RESULTS = Path(__file__).parents[2] / "results"
STREAMS = {
    "cs-cl": "CS",
    "physics-cl": "Physics",
    "computers-cl": "Computers",
    "photo-cl": "Photo",
    "coraml-cl": "CoraML",
    "citeseer-cl": "CiteSeer",
    "dblp-cl": "DBLP",
}
RULES = {  # a method stands for itself in the first of these plans that has it
    "paper-table1": "settings chosen per stream on validation nodes",
    "beyond": "one setting for every stream",
    "rivals": "settings chosen per stream on validation nodes",
}
ABLATION = {
    "none": "none",
    "average": "average",
    "fisher": "Fisher",
    "magmax": "MagMax",
    "ties": "TIES",
    "regmean": "RegMean",
    "ham": "HAM",
}
Run = Mapping[str, str]


@cache
def _runs() -> dict[tuple[str, str, str], list[Run]]:
    """The runs behind a cell: plan, row and stream."""
    runs = {run["id"]: run for run in _read("runs.csv")}
    cells: dict[tuple[str, str, str], list[Run]] = {}
    for cell in _read("cells.csv"):
        key = cell["plan"], cell["row"], cell["stream"]
        cells.setdefault(key, []).append(runs[cell["run"]])
    return cells


def _read(name: str) -> Iterator[dict[str, str]]:
    csv.field_size_limit(10**7)
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _plan(method: str) -> str:
    return next(plan for plan in RULES if (plan, method, "cs-cl") in _runs())


def _row(
    name: str,
    plan: str,
    row: str,
    value: Callable[[Run], float],
    *,
    form: str = ".1f",
    spread: bool = True,
) -> str:
    """A line of a table: mean and deviation over seeds, a cell per stream."""
    cells = []
    for stream in STREAMS:
        values = [value(run) for run in _runs()[plan, row, stream]]
        cells.append(f"{fmean(values):{form}}" + (f" ± {stdev(values):{form}}" if spread else ""))
    return f"| {name} | " + " | ".join(cells) + " |"


def _table(rows: list[str]) -> str:
    return "\n".join([f"| | {' | '.join(STREAMS.values())} |", "|---" * 8 + "|", *rows])


def scores(method: str) -> str:
    """A method's scores on every real stream, beside the bounds and the default."""
    if method == "merging":
        return _merging()
    plan = _plan(method)
    rows = [
        _row(metric.symbol.replace("_", "\\_"), plan, method, _of(key))
        for key, metric in METRICS.items()
        if _runs()[plan, method, "cs-cl"][0].get(key)  # not all are of streams like these
    ]
    if all(json.loads(run["drift"]) for run in _runs()[plan, method, "cs-cl"]):
        rows.append(_row("drift, %", plan, method, _drift, spread=False))
    rows.append(_row("kept, MB", plan, method, _of("state_mb"), form=",.1f", spread=False))
    for other in ("bare", "joint", DEFAULT):
        if other != method:
            name = f"A\\_f of [{METHODS[other].display}]({other}.md)"
            rows.append(_row(name, _plan(other), other, _of("a_f"), spread=False))
    return (
        f"Class accuracy in percent, global testing, mean ± deviation over seeds 0-4; {RULES[plan]}"
        f" ([how it was run](../results.md#how-it-was-run)).\n\n{_table(rows)}"
    )


def _merging() -> str:
    rows = [_row(f"A\\_f, {ABLATION[key]}", "paper-ablation", key, _of("a_f")) for key in ABLATION]
    rows += [
        _row(f"drift, {ABLATION[key]}", "paper-ablation", key, _drift, spread=False)
        for key in ABLATION
    ]
    return (
        "ADR with each rule: class accuracy and drift of the base task's embeddings in percent, "
        "global testing, mean ± deviation over seeds 0-4; γ and α as the search of plain ADR chose "
        f"them.\n\n{_table(rows)}"
    )


def _of(key: str) -> Callable[[Run], float]:
    return lambda run: float(run[key])


def _drift(run: Run) -> float:
    """Of the base task's embeddings after the last task."""
    return 100 * float(json.loads(run["drift"])[-1])


def picture() -> str:
    """Final accuracy of all methods on all streams: a line per method, a dot per stream."""
    found = {m: _finals(m) for m in METHODS if any((p, m, "cs-cl") in _runs() for p in RULES)}
    lines = [
        _line(method, found[method])
        for method in sorted(found, key=lambda m: -fmean(found[m].values()))
    ]
    axis = "".join(f'<i style="left:{x}%">{x}</i>' for x in (0, 25, 50, 75, 100))
    return (
        '<figure class="dots" role="img" aria-label="Final accuracy of every method on seven real '
        f'graphs; the numbers are in the results">\n{"".join(lines)}'
        f'<div class="axis"><span></span><span class="track">{axis}</span><b></b></div>\n'
        "<figcaption>Accuracy over all classes after the last task, in percent. A dot is one of "
        'seven real graphs, a bar their mean. <span class="none">●</span> keeps no node, '
        '<span class="some">●</span> keeps nodes.</figcaption></figure>'
    )


def _finals(method: str) -> dict[str, float]:
    plan = _plan(method)
    return {
        name: fmean(float(run["a_f"]) for run in _runs()[plan, method, stream])
        for stream, name in STREAMS.items()
    }


def _line(method: str, finals: Mapping[str, float]) -> str:
    what, mean = METHODS[method], fmean(finals.values())
    kind = "some" if what.keeps_examples else "none"
    dots = "".join(
        f'<i style="left:{value:.1f}%" title="{name} {value:.1f}"></i>'
        for name, value in finals.items()
    )
    return (
        f'<div class="{kind}{" best" if method == DEFAULT else ""}">'
        f'<a href="methods/{method}.html">{escape(what.display)}</a><span class="track">{dots}'
        f'<em style="left:{mean:.1f}%"></em></span><b>{mean:.1f}</b></div>\n'
    )
