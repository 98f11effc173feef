"""What trackers record: names and numbers, the same in every tool. Does not import torch."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec

__all__ = ["final", "of_task", "run_name", "settings"]


def run_name(spec: RunSpec) -> str:
    """A name that says what a run is and that no other run has.

    >>> from undrift.experiments.spec import RunSpec
    >>> run_name(RunSpec(stream="my graphs/stream.toml", stream_sha256="ab"))
    'my-graphs-stream-toml_adr_seed0_...'
    """
    stream = "".join(c if c.isalnum() else "-" for c in spec.stream)
    return f"{stream}_{spec.method}_seed{spec.seed}_{spec.id}"


def settings(spec: RunSpec) -> dict[str, str | int | float | bool]:
    """What decides a run, flat: hyperparameters that are no plain number or text are JSON."""
    plain = {
        name: value if isinstance(value, str | int | float) else json.dumps(value)
        for name, value in spec.params.items()
    }
    about = {name: getattr(spec, name) for name in ("stream", "method", "seed", "protocol")}
    return {**{f"param.{name}": value for name, value in plain.items()}, **about}


def of_task(t: int, evaluation: Evaluation) -> dict[str, float]:
    """The measures after task t, which may lie before the last one of the evaluation."""
    found: dict[str, float] = {}
    for split, grades in evaluation.grades.items():
        found[f"{split}.a_t"] = grades.by_class.a_t[t]
        found[f"{split}.a_t_node"] = grades.by_node.a_t[t]
        found[f"{split}.newest_task"] = grades.by_class.rows[t][t]
        found[f"{split}.first_task"] = grades.by_class.rows[t][0]
    if t < len(evaluation.drift):
        found["drift"] = evaluation.drift[t]
    if t < len(evaluation.state_bytes):
        found["state_mb"] = evaluation.state_bytes[t] / 1e6
    return _finite(found)


def final(result: Result) -> dict[str, float]:
    """The measures of a finished run."""
    found: dict[str, float] = {}
    for split, graded in (("test", result.metrics), ("val", result.validation)):
        if graded is not None:
            by_class, by_node = graded.by_class.model_dump(), graded.by_node.model_dump()
            found |= {f"final.{split}.{name}": value for name, value in by_class.items()}
            found |= {f"final.{split}.{name}_node": value for name, value in by_node.items()}
    cost = result.cost
    found |= {f"cost.seconds_{phase}": spent for phase, spent in cost.seconds.items()}
    found["cost.state_mb"] = cost.state_mb
    if cost.peak_memory_mb is not None:
        found["cost.peak_memory_mb"] = cost.peak_memory_mb
    if result.drift and result.drift[-1] is not None:
        found["final.drift"] = result.drift[-1]
    return _finite(found)


def _finite(found: dict[str, float]) -> dict[str, float]:
    # a tool draws or stores other numbers wrongly, or refuses all of them for one
    return {name: value for name, value in found.items() if math.isfinite(value)}
