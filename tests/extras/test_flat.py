from __future__ import annotations

from typing import Any

from extras.flat import flat
from tests.experiments.made import METRICS, made
from undrift.experiments.result import Result


def result(*, phases: tuple[str, ...] = ("train",), **spec: Any) -> Result:
    seconds = {**dict.fromkeys(phases, 1.5), "total": 1.5 * len(phases)}
    cost = {"seconds": seconds, "peak_memory_mb": None, "state_mb": 0.1, "threads": 1}
    provenance = {"sha256": "ab", "split_sha256": "cd", "stand_in": True}
    return made(fields={"cost": cost, "provenance": provenance}, **spec)


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
    provenance = {"x_sha256": "1", "y_sha256": "2", "stand_in": False}
    fields = {"drift": [], "validation": None, "provenance": provenance}
    row = flat(made(fields=fields, method="mine"))
    assert row["val_a_avg"] is row["drift_last"] is row["keeps_examples"] is None
    assert row["data_sha256"] == "1 2"


def test_names_of_columns_need_no_quotes_in_sql() -> None:
    row = flat(result(params={"Half Life": 1}, phases=("merge-fit",)))
    assert row["param_half_life"] == 1
    assert row["seconds_merge_fit"] == 1.5
