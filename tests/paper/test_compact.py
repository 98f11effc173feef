import csv
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper.compact import is_compact, main, read_compact, rounded, write_compact
from tests.experiments.made import made, searched
from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result, save_result
from undrift.experiments.search import Search, SearchSpec, search_rule
from undrift.experiments.store import Manifest, PlannedRun, Records, Skipped, save_manifest

ROWS = [[100 / 3], [70.0, 200 / 3]]


def result(rows: list[list[float]] = ROWS, seed: int = 0, **changes: Any) -> Result:
    cost = {"seconds": {"train": 1.23456, "total": 2.0}, "peak_memory_mb": None}
    fields = {
        "validation": None,
        "drift": [0.0, None],
        "cost": cost | {"state_mb": 1.5, "threads": 1, "state_bytes": [10, 1500000]},
        "versions": {"torch": "2.13.0", "numpy": "2.0"},
        "provenance": {"stand_in": True, "sha256": "ab", "split_sha256": "cd", "url": "x"},
    }
    params = {"hidden": (8, 8), "gamma": 1.0}
    spec = {"stream": "cs-cl", "method": "adr", "seed": seed, "params": params}
    return made(rows, fields | changes, **spec, open_world=seed == 1)


def search() -> Search:
    grid = [{"epochs": 3, "gamma": g, "alpha": a} for g in (0.1, 1.0) for a in (1, 2)]
    found = searched([(grid[0], 70.0), (grid[1], 80.0), (grid[2], 75.0), (grid[3], 0.0)])
    base = found.spec.base.model_copy(update={"params": {"epochs": 3}})
    spec = SearchSpec(base=base, grid={"gamma": (0.1, 1.0), "alpha": (1, 2)})
    trials = [*found.trials[:3], found.trials[3].model_copy(update={"failed": "boom\nmore"})]
    return found.model_copy(update={"spec": spec, "trials": trials, "shared_with": ["acil"]})


def records(*results: Result) -> Records:
    runs = {each.spec.id: each for each in results}
    adr = {"row": "adr", "method": "adr", "stream": "cs-cl"}
    cells = [
        {"seed": each.spec.seed, "params": each.spec.params, "run": run, "search": search().spec.id}
        for run, each in runs.items()
    ]
    plan = Manifest(
        plan="mine",
        title="A title, with commas",
        rule=search_rule([search().spec]),
        rows=["adr"],
        streams=["cs-cl"],
        cells=[
            PlannedRun.model_validate(adr | cell)
            for cell in (*cells, {"seed": 9, "failed": "full disk"})
        ],
        skipped=[Skipped(stream="arxiv-cl", why="no data")],
    )
    return Records(dict(sorted(runs.items())), [plan], [search()], [], Path("."))


@pytest.fixture
def some() -> Records:
    series = {"auroc": [91.25, None]}
    validated = {"validation": made().metrics, "drift": [], "series": series}
    return records(result(), result(seed=1, **validated))


def test_what_is_written_is_read(some: Records, tmp_path) -> None:
    paths = write_compact(some, tmp_path)
    assert [path.name for path in paths] == ["runs.csv", "plans.csv", "cells.csv", "searches.csv"]
    found = read_compact(tmp_path)
    assert list(found.results) == list(some.results)
    assert found.manifests == some.manifests
    assert found.folder == tmp_path
    kept = {"versions": {"torch": "2.13.0"}}
    kept["provenance"] = {"stand_in": True, "sha256": "ab", "split_sha256": "cd"}
    for run, read in found.results.items():
        assert read == rounded(some.results[run]).model_copy(update=kept)
    (again,), wanted = found.searches, search()
    assert (again.spec, again.chosen, again.shared_with) == (wanted.spec, wanted.chosen, ["acil"])
    assert [trial.failed for trial in again.trials] == [None, None, None, "boom"]
    assert [trial.params for trial in again.trials] == [trial.params for trial in wanted.trials]


def test_a_table_that_was_read_gives_the_same_bytes(some: Records, tmp_path) -> None:
    first = write_compact(some, tmp_path / "a")
    second = write_compact(read_compact(tmp_path / "a"), tmp_path / "b")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.lists(st.floats(0, 100), min_size=6, max_size=6))
def test_rounding_moves_no_metric_by_a_printed_digit(numbers: list[float]) -> None:
    rows = [numbers[:1], numbers[1:3], numbers[3:]]
    exact = result(rows)
    short = rounded(exact)
    assert rounded(short) == short
    for name in METRICS:
        ours, theirs = (getattr(found.metrics.by_class, name) for found in (short, exact))
        assert ours == pytest.approx(theirs, abs=2e-6)


def edit(path: Path, line: int, **cells: str) -> None:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[line - 2] |= cells
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    ("file", "cells", "why"),
    [
        ("runs.csv", {"seed": "7"}, "the id of this run is"),
        ("runs.csv", {"a_avg": "99.0"}, "a_avg is 99.0, but its matrix gives"),
        ("runs.csv", {"node_forgetting": "x"}, "node_forgetting is 'x', not a number"),
        ("runs.csv", {"matrix": "[[1.0],[2.0]]"}, "row 1 of an accuracy matrix needs 2"),
        ("runs.csv", {"params": "{"}, "params is not JSON"),
        ("cells.csv", {"seed": "3"}, "is of another method, stream or seed"),
        ("searches.csv", {"setting": '{"gamma":5,"alpha":1}'}, "are those of another"),
        ("searches.csv", {"chosen": "true"}, "has 2 chosen settings, not one"),
    ],
)
def test_damage_is_named(some: Records, tmp_path, file: str, cells: Any, why: str) -> None:
    write_compact(some, tmp_path)
    edit(tmp_path / file, 2, **cells)
    with pytest.raises(InputError, match=f"^{tmp_path / file}, line 2: .*{re.escape(why)}"):
        read_compact(tmp_path)


def test_tables_that_do_not_belong_together(some: Records, tmp_path) -> None:
    assert not is_compact(tmp_path)
    with pytest.raises(InputError, match=r"there is no .*runs.csv; make one with"):
        read_compact(tmp_path)
    runs, plans = write_compact(some, tmp_path)[:2]
    text, plan = runs.read_text(), plans.read_text()
    runs.write_text(text + text.splitlines()[1] + "\n")
    with pytest.raises(InputError, match=r"line 4: run \w+ stands there twice"):
        read_compact(tmp_path)
    runs.write_text(text)
    plans.write_text(plan.splitlines()[0] + "\n")
    with pytest.raises(InputError, match="cells of the plan 'mine'"):
        read_compact(tmp_path)


def test_the_command(some: Records, tmp_path, capsys) -> None:
    for each in some.results.values():
        save_result(each, tmp_path / "runs")
    save_manifest(some.manifests[0], tmp_path / "runs")
    assert main([str(tmp_path / "runs"), str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("2 runs: ")
    assert list(read_compact(tmp_path / "out").results) == list(some.results)
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "result.json").write_text("{")
    assert main([str(tmp_path / "runs"), str(tmp_path / "out")]) == 1
    assert "left out: " in capsys.readouterr().err
    assert main([str(tmp_path / "nothing"), str(tmp_path / "out")]) == 2
    assert main([]) == 2
