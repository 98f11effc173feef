"""Made-up results for tests: a run of two tasks, with whatever is to be different."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.result import Result, graded_metrics
from undrift.experiments.spec import RunSpec

ROWS = [[90.0], [70.0, 80.0]]
METRICS = {"a_avg": 82.5, "a_f": 75.0, "a_l": 85.0, "forgetting": 20.0}


def made(
    rows: Sequence[Sequence[float]] = ROWS, fields: dict[str, Any] | None = None, **spec: Any
) -> Result:
    """The result of a run with this spec and matrix; `fields` of the result stand above it."""
    matrix = AccuracyMatrix(rows)
    graded = graded_metrics(matrix, matrix)
    cost = {"seconds": {"total": 1.5}, "peak_memory_mb": None, "state_mb": 0.1, "threads": 1}
    data: dict[str, Any] = {
        "spec": RunSpec(**spec),
        "matrix": {"class": rows, "node": rows},
        "metrics": graded,
        "validation": graded,
        "drift": [0.0, 0.5],
        "cost": cost,
        "versions": {"undrift": "0.1.0", "torch": "2"},
        "provenance": {"stand_in": False},
    }
    return Result.model_validate(data | (fields or {}))
