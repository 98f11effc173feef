from __future__ import annotations

import json
from typing import Any

from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.flat import flat
from undrift.experiments.result import Cost, Graded, Metrics, Result
from undrift.experiments.spec import RunSpec

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


def test_a_row_says_all_about_its_run() -> None:
    params = {"gamma": 0.1, "hidden": (8, 8), "merging": "ham"}
    one = result(method="er-gnn", stream="cs-cl", seed=3, params=params)
    prefixes = ("", "node_", "val_", "val_node_")
    assert flat(one) == {
        "id": one.spec.id,
        "stream": "cs-cl",
        "arrive": "classes",
        "stand_in": True,
        "method": "er-gnn",
        "seed": 3,
        "protocol": "global",
        "device": "cpu",
        "params": '{"gamma": 0.1, "hidden": [8, 8], "merging": "ham"}',
        "param_gamma": 0.1,
        "param_hidden": "[8, 8]",
        "param_merging": "ham",
        "tasks": 2,
        **{f"{prefix}{name}": value for prefix in prefixes for name, value in METRICS.items()},
        **dict.fromkeys(p + key for p in prefixes for key in ("a_auc", "class_forgetting")),
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
    row = flat(one)
    assert row["val_a_avg"] is row["drift_last"] is row["keeps_examples"] is None
    assert row["data_sha256"] == "1 2"


def test_names_of_columns_need_no_quotes_in_sql() -> None:
    row = flat(result(params={"Half Life": 1}, phases=("merge-fit",)))
    assert row["param_half_life"] == 1
    assert row["seconds_merge_fit"] == 1.5


def test_what_is_not_a_finite_number_has_no_value() -> None:
    one = result()
    cost = one.cost.model_copy(update={"state_mb": float("nan"), "peak_memory_mb": float("inf")})
    row = flat(one.model_copy(update={"cost": cost}))
    assert (row["state_mb"], row["peak_memory_mb"]) == (None, None)


def test_params_survive_as_json() -> None:
    row = flat(result(params={"hidden": (8, 8), "merging": None}))
    assert json.loads(str(row["params"])) == {"hidden": [8, 8], "merging": None}
