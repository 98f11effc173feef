"""What trackers record: names and numbers, the same in every tool. Does not import torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from undrift.experiments.flat import each_metric, flat, plain_params

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec


def run_name(spec: RunSpec) -> str:
    """A name that says what a run is and that no other run has.

    >>> from undrift.experiments.spec import RunSpec
    >>> run_name(RunSpec(stream="my graphs/stream.toml", method="adr", stream_sha256="ab"))
    'my-graphs-stream-toml_adr_seed0_...'
    """
    stream = "".join(c if c.isalnum() else "-" for c in spec.stream)
    return f"{stream}_{spec.method}_seed{spec.seed}_{spec.id}"


def settings(spec: RunSpec) -> dict[str, str | int | float | bool]:
    """What decides a run, flat: hyperparameters that are no plain number or text are JSON."""
    plain = {
        f"param.{name}": value if isinstance(value, str | int | float) else json.dumps(value)
        for name, value in plain_params(spec).items()
    }
    return plain | {name: getattr(spec, name) for name in ("stream", "method", "seed", "protocol")}


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
    row = flat(result)
    found: dict[str, Any] = {
        f"final.{split}.{key}{'_node' if by == 'node' else ''}": value
        for (split, by), key, value in each_metric(result)
    }
    found |= {f"cost.seconds_{phase}": spent for phase, spent in result.cost.seconds.items()}
    found |= {f"cost.{name}": row[name] for name in ("state_mb", "peak_memory_mb")}
    found["final.drift"] = row["drift_last"]
    return _finite(found)


def _finite(found: Mapping[str, Any]) -> dict[str, float]:
    # a tool draws or stores other numbers wrongly, or refuses all of them for one
    return {n: value for n, value in found.items() if value is not None and math.isfinite(value)}
