from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments import table as module
from undrift.experiments.result import Cost, Graded, Metrics, Result, save_result
from undrift.experiments.spec import RunSpec
from undrift.experiments.table import flat_row, load_table, table_path, write_table

ROWS = [[90.0], [70.0, 80.0]]
METRICS = {"a_avg": 82.5, "a_f": 75.0, "a_l": 85.0, "forgetting": 20.0}


def result(*, validation: bool = True, phases: tuple[str, ...] = ("train",), **spec: Any) -> Result:
    metrics = Metrics.of(AccuracyMatrix(ROWS))
    graded = Graded[Metrics](by_class=metrics, by_node=metrics)
    return Result(
        spec=RunSpec(**spec),
        matrix=Graded[list[list[float]]](by_class=ROWS, by_node=ROWS),
        metrics=graded,
        validation=graded if validation else None,
        drift=[0.0, 0.5],
        cost=Cost(
            seconds={**dict.fromkeys(phases, 1.5), "total": 1.5 * len(phases)},
            peak_memory_mb=None,
            state_mb=0.1,
            threads=1,
        ),
        versions={"undrift": "0.1.0", "torch": "2"},
        provenance={"sha256": "ab", "split_sha256": "cd", "stand_in": True},
    )


def without_file(folder: Path) -> module.ResultTable:
    """The table from the results alone."""
    table_path(folder).unlink(missing_ok=True)
    return load_table(folder)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the results that are read from now on."""
    seen: list[str] = []
    real = module.read_run

    def read(path: Path) -> Result:
        seen.append(path.parent.name)
        return real(path)

    monkeypatch.setattr(module, "read_run", read)
    return seen


def test_a_row_says_all_about_its_run() -> None:
    params = {"gamma": 0.1, "hidden": (8, 8), "merge": "ham"}
    one = result(method="er-gnn", stream="cs-cl", seed=3, params=params)
    prefixes = ("", "node_", "val_", "val_node_")
    assert flat_row(one) == {
        "id": one.spec.id,
        "stream": "cs-cl",
        "stand_in": True,
        "method": "er-gnn",
        "seed": 3,
        "protocol": "global",
        "device": "cpu",
        "params": '{"gamma": 0.1, "hidden": [8, 8], "merge": "ham"}',
        "param_gamma": 0.1,
        "param_hidden": "[8, 8]",
        "param_merge": "ham",
        "tasks": 2,
        **{f"{prefix}{name}": value for prefix in prefixes for name, value in METRICS.items()},
        "drift_last": 0.5,
        "seconds_total": 1.5,
        "seconds_train": 1.5,
        "peak_memory_mb": None,
        "state_mb": 0.1,
        "threads": 1,
        "keeps_examples": True,
        "version_undrift": "0.1.0",
        "version_torch": "2",
        "data_sha256": "ab",
        "split_sha256": "cd",
    }


def test_a_row_without_validation_drift_or_a_known_method() -> None:
    one = result(validation=False, method="mine").model_copy(
        update={"drift": [], "provenance": {"x_sha256": "1", "y_sha256": "2", "stand_in": False}}
    )
    row = flat_row(one)
    assert row["val_a_avg"] is row["drift_last"] is row["keeps_examples"] is None
    assert row["data_sha256"] == "1 2"


def test_names_of_columns_need_no_quotes_in_sql() -> None:
    row = flat_row(result(params={"Half Life": 1}, phases=("merge-fit",)))
    assert row["param_half_life"] == 1
    assert row["seconds_merge_fit"] == 1.5


def test_every_row_has_every_column_in_one_order(tmp_path: Path) -> None:
    save_result(result(params={"gamma": 1.0}, phases=("train", "merge")), tmp_path)
    save_result(result(method="bare", params={"alpha": 2}), tmp_path)
    table = load_table(tmp_path)
    assert all(tuple(row) == table.columns for row in table.rows)
    at = table.columns.index
    assert at("params") + 1 == at("param_alpha") == at("param_gamma") - 1
    assert at("seconds_total") + 1 == at("seconds_merge") == at("seconds_train") - 1
    bare = next(row for row in table.rows if row["method"] == "bare")
    assert (bare["param_gamma"], bare["seconds_merge"]) == (None, None)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ((1, 0.5), [1, 0.5]),
        ((True, None), [True, None]),
        ((True, 1), ["true", "1"]),
        (("ham", 0.5), ["ham", "0.5"]),
        (((8, 8), 4), ["[8, 8]", "4"]),
        ((2**70, 1), [str(2**70), "1"]),
    ],
)
def test_a_column_holds_one_kind(tmp_path: Path, values: tuple[Any, ...], kept: list[Any]) -> None:
    for seed, value in enumerate(values):
        save_result(result(seed=seed, params={"x": value}), tmp_path)
    for _ in range(2):  # from the results, then from the file
        rows = sorted(load_table(tmp_path).rows, key=lambda row: int(str(row["seed"])))
        assert [row["param_x"] for row in rows] == kept


def test_an_empty_folder_has_the_columns_that_always_are(tmp_path: Path) -> None:
    table = load_table(tmp_path)
    assert table.rows == []
    assert {"id", "a_f", "seconds_total", "data_sha256"} < set(table.columns)
    assert not any(name.startswith("param_") for name in table.columns)


def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="pip install undrift[tables]")
    paths = [save_result(result(seed=seed, params={"gamma": 0.1}), tmp_path) for seed in range(3)]
    seen = reads(monkeypatch)
    first = load_table(tmp_path)
    assert sorted(seen) == sorted(path.parent.name for path in paths)
    seen.clear()
    assert load_table(tmp_path) == first
    assert seen == []
    changed = result(seed=1, params={"gamma": 0.1}).model_copy(update={"drift": [0.0, 0.25]})
    save_result(changed, tmp_path)
    save_result(result(seed=9, params={"gamma": "auto"}, phases=("solve",)), tmp_path)
    paths[2].unlink()
    again = load_table(tmp_path)
    assert sorted(seen) == sorted([changed.spec.id, RunSpec(seed=9, params={"gamma": "auto"}).id])
    assert again == without_file(tmp_path)
    assert len(again.rows) == 3
    # and what only the deleted run had is gone with it
    for path in tmp_path.glob("*/result.json"):
        if "auto" in path.read_text():
            path.unlink()
    assert load_table(tmp_path) == without_file(tmp_path)


def test_the_same_size_at_another_time_is_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_result(result(), tmp_path)
    load_table(tmp_path)
    seen = reads(monkeypatch)
    os.utime(path, ns=(1, 1))
    load_table(tmp_path)
    assert seen == [path.parent.name]


def test_damaged_results_are_named_and_left_out(tmp_path: Path) -> None:
    save_result(result(), tmp_path)
    path = save_result(result(seed=5), tmp_path)
    load_table(tmp_path)
    path.write_text("{")
    for _ in range(2):  # also when the file is up to date
        table = load_table(tmp_path)
        assert [row["seed"] for row in table.rows] == [0]
        (sentence,) = table.damaged
        assert str(path) in sentence


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing else", b"{}"])
def test_a_damaged_file_is_made_again(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow", reason="pip install undrift[tables]")
    save_result(result(), tmp_path)
    table = load_table(tmp_path)
    table_path(tmp_path).write_bytes(content)
    assert load_table(tmp_path) == table
    assert table_path(tmp_path).read_bytes() != content


def test_a_file_of_another_layout_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="pip install undrift[tables]")
    save_result(result(), tmp_path)
    with monkeypatch.context() as older:
        older.setattr(module, "_LAYOUT", b"0")
        load_table(tmp_path)
    seen = reads(monkeypatch)
    load_table(tmp_path)
    assert seen == [result().spec.id]


def test_the_file_is_readable_by_anything(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install undrift[tables]")
    save_result(result(params={"gamma": 0.1}), tmp_path)
    save_result(result(seed=1, params={"gamma": 1}), tmp_path)
    path = write_table(tmp_path)
    assert path == tmp_path / "results.parquet"
    stored = parquet.read_table(path)
    kinds = {field.name: str(field.type) for field in stored.schema}
    assert kinds["param_gamma"] == kinds["a_f"] == "double"
    assert (kinds["seed"], kinds["stand_in"], kinds["stream"]) == ("int64", "bool", "string")
    assert sorted(stored.column("seed").to_pylist()) == [0, 1]
    assert [p.name for p in tmp_path.glob(".*")] == []


def test_a_folder_that_cannot_be_written_to_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise InputError("the disk is full")

    save_result(result(), tmp_path)
    monkeypatch.setattr(module, "write_atomically", full)
    assert len(load_table(tmp_path).rows) == 1
    pytest.importorskip("pyarrow", reason="pip install undrift[tables]")
    with pytest.raises(InputError, match="full"):
        write_table(tmp_path)


def test_without_pyarrow_the_results_are_read_and_the_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_result(result(params={"gamma": 0.1}), tmp_path)
    with_file = load_table(tmp_path)
    table_path(tmp_path).unlink(missing_ok=True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert load_table(tmp_path) == with_file
    assert not table_path(tmp_path).exists()
    with pytest.raises(InputError, match=r"pip install undrift\[tables\]"):
        write_table(tmp_path)


def test_a_missing_folder_is_an_input_error(tmp_path: Path) -> None:
    for call in (load_table, write_table):
        with pytest.raises(InputError, match="undrift bench smoke"):
            call(tmp_path / "runs")


def test_progress_counts_the_results(tmp_path: Path) -> None:
    for seed in range(2):
        save_result(result(seed=seed), tmp_path)
    calls: list[tuple[str, int, int]] = []
    load_table(tmp_path, progress=lambda *call: calls.append(call))
    assert calls == [("read", done, 2) for done in range(3)]


def test_params_survive_as_json(tmp_path: Path) -> None:
    save_result(result(params={"hidden": (8, 8), "merge": None}), tmp_path)
    (row,) = load_table(tmp_path).rows
    assert json.loads(str(row["params"])) == {"hidden": [8, 8], "merge": None}


def test_the_table_does_not_import_torch() -> None:
    code = "import sys, undrift.experiments.table_query; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
