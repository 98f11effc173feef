"""A folder of results as four small tables that git keeps and a spreadsheet opens.

`runs.csv` has a line per run, `plans.csv` one per plan, `cells.csv` one per run of a plan's
table, `searches.csv` one per setting that a search tried. Does not import torch.
"""

import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from extras.flat import flat
from paper.compact_search import SEARCH_COLUMNS, searches_from, trial_lines
from paper.csv_lines import CsvLine, lines_of, number, packed, write_lines
from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import (
    Cost,
    Graded,
    Metrics,
    Result,
    Returning,
    graded_metrics,
    matrix_of,
)
from undrift.experiments.store import (
    Manifest,
    PlannedRun,
    Records,
    Skipped,
    load_records,
    with_rules,
)

__all__ = ["is_compact", "read_compact", "rounded", "write_compact"]

DECIMALS = 6
_GRADES = tuple(key for key, metric in METRICS.items() if metric.of is not None)
_CLOSE = 2e-6  # half a digit of every accuracy, added up

RUN_COLUMNS = (
    *("id", "stream", "stand_in", "method", "params", "seed", "protocol", "device", "tasks"),
    *(prefix + name for prefix in ("", "node_", "val_", "val_node_") for name in _GRADES),
    *("drift", "seconds_total", "seconds", "peak_memory_mb", "state_mb", "state_bytes"),
    *("threads", "torch", "matrix", "node_matrix"),
    *("data_sha256", "split_sha256", "stream_sha256", "imbalance"),
    *("arrive", "returning", "series", "open_world"),
)
PLAN_COLUMNS = ("plan", "title", "rule", "rows", "streams", "skipped")
CELL_COLUMNS = ("plan", "row", "method", "stream", "seed", "run", "search", "failed")


def write_compact(records: Records, folder: str | Path) -> list[Path]:
    """Write the four tables, each whole or not at all, and return their paths.

    Accuracies and drift keep six decimals, seconds and megabytes three; lists, matrices and
    settings are JSON in their cell. Of the versions only torch's is kept, of the origin of the
    data only its hashes, of an error only its first line. The same records give the same bytes,
    and a table that was read gives itself again. Cost: about 1.5 kB a run with six tasks.
    """
    target = Path(folder)
    runs = sorted(map(rounded, records.results.values()), key=_place)
    manifests = sorted(records.manifests, key=lambda manifest: manifest.plan)
    searches = sorted(
        records.searches, key=lambda s: (s.spec.base.place, s.spec.base.method, s.spec.id)
    )
    tables = {
        "runs.csv": (RUN_COLUMNS, map(_run_line, runs)),
        "plans.csv": (PLAN_COLUMNS, map(_plan_line, manifests)),
        "cells.csv": (CELL_COLUMNS, (line for plan in manifests for line in _cell_lines(plan))),
        "searches.csv": (SEARCH_COLUMNS, (line for s in searches for line in trial_lines(s))),
    }
    for name, (columns, lines) in tables.items():
        write_lines(target / name, columns, lines)
    return [target / name for name in tables]


def read_compact(folder: str | Path) -> Records:
    """Read what `write_compact` wrote, so that tables, figures and checks can be made of it.

    A line that is damaged, or whose numbers do not belong together (an id that is not its
    spec's, a metric that is not its matrix's), is an `InputError` with its file and line.
    Metrics are computed from the matrix again. A cell takes its settings from its run.
    """
    source = Path(folder)
    if not is_compact(source):
        raise InputError(
            f"there is no {source / 'runs.csv'}; make one with python -m paper compact RUNS "
            f"{source}"
        )
    results: dict[str, Result] = {}
    for line in lines_of(source / "runs.csv", RUN_COLUMNS):
        with line:
            result = _run(line)
            if results.setdefault(result.spec.id, result) is not result:
                raise InputError(f"run {result.spec.id} stands there twice")
    cells: dict[str, list[PlannedRun]] = {}
    for line in lines_of(source / "cells.csv", CELL_COLUMNS):
        with line:
            cells.setdefault(line["plan"], []).append(_cell(line, results))
    manifests = []
    for line in lines_of(source / "plans.csv", PLAN_COLUMNS):
        with line:
            manifests.append(_plan(line, cells.pop(line["plan"], [])))
    if cells:
        raise InputError(
            f"{source / 'cells.csv'} has cells of the plan {next(iter(cells))!r}, which is not in "
            "plans.csv; restore both files from the repository"
        )
    searches = searches_from(source / "searches.csv")
    ordered = {run: results[run] for run in sorted(results)}
    return Records(ordered, with_rules(manifests, searches), searches, [], source)


def is_compact(folder: str | Path) -> bool:
    """Whether a folder holds the tables that `write_compact` writes."""
    return (Path(folder) / "runs.csv").is_file()


def rounded(result: Result) -> Result:
    """The result with as many digits as the table keeps, and the metrics of those matrices."""
    matrix = Graded[list[list[float]]](
        by_class=_round(result.matrix.by_class), by_node=_round(result.matrix.by_node)
    )
    returning = result.returning
    if returning is not None:
        returning = returning.model_copy(update={"shares": _round(returning.shares)})
    cost = result.cost.model_copy(
        update={
            "seconds": {name: number(value, 3) for name, value in result.cost.seconds.items()},
            "peak_memory_mb": _round(result.cost.peak_memory_mb, 3),
            "state_mb": number(result.cost.state_mb, DECIMALS),
        }
    )
    return result.model_copy(
        update={
            "matrix": matrix,
            "returning": returning,
            "metrics": _metrics(matrix, returning),
            "drift": _round(result.drift),
            "imbalance": _round(result.imbalance),
            "cost": cost,
            "series": {key: _round(values) for key, values in result.series.items()},
        }
    )


def _metrics(matrix: Graded[list[list[float]]], returning: Returning | None) -> Graded[Metrics]:
    by_node = matrix_of(matrix.by_node, returning, by_node=True)
    return graded_metrics(matrix_of(matrix.by_class, returning), by_node)


def _round(value: Any, decimals: int = DECIMALS) -> Any:
    if isinstance(value, list):
        return [_round(part, decimals) for part in value]
    return value if value is None else number(value, decimals)


def _place(result: Result) -> tuple[object, ...]:
    spec = result.spec
    return spec.place, spec.method, packed(spec.params), spec.seed, spec.id


def _run_line(result: Result) -> dict[str, Any]:
    cost = result.cost
    return flat(result) | {
        "params": packed(result.spec.params),
        "drift": packed(result.drift),
        "seconds_total": cost.seconds.get("total"),
        "seconds": packed(cost.seconds),
        "state_bytes": packed(cost.state_bytes),
        "torch": result.versions.get("torch"),
        "matrix": packed(result.matrix.by_class),
        "node_matrix": packed(result.matrix.by_node),
        "stream_sha256": result.spec.stream_sha256,
        "imbalance": _ratios(result.imbalance),
        "returning": packed(result.returning.model_dump()) if result.returning else None,
        "series": packed(result.series) if result.series else None,
        "open_world": result.spec.open_world or None,
    }


def _ratios(imbalance: list[float] | None) -> str | None:
    """JSON has no infinity: it is written as null."""
    if imbalance is None:
        return None
    return packed([number(rho, DECIMALS) if isfinite(rho) else None for rho in imbalance])


def _run(line: CsvLine) -> Result:
    spec = line.spec("params")
    if spec.id != line["id"]:
        raise InputError(f"the id of this run is {spec.id}, not {line['id']}")
    matrix = Graded[list[list[float]]](
        by_class=line.json("matrix"), by_node=line.json("node_matrix")
    )
    returning = Returning(**line.json("returning")) if line["returning"] else None
    metrics = _metrics(matrix, returning)
    _check_metrics(line, metrics)
    memory = line["peak_memory_mb"]
    hashes = {"sha256": line["data_sha256"], "split_sha256": line["split_sha256"]}
    return Result(
        spec=spec,
        matrix=matrix,
        metrics=metrics,
        validation=line.graded("val_"),
        drift=line.json("drift"),
        cost=Cost(
            seconds=line.json("seconds"),
            peak_memory_mb=line.real("peak_memory_mb") if memory else None,
            state_mb=line.real("state_mb"),
            threads=line.whole("threads"),
            state_bytes=line.json("state_bytes"),
        ),
        versions={"torch": line["torch"]} if line["torch"] else {},
        provenance={
            **{name: text for name, text in hashes.items() if text},
            "stand_in": line.flag("stand_in"),
        },
        imbalance=line.json("imbalance") if line["imbalance"] else None,
        returning=returning,
        series=line.json("series") if line["series"] else {},
    )


def _check_metrics(line: CsvLine, metrics: Graded[Metrics]) -> None:
    for prefix, graded in (("", metrics.by_class), ("node_", metrics.by_node)):
        for name in _GRADES:
            if not line[prefix + name]:  # recorded before there was this metric
                continue
            written, found = line.real(prefix + name), getattr(graded, name)
            if not abs(written - found) <= _CLOSE:
                raise InputError(f"{prefix}{name} is {written}, but its matrix gives {found:.6f}")


def _plan_line(manifest: Manifest) -> dict[str, Any]:
    return {
        "plan": manifest.plan,
        "title": manifest.title,
        "rule": manifest.rule,
        "rows": packed(manifest.rows),
        "streams": packed(manifest.streams),
        "skipped": packed({gone.stream: gone.why for gone in manifest.skipped}),
    }


def _plan(line: CsvLine, cells: list[PlannedRun]) -> Manifest:
    return Manifest(
        plan=line["plan"],
        title=line["title"],
        rule=line["rule"],
        rows=line.json("rows"),
        streams=line.json("streams"),
        cells=cells,
        skipped=[Skipped(stream=name, why=why) for name, why in line.json("skipped").items()],
    )


def _cell_lines(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """By stream and row as in the table, then by seed."""
    rows = {row: place for place, row in enumerate(manifest.rows)}
    streams = {stream: place for place, stream in enumerate(manifest.streams)}

    def place(cell: PlannedRun) -> tuple[int, int, int]:
        return streams.get(cell.stream, len(streams)), rows.get(cell.row, len(rows)), cell.seed

    for cell in sorted(manifest.cells, key=place):
        failed = next(iter((cell.failed or "").strip().splitlines()), None)
        yield {"plan": manifest.plan, **cell.model_dump(exclude={"params"}), "failed": failed}


def _cell(line: CsvLine, results: dict[str, Result]) -> PlannedRun:
    run = line["run"] or None
    done = results.get(run or "")
    cell = PlannedRun(
        row=line["row"],
        method=line["method"],
        stream=line["stream"],
        seed=line.whole("seed"),
        params=done.spec.params if done else {},
        run=run,
        search=line["search"] or None,
        failed=line["failed"] or None,
    )
    if done and (done.spec.method, done.spec.place, done.spec.seed) != (
        cell.method,
        cell.stream,
        cell.seed,
    ):
        raise InputError(f"run {run} is of another method, stream or seed")
    return cell


def main(arguments: list[str]) -> int:
    """`python -m paper compact RUNS FOLDER`: make the tables of a results folder."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m paper compact RUNS FOLDER\n")
        return 2
    try:
        records = load_records(arguments[0])
        written = write_compact(records, arguments[1])
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for sentence in records.damaged:
        sys.stderr.write(f"left out: {sentence}\n")
    sys.stdout.write(f"{len(records.results)} runs: {', '.join(map(str, written))}\n")
    return 1 if records.damaged else 0
