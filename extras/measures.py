"""What a tracker shows of a run: flat names with numbers."""

import math
from collections.abc import Mapping
from typing import Any

from undrift.evaluation.loop import Evaluation
from undrift.experiments.result import Result, each_metric

Measures = dict[str, float]


def of_task(t: int, evaluation: Evaluation) -> Measures:
    """The measures after task (grading) t, which may lie before the last one of the evaluation."""
    found: Measures = {}
    for split, grades in evaluation.grades.items():
        found[f"{split}.a_t"] = grades.by_class.a_t[t]
        found[f"{split}.a_t_node"] = grades.by_node.a_t[t]
        if grades.by_class.parts == "tasks":
            found[f"{split}.newest_task"] = grades.by_class.rows[t][t]
            found[f"{split}.first_task"] = grades.by_class.rows[t][0]
    found |= {f"test.{key}": values[t] for key, values in evaluation.series.items()}
    if t < len(evaluation.drift):
        found["drift"] = evaluation.drift[t]
    if t < len(evaluation.state_bytes):
        found["state_mb"] = evaluation.state_bytes[t] / 1e6
    return _finite(found)


def final(result: Result) -> Measures:
    """The measures of a finished run."""
    cost = result.cost
    found: dict[str, Any] = {
        f"final.{split}.{key}{'_node' if by == 'node' else ''}": value
        for (split, by), key, value in each_metric(result)
    }
    found |= {f"cost.seconds_{phase}": spent for phase, spent in cost.seconds.items()}
    found |= {"cost.state_mb": cost.state_mb, "cost.peak_memory_mb": cost.peak_memory_mb}
    return _finite(found | {"final.drift": result.drift[-1] if result.drift else None})


def _finite(found: Mapping[str, Any]) -> Measures:
    # a tool draws or stores other numbers wrongly, or refuses all of them for one
    return {n: value for n, value in found.items() if value is not None and math.isfinite(value)}
