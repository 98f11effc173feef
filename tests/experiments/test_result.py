from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.metrics import metrics_of
from undrift.experiments.result import (
    FORMAT,
    Metrics,
    Result,
    load_result,
    metric_keys,
    result_path,
    save_result,
    split_path,
)
from undrift.experiments.spec import RunSpec
from undrift.storage import splits
from undrift.storage.splits import load_split
from undrift.testing.graphs import tiny_stream

ROWS = [[90.0], [70.0, 80.0]]
METRICS = {"a_avg": 82.5, "a_f": 75.0, "a_l": 85.0, "forgetting": 20.0}


def record() -> dict[str, Any]:
    """A result.json as it lies on disk."""
    return {
        "format": FORMAT,
        "spec": {
            "stream": "cs-cl",
            "method": "adr",
            "seed": 0,
            "protocol": "global",
            "params": {"hidden": [8, 8]},
            "device": "cpu",
        },
        "matrix": {"class": ROWS, "node": ROWS},
        "metrics": {"class": METRICS, "node": METRICS},
        "validation": {"class": METRICS, "node": METRICS},
        "drift": [0.0, None],
        "cost": {
            "seconds": {"train": 1.5, "total": 1.5},
            "peak_memory_mb": 300.0,
            "state_mb": 0.5,
            "threads": 1,
            "state_bytes": [400_000, 500_000],
        },
        "versions": {"undrift": "0.1.0", "torch": "2", "python": "3.11"},
        "provenance": {"sha256": "ab", "stand_in": False},
        "imbalance": [1.5, None],
        "returning": None,
        "described": None,
    }


def result() -> Result:
    return Result.model_validate(record())


def test_the_file_has_exactly_the_published_shape(tmp_path: Path) -> None:
    path = save_result(result(), tmp_path)
    assert json.loads(path.read_text()) == record()


def test_it_lies_under_the_id_of_its_spec(tmp_path: Path) -> None:
    path = save_result(result(), tmp_path / "runs")
    assert path == result_path(result().spec, tmp_path / "runs")
    assert path == tmp_path / "runs" / result().spec.id / "result.json"
    assert [p.name for p in path.parent.iterdir()] == ["result.json"]


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    again = load_result(save_result(result(), tmp_path))
    assert again == result()
    assert again.spec.params["hidden"] == (8, 8)
    assert again.by_class == AccuracyMatrix(ROWS)
    assert again.by_node == AccuracyMatrix(ROWS)
    assert again.stand_in is False


def test_the_split_lies_beside_it(tmp_path: Path) -> None:
    saved = tiny_stream().saved_split()
    path = save_result(result(), tmp_path, split=saved)
    assert split_path(path) == path.parent / "split.npz"
    assert load_split(split_path(path)).sha256 == saved.sha256
    assert sorted(p.name for p in path.parent.iterdir()) == ["result.json", "split.npz"]


def test_without_its_split_there_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(splits, "write_atomically", full)
    with pytest.raises(InputError, match="full"):
        save_result(result(), tmp_path, split=tiny_stream().saved_split())
    assert list(tmp_path.rglob("result.json")) == []


def test_saving_again_overwrites(tmp_path: Path) -> None:
    save_result(result(), tmp_path)
    changed = result().model_copy(update={"drift": []})
    assert load_result(save_result(changed, tmp_path)).drift == []


def test_metrics_are_those_of_the_matrix() -> None:
    assert Metrics.of(AccuracyMatrix(ROWS)).model_dump() == METRICS


def test_validation_and_memory_may_be_unknown() -> None:
    data = record() | {"validation": None}
    data["cost"]["peak_memory_mb"] = None
    assert Result.model_validate(data).validation is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_a_damaged_result_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a result of a run") as caught:
        load_result(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "value"),
    [("matrix", {"class": ROWS}), ("spec", {"seed": -1}), ("metrics", None), ("more", 1)],
)
def test_a_wrong_part_is_named(tmp_path: Path, where: str, value: Any) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(record() | {where: value}))
    with pytest.raises(InputError, match=where):
        load_result(path)


def test_a_result_of_the_first_format_is_read_as_one_of_today(tmp_path: Path) -> None:
    old = record()
    del old["format"], old["imbalance"], old["cost"]["state_bytes"]
    del old["returning"], old["described"]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(old))
    migrated = load_result(path)
    assert migrated.cost.state_bytes == []
    written = json.loads(save_result(migrated, tmp_path).read_text())
    old["cost"]["state_bytes"] = []
    now = {"imbalance": None, "returning": None, "described": None}
    assert written == old | now | {"format": FORMAT}


def returning() -> dict[str, Any]:
    """A result.json of a stream whose classes come back: class 7 with 1 node, class 3 with 3."""
    rows = [[90.0], [60.0, 100.0]]
    metrics = {"a_avg": 85.0, "a_f": 80.0, "a_auc": 82.0, "class_forgetting": 30.0}
    by_node = {"a_avg": 90.0, "a_f": 90.0, "a_auc": 90.0, "class_forgetting": 30.0}
    steps = {"batches": 40, "classes": [7, 3], "nodes": [1, 3], "graded": [19, 39]}
    return record() | {
        "spec": record()["spec"] | {"arrive": "online:batch=8"},
        "matrix": {"class": rows, "node": rows},
        "metrics": {"class": metrics, "node": by_node},
        "returning": steps | {"shares": [0.2, 0.8]},
    }


def test_a_result_where_classes_come_back_is_written_and_read(tmp_path: Path) -> None:
    one = Result.model_validate(returning())
    path = save_result(one, tmp_path)
    assert json.loads(path.read_text()) == returning()
    again = load_result(path)
    assert again == one
    assert (again.steps, again.spec.place) == (40, "cs-cl+online:batch=8")
    assert again.by_class.parts == again.by_node.parts == "classes"
    assert metrics_of(again.by_class) == returning()["metrics"]["class"]
    assert metrics_of(again.by_node) == returning()["metrics"]["node"]
    assert again.metrics.by_class.a_l is None
    assert metric_keys([again]) == ["a_avg", "a_f", "a_auc", "class_forgetting"]
    assert metric_keys([result()]) == list(METRICS)


def test_a_result_of_the_third_format_is_of_tasks(tmp_path: Path) -> None:
    old = record() | {"format": 3}
    del old["returning"]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(old))
    assert load_result(path) == result()


def test_rows_that_get_shorter_are_damage(tmp_path: Path) -> None:
    broken = returning() | {"metrics": {"class": {}, "node": {}}}
    broken["matrix"] = {"class": [[1.0, 2.0], [1.0]], "node": [[1.0, 2.0], [1.0]]}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(broken))
    with pytest.raises(InputError, match=r"damaged .*rows that do not get shorter"):
        load_result(path)


def test_a_result_of_the_second_format_has_no_imbalance(tmp_path: Path) -> None:
    old = record() | {"format": 2}
    del old["imbalance"]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(old))
    assert load_result(path).imbalance is None
    assert load_result(path).format == FORMAT


def test_a_metric_that_is_younger_than_the_file_is_computed_from_the_matrix(
    tmp_path: Path,
) -> None:
    old = record()
    for part, grading in product(("metrics", "validation"), ("class", "node")):
        old[part][grading] = {key: v for key, v in METRICS.items() if key != "a_l"}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(old))
    read = load_result(path)
    assert read.metrics.by_class.a_l == read.metrics.by_node.a_l == METRICS["a_l"]
    assert read.validation is not None
    assert read.validation.by_class.a_l is None  # there is no matrix of the validation nodes
    assert read.validation.by_class.a_f == METRICS["a_f"]
    with pytest.raises(AttributeError):
        _ = read.metrics.by_class.no_such_metric


def test_a_metric_of_a_package_that_is_not_installed_is_kept(tmp_path: Path) -> None:
    old = record()
    old["metrics"]["class"] = METRICS | {"of_another_package": 3.5}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(old))
    read = load_result(path)
    assert read.metrics.by_class.of_another_package == 3.5
    again = json.loads(save_result(read, tmp_path).read_text())
    assert again["metrics"]["class"]["of_another_package"] == 3.5


def test_a_metric_must_be_a_number(tmp_path: Path) -> None:
    old = record()
    old["metrics"]["class"] = METRICS | {"a_f": "high"}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(old))
    with pytest.raises(InputError, match=r"metrics.class.a_f"):
        load_result(path)


def test_a_newer_format_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(record() | {"format": FORMAT + 1, "unheard_of": 1}))
    with pytest.raises(InputError, match=rf"newer undrift \(result format {FORMAT + 1}.*upgrade"):
        load_result(path)


@pytest.mark.parametrize("format", [0, "2", 2.5, None])
def test_a_format_that_never_was_is_a_damaged_file(tmp_path: Path, format: Any) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(record() | {"format": format}))
    with pytest.raises(InputError, match=r"is not a result of a run \(format: "):
        load_result(path)


def test_a_missing_result_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the result"):
        load_result(tmp_path / "result.json")


def test_the_spec_of_a_result_is_a_run_spec() -> None:
    assert result().spec == RunSpec(method="adr", stream="cs-cl", params={"hidden": (8, 8)})


def test_a_result_does_not_import_torch() -> None:
    code = "import sys, undrift.experiments.result; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"state_mb": 0.5', '"state_mb": NaN'),
        ('"state_mb": 0.5', '"state_mb": -0.5'),
        ('"total": 1.5', '"total": Infinity'),
        ('"a_l": 85.0', '"a_l": NaN'),
        ('"imbalance": [1.5', '"imbalance": [NaN'),
    ],
)
def test_numbers_that_are_none_are_damage(tmp_path: Path, old: str, new: str) -> None:
    text = json.dumps(record())
    assert old in text
    path = tmp_path / "result.json"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match="is not a result of a run"):
        load_result(path)
