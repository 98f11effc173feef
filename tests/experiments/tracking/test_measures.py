from __future__ import annotations

import pytest

from undrift.evaluation.loop import Evaluation
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.steps import Grades
from undrift.experiments.result import Cost, Graded, Metrics, Result
from undrift.experiments.spec import RunSpec
from undrift.experiments.tracking import final, of_task, run_name, settings

TEST = Grades(AccuracyMatrix([[90.0], [70.0, 80.0]]), AccuracyMatrix([[91.0], [71.0, 81.0]]))


def test_a_name_says_what_the_run_is() -> None:
    spec = RunSpec(method="adr", stream="cs-cl", seed=3)
    assert run_name(spec) == f"cs-cl_adr_seed3_{spec.id}"
    file = RunSpec(method="adr", stream="../papers/stream.toml", stream_sha256="ab")
    assert "/" not in run_name(file)
    assert "." not in run_name(file)


def test_settings_are_flat_and_plain() -> None:
    params = {
        "gamma": 0.1,
        "merging": "ham",
        "hidden": (8, 8),
        "batch_size": None,
        "relative": True,
    }
    assert settings(RunSpec(method="adr", stream="cs-cl", params=params)) == {
        "param.gamma": 0.1,
        "param.merging": "ham",
        "param.hidden": "[8, 8]",
        "param.batch_size": "null",
        "param.relative": True,
        "stream": "cs-cl",
        "method": "adr",
        "seed": 0,
        "protocol": "global",
    }


def test_measures_of_each_task_so_far() -> None:
    so_far = Evaluation({"test": TEST}, drift=(0.0, 0.5), state_bytes=(1_000_000, 2_000_000))
    assert of_task(0, so_far) == {
        "test.a_t": 90.0,
        "test.a_t_node": 91.0,
        "test.newest_task": 90.0,
        "test.first_task": 90.0,
        "drift": 0.0,
        "state_mb": 1.0,
    }
    assert of_task(1, so_far) == {
        "test.a_t": 75.0,
        "test.a_t_node": 76.0,
        "test.newest_task": 80.0,
        "test.first_task": 70.0,
        "drift": 0.5,
        "state_mb": 2.0,
    }


def test_validation_is_beside_test_and_what_is_unknown_is_left_out() -> None:
    so_far = Evaluation({"test": TEST, "val": TEST}, drift=(0.0, float("inf")))
    found = of_task(1, so_far)
    assert found["val.a_t"] == 75.0
    assert "drift" not in found
    assert "state_mb" not in found


@pytest.mark.parametrize("validated", [True, False])
def test_the_outcome(validated: bool) -> None:
    by_class, by_node = Metrics.of(TEST.by_class), Metrics.of(TEST.by_node)
    graded = Graded[Metrics](by_class=by_class, by_node=by_node)
    rows = [list(row) for row in TEST.by_class.rows]
    result = Result(
        spec=RunSpec(),
        matrix=Graded[list[list[float]]](by_class=rows, by_node=rows),
        metrics=graded,
        validation=graded if validated else None,
        drift=[0.0, 0.5] if validated else [0.0, None],
        cost=Cost(
            seconds={"train": 1.0, "total": 1.0},
            peak_memory_mb=300.0 if validated else None,
            state_mb=0.5,
            threads=1,
        ),
        versions={},
        provenance={},
    )
    found = final(result)
    assert found["final.test.a_f"] == 75.0
    assert found["final.test.a_f_node"] == 76.0
    assert found["cost.seconds_train"] == 1.0
    assert found["cost.state_mb"] == 0.5
    assert ("final.val.a_f" in found) == validated
    assert found.get("final.drift") == (0.5 if validated else None)
    assert found.get("cost.peak_memory_mb") == (300.0 if validated else None)
