from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.made import METRICS, ROWS
from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.metrics import metrics_of
from undrift.experiments.result import (
    FORMAT,
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

Written = Callable[[dict[str, Any]], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a result.json and says where."""

    def write(data: dict[str, Any]) -> Path:
        path = tmp_path / "result.json"
        path.write_text(json.dumps(data))
        return path

    return write


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


def test_the_file_has_exactly_the_published_shape_and_comes_back(tmp_path: Path) -> None:
    saved = tiny_stream().saved_split()
    path = save_result(result(), tmp_path / "runs", split=saved)
    assert path == result_path(result().spec, tmp_path / "runs")
    assert path == tmp_path / "runs" / result().spec.id / "result.json"
    assert json.loads(path.read_text()) == record()
    again = load_result(path)
    assert again == result()
    assert again.spec == RunSpec(method="adr", stream="cs-cl", params={"hidden": (8, 8)})
    assert again.by_class == again.by_node == AccuracyMatrix(ROWS)
    assert again.metrics.by_class.model_dump() == METRICS
    assert again.stand_in is False
    assert load_split(split_path(path)).sha256 == saved.sha256
    assert sorted(p.name for p in path.parent.iterdir()) == ["result.json", "split.npz"]
    changed = result().model_copy(update={"drift": []})
    assert load_result(save_result(changed, tmp_path / "runs")).drift == []


def test_without_its_split_there_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(splits, "write_atomically", full)
    with pytest.raises(InputError, match="full"):
        save_result(result(), tmp_path, split=tiny_stream().saved_split())
    assert list(tmp_path.rglob("result.json")) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_a_damaged_result_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(InputError, match="cannot read the result"):
        load_result(path)
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a result of a run") as caught:
        load_result(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "value", "why"),
    [
        ("matrix", {"class": ROWS}, "matrix"),
        ("spec", {"seed": -1}, "spec"),
        ("metrics", None, "metrics"),
        ("metrics", {"class": METRICS | {"a_f": "high"}, "node": METRICS}, r"metrics.class.a_f"),
        ("more", 1, "more"),
        *(
            ("format", wrong, r"is not a result of a run \(format: ")
            for wrong in (0, "2", 2.5, None)
        ),
        ("format", FORMAT + 1, rf"newer undrift \(result format {FORMAT + 1}.*upgrade"),
    ],
)
def test_a_wrong_part_is_named(written: Written, where: str, value: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        load_result(written(record() | {where: value}))


def test_a_result_of_an_older_format_is_read_as_one_of_today(
    written: Written, tmp_path: Path
) -> None:
    old = record()
    del old["imbalance"], old["cost"]["state_bytes"], old["returning"], old["described"]
    for format in (2, 3, 4):
        migrated = load_result(written(old | {"format": format}))
        again = json.loads(save_result(migrated, tmp_path).read_text())
        wanted = old | {"imbalance": None, "returning": None, "described": None, "format": FORMAT}
        assert again == wanted | {"cost": old["cost"] | {"state_bytes": []}}
    del old["format"]
    assert load_result(written(old)) == migrated


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


def test_a_metric_that_is_younger_than_the_file_is_computed_from_the_matrix(
    written: Written,
) -> None:
    old = record()
    for part, grading in product(("metrics", "validation"), ("class", "node")):
        old[part][grading] = {key: v for key, v in METRICS.items() if key != "a_l"}
    path = written(old)
    read = load_result(path)
    assert read.metrics.by_class.a_l == read.metrics.by_node.a_l == METRICS["a_l"]
    assert read.validation is not None
    assert read.validation.by_class.a_l is None  # there is no matrix of the validation nodes
    assert read.validation.by_class.a_f == METRICS["a_f"]
    with pytest.raises(AttributeError):
        _ = read.metrics.by_class.no_such_metric


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
