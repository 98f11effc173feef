"""The report as one page: what it is made of, what the template shows of it, and how."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import product
from math import isfinite, isnan, nan
from statistics import fmean
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from undrift.errors import not_installed
from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result, metric_keys
from undrift.experiments.search import CHOSEN_BY, Search, Trial
from undrift.experiments.spec import command_of
from undrift.experiments.standing import finished_rows, in_order
from undrift.experiments.store import Manifest, Records
from undrift.formatting import counted, duration, size
from undrift.learners.registry import METHODS, REGISTRY
from undrift.reporting import names
from undrift.reporting.figures.figure import Figure
from undrift.reporting.names import method_facts, number_ranges, short_title, value_text
from undrift.reporting.search_grids import search_grids
from undrift.reporting.tables.compare import Grading
from undrift.reporting.tables.comparison import Comparison, ComparisonEntry
from undrift.reporting.tables.formats import legend

if TYPE_CHECKING:
    from jinja2 import Template

COSTS = {
    "seconds": ("time", "seconds of a whole run, mean over seeds"),
    "memory_mb": ("memory", "peak memory of a run, mean over seeds"),
    "kept_bytes": ("kept", "size of what is kept after the last task, mean over seeds"),
}
Runs = Mapping[str, Result]  # by their ids
WIDTH, HEIGHT, EDGE = 168, 44, 3  # of a curve the size of a word


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

    def cells(self, number: int, results: Runs) -> Iterator[tuple[str, str, str, Runs]]:
        """Every cell of the plan with this number: its key, row, stream and finished runs."""
        finished = finished_rows(self.manifest, results)
        rows, streams = enumerate(self.first.rows), list(enumerate(self.first.streams))
        for (r, row), (s, stream) in product(rows, streams):
            yield f"{number}-{r}-{s}", row, stream, dict(finished.get((row, stream), {}).values())


@dataclass(frozen=True)
class Page:
    """Everything the report shows: figures as SVG, and which are `left_out` and why."""

    records: Records
    plans: Sequence[PlanTable]
    figures: Sequence[tuple[Figure, bytes]] = ()
    left_out: Sequence[str] = ()


def template(name: str = "report.html.jinja") -> Template:
    """The template of a page; an `InputError` where jinja2 is not installed."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise not_installed("the report needs jinja2", "report") from error
    environment = Environment(loader=FunctionLoader(asset), autoescape=True)
    environment.undefined, environment.filters = StrictUndefined, environment.filters | FILTERS
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment.get_template(name)


def render(page: Page) -> str:
    """The HTML of a report with everything inside; it forbids itself requests and other scripts."""
    script = asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    policy += f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return template().render(
        title="Continual learning on graphs: results",
        page=page,
        policy=policy,
        style=asset("report.css"),
        script=script,
        about=overview(page),
        plans=[(plan, table_view(plan)) for plan in page.plans],
        costs=COSTS,
        methods=methods(page),
        grids=search_grids(page.records.searches),
        metrics=metric_keys(page.records.results.values()),
        chosen_by=CHOSEN_BY.key,
        data=details(page),
    )


def asset(name: str) -> str:
    """A file that stands beside this one."""
    return files("undrift.reporting.html").joinpath(name).read_text(encoding="utf-8")


def meaning(key: str) -> str:
    """What a metric is, in a few words."""
    metric = METRICS[key]
    return f"{metric.title}; {'high' if metric.better == 'up' else 'low'} is good"


def head(key: str) -> str:
    """The symbol of a metric with its subscript."""
    from markupsafe import Markup

    return names.symbol(key, Markup("%s<sub>%s</sub>"))


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


def picture(svg: bytes) -> str:
    """An SVG as an address: what an image holds can neither act nor reach outside."""
    return "data:image/svg+xml," + quote(svg, safe=" /:;=,.()")


_SAID = meaning, head, number, cost, tip, picture, duration, size, short_title, value_text, counted
FILTERS: dict[str, Any] = {each.__name__: each for each in _SAID}
FILTERS |= {"facts": method_facts, "falls": lambda key: METRICS[key].better == "down"}
"""What the template can say of a value, by name."""


def overview(page: Page) -> dict[str, Any]:
    """The head of the page: what it is made of, counted."""
    results = page.records.results.values()
    streams = dict.fromkeys(s for plan in page.plans for s in plan.first.streams)
    streams |= dict.fromkeys(sorted({result.spec.place for result in results}))
    versions: dict[str, Counter[str]] = defaultdict(Counter)
    for package, version in (pair for result in results for pair in result.versions.items()):
        versions[package][version] += 1
    machines = Counter(f"{r.spec.device}, {counted(r.cost.threads, 'thread')}" for r in results)
    spent = sum(result.cost.total_seconds for result in results)
    # searches that were done together each have the seconds of all
    spent += sum(each.seconds / (1 + len(each.shared_with)) for each in page.records.searches)
    imitated = {result.spec.place for result in results if result.stand_in}
    paths = (page.records.folder / run / "result.json" for run in page.records.results)
    written = [path.stat().st_mtime for path in paths if path.is_file()]
    newest = f"{datetime.fromtimestamp(max(written), UTC):%Y-%m-%d}" if written else None
    return {
        "methods": len({result.spec.method for result in results}),
        "streams": streams,
        "seconds": spent,
        "versions": [f"{package} {_counted(found, ', ')}" for package, found in versions.items()],
        "machines": _counted(machines, "; "),
        "plans": [_progress(plan) for plan in page.plans],
        "stand_ins": imitated.union(*(plan.first.stand_ins for plan in page.plans)),
        "newest": newest,
    }


def _progress(plan: PlanTable) -> dict[str, Any]:
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
    """What a table shows beyond its numbers: what is hidden, mean costs, cells in `troubles`."""
    table = plan.first
    many = len(table.streams) > 2  # then costs start hidden, and their mean stands at the end
    # only over streams on which every row was run are means comparable
    ran = [s for s in table.streams if all((row, s) in table.costs for row in table.rows)]
    shared = ran if many else []
    columns = {stream: table.metrics_on(stream) for stream in table.streams}
    hidden = {*table.metrics, *["cost"] * many} - {*table.printed().metrics}
    costs = 0 if many else len(COSTS)
    shown = {stream: len(set(keys) - hidden) + costs for stream, keys in columns.items()}
    there = {(row, stream) for row, stream, _ in table.entries}
    gone = [c for c in plan.manifest.cells if (c.row, c.stream) not in there]
    gone.sort(key=lambda cell: cell.failed is not None)
    # examples kept have a column, not a mark
    marks = {g: [each for each in legend(t) if each[0] != "†"] for g, t in plan.tables.items()}
    means: dict[tuple[str, str], float | None] = {}
    for row, name in product(table.rows, COSTS) if shared else ():
        mean = fmean(table.costs[row, stream].get(name, nan) for stream in shared)
        means[row, name] = None if isnan(mean) else mean
    view = {"columns": columns, "hidden": hidden, "shown": shown, "shared": shared, "means": means}
    return view | {
        "troubles": {(c.row, c.stream): "not run" if c.failed is None else "failed" for c in gone},
        "families": sorted({method_facts(plan.method_of(row)).family for row in table.rows}),
        "legends": marks,
        "width": 3 + sum(shown.values()) + (len(COSTS) if shared else 0),
    }


@dataclass(eq=False)
class Curves:
    """The curves of every row on a stream, to one scale."""

    name: str
    curves: list[tuple[float, ...]]

    def points(self, curve: Sequence[float]) -> list[tuple[str, str]]:
        """Where a curve goes."""
        low, high = min(map(min, self.curves)), max(map(max, self.curves))
        step, up = (WIDTH - 2 * EDGE) / max(len(curve) - 1, 1), HEIGHT - 2 * EDGE
        heights = ((value - low) / (high - low) if high > low else 0.5 for value in curve)
        places = ((EDGE + step * t, EDGE + up * (1 - h)) for t, h in enumerate(heights))
        return [(f"{x:.4g}", f"{y:.4g}") for x, y in places]

    def path(self, curve: Sequence[float]) -> str:
        """A curve as the path of an SVG."""
        return "M" + "L".join(f"{x} {y}" for x, y in self.points(curve))


def methods(page: Page) -> dict[str, Any]:
    """A section per method with a run, in our order, and the curves by stream."""
    results = page.records.results
    keys = metric_keys(results.values())
    by_stream: dict[str, Curves] = {}
    sections: dict[str, list[dict[str, Any]]] = defaultdict(list)
    seen: set[tuple[str, ...]] = set()
    for p, plan in enumerate(page.plans):
        for key, row, stream, found in plan.cells(p, results):
            if not found or tuple(found) in seen:
                continue
            seen.add(tuple(found))
            runs = list(found.values())
            # A_t, the mean over seeds, as far as all of them go
            curve = tuple(map(fmean, zip(*(run.by_class.a_t for run in runs), strict=False)))
            behind = by_stream.setdefault(stream, Curves(f"others-{len(by_stream)}", []))
            if curve:  # a run that was graded by series alone has none
                behind.curves.append(curve)
            line = {"key": key, "table": plan.first, "row": row, "stream": stream}
            line |= {"seeds": len(runs), "curve": curve, "behind": behind}
            line["means"] = [fmean(run.value(name) for run in runs) for name in keys]
            line["seconds"] = fmean(run.cost.total_seconds for run in runs)
            line["kept"] = fmean(run.cost.kept_bytes for run in runs)
            sections[plan.method_of(row)].append(line)
    ordered = {name: sections[name] for name in in_order(sections, METHODS)}
    return {"sections": ordered, "curves": [*by_stream.values()], "documented": REGISTRY.own}


def details(page: Page) -> dict[str, Any]:
    """What a click on a cell shows, as plain data for the page's script."""
    searches = {search.spec.id: search for search in page.records.searches}
    results = page.records.results
    keys = metric_keys(results.values())
    cells: dict[str, Any] = {}
    for p, plan in enumerate(page.plans):
        table, asked = plan.first, defaultdict(list)
        for cell in plan.manifest.cells:
            asked[cell.row, cell.stream].append(cell)
        for key, row, stream, runs in plan.cells(p, results):
            if not (planned := asked[row, stream]):
                continue
            stand_in = " (stand-in)" if stream in table.stand_ins else ""
            cells[key] = {
                "title": f"{table.labels.get(row, row)} on {short_title(stream)}{stand_in}",
                "plan": table.title,
                "runs": list(runs),
                "failed": [[c.seed, c.failed] for c in planned if c.failed is not None],
                "missing": [c.seed for c in planned if c.failed is None and c.run not in runs],
                "searches": list(dict.fromkeys(c.search for c in planned if c.search in searches)),
            }
    runs_shown = {run for cell in cells.values() for run in cell["runs"]}
    used = {search for cell in cells.values() for search in cell["searches"]}
    return {
        "metrics": [METRICS[key].symbol for key in keys],
        "chosenBy": CHOSEN_BY.symbol,
        "cells": cells,
        "runs": {run: _run(results[run], keys) for run in sorted(runs_shown)},
        "searches": {key: _search(searches[key]) for key in sorted(used)},
    }


def _run(result: Result, keys: Sequence[str]) -> dict[str, Any]:
    cost, memory = result.cost, result.cost.peak_memory_mb
    peak = "unknown" if memory is None else size(memory * 1e6)
    return {
        "seed": result.spec.seed,
        "class": [_rounded(result.value(key)) for key in keys],
        "node": [_rounded(result.value(key, "node")) for key in keys],
        "validation": _score(result),
        "cost": [duration(cost.total_seconds), peak, size(cost.kept_bytes)],
        "spec": result.spec.model_dump(mode="json"),
        "command": command_of(result.spec),
    }


def _rounded(value: float) -> float | None:
    return round(value, 2) if isfinite(value) else None


def _score(graded: Result | Trial) -> float | None:
    found = graded.validation
    return None if found is None else _rounded(found.by_class.value(CHOSEN_BY.key))


def _setting(params: Mapping[str, Any]) -> str:
    parts = [f"{name} {value_text(value)}" for name, value in params.items()]
    return ", ".join(parts) or "defaults"


def _search(search: Search) -> dict[str, Any]:
    return {
        "seed": search.spec.base.seed,
        "trials": [[_setting(t.params), _score(t), t.failed] for t in search.trials],
        "chosen": _setting(search.chosen),
        "seconds": duration(search.seconds),
        "shared": list(search.shared_with),
    }
