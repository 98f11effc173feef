import json
from collections.abc import Callable
from itertools import product
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.made import METRICS, ROWS, made
from undrift import InputError
from undrift.evaluation import AccuracyMatrix
from undrift.evaluation.metrics import metrics_of
from undrift.experiments import RunSpec, load_records
from undrift.experiments.result import (
    FORMAT,
    Result,
    each_metric,
    load_result,
    metric_keys,
    result_path,
    save_result,
)
from undrift.storage.splits import load_split
from undrift.testing import tiny_stream

Written = Callable[[dict[str, Any]], Path]


@pytest.fixture
def written(tmp_path) -> Written:
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
        "series": {},
    }


def result() -> Result:
    return Result.model_validate(record())


def test_the_file_has_exactly_the_published_shape_and_comes_back(tmp_path) -> None:
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
    assert load_split(path.with_name("split.npz")).sha256 == saved.sha256
    assert sorted(p.name for p in path.parent.iterdir()) == ["result.json", "split.npz"]
    changed = result().model_copy(update={"drift": []})
    assert load_result(save_result(changed, tmp_path / "runs")).drift == []


@pytest.mark.parametrize(
    ("where", "value", "why"),
    [
        ("matrix", {"class": ROWS}, "matrix"),
        ("spec", {"seed": -1}, "spec"),
        ("more", 1, "more"),
        ("cost", record()["cost"] | {"state_mb": -0.5}, "cost.state_mb"),
        ("cost", record()["cost"] | {"seconds": {"total": inf}}, "cost.seconds.total"),
        ("metrics", {"class": METRICS | {"a_l": nan}, "node": METRICS}, r"metrics.class.a_l"),
        ("imbalance", [nan, None], "imbalance"),
        *(("format", wrong, r"not a result of a run \(format: ") for wrong in (0, "2", 2.5, None)),
        ("format", FORMAT + 1, rf"newer undrift \(result format {FORMAT + 1}.*upgrade"),
    ],
)
def test_a_wrong_part_is_named(written: Written, where: str, value: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        load_result(written(record() | {where: value}))


def test_a_result_of_an_older_format_is_read_as_one_of_today(written, tmp_path) -> None:
    younger = {"imbalance": None, "returning": None, "described": None, "series": {}}
    old = {name: value for name, value in record().items() if name not in younger}
    del old["cost"]["state_bytes"]
    wanted = old | younger | {"format": FORMAT, "cost": old["cost"] | {"state_bytes": []}}
    for format in (2, 3, 4, 5):
        migrated = load_result(written(old | {"format": format}))
        assert json.loads(save_result(migrated, tmp_path).read_text()) == wanted
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


def test_a_result_where_classes_come_back_is_written_and_read(tmp_path) -> None:
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


def test_a_series_is_a_metric_of_the_run_and_may_stand_alone(tmp_path) -> None:
    graded = made(fields={"series": {"auroc": [90.0, None], "recall_of_nobody": [1.0, 2.0]}})
    alone = made([], {"series": {"auroc": [90.0, 80.0]}, "drift": []}, method="bare")
    for one in (graded, alone):
        assert load_result(save_result(one, tmp_path)) == one
    assert graded.value("auroc") == graded.value("auroc", "node") == 90.0
    assert (graded.value("a_f"), alone.value("auroc"), alone.steps) == (75.0, 85.0, 2)
    assert isnan(alone.value("a_f"))
    assert isnan(graded.value("oscr"))
    assert metric_keys([graded]) == [*METRICS, "auroc"]
    assert metric_keys([alone]) == ["auroc"]
    found = [(of, value) for of, key, value in each_metric(graded) if key == "auroc"]
    assert found == [(("test", "class"), 90.0)]
    assert set(load_records(tmp_path).results) == {graded.spec.id, alone.spec.id}


def test_a_metric_that_is_younger_than_the_file_is_computed_from_the_matrix(written) -> None:
    old = record()
    for part, grading in product(("metrics", "validation"), ("class", "node")):
        old[part][grading] = {key: v for key, v in METRICS.items() if key != "a_l"}
    path = written(old)
    read = load_result(path)
    assert read.metrics.by_class.a_l == read.metrics.by_node.a_l == METRICS["a_l"]
    assert read.validation.by_class.a_l is None  # there is no matrix of the validation nodes
    assert read.validation.by_class.a_f == METRICS["a_f"]
    with pytest.raises(AttributeError):
        _ = read.metrics.by_class.no_such_metric
