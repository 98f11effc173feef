"""From a spec to its result."""

from __future__ import annotations

import math
import platform
from importlib.metadata import version

import torch

import undrift
from undrift.errors import InputError
from undrift.evaluation.cost import MEGABYTE, threads
from undrift.evaluation.loop import AfterTask, Evaluation, Grades, evaluate
from undrift.evaluation.protocols import Split, check_gradable
from undrift.experiments.params import check_params
from undrift.experiments.result import Cost, Graded, Metrics, Result
from undrift.experiments.spec import RunSpec
from undrift.learners.base import Learner
from undrift.learners.registry import make_learner
from undrift.streams.benchmarks import load_stream
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, silent

__all__ = ["run"]


def run(
    spec: RunSpec, *, progress: Progress = silent, after_task: AfterTask | None = None
) -> Result:
    """Load the stream, make the learner, evaluate it, and say what it cost.

    The seed decides both the stream's split and the learner. Test and, where every task has
    some, validation nodes are graded in the same pass. Nothing is written.
    """
    learner = _learner(spec)  # first: a wrong parameter should not wait for the data
    stream = load_stream(spec.stream, seed=spec.seed)
    splits: tuple[Split, ...] = ("test", "val") if _has_validation(stream) else ("test",)
    evaluation = evaluate(
        learner,
        stream,
        protocol=spec.protocol,
        splits=splits,
        progress=progress,
        after_task=after_task,
    )
    return _result(spec, stream, evaluation)


def _learner(spec: RunSpec) -> Learner:
    _check_device(spec.device)
    check_params(spec.method, spec.params)
    return make_learner(spec.method, seed=spec.seed, device=spec.device, **spec.params)


def _check_device(device: str) -> None:
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise InputError(f"unknown device {device!r}; choose cpu or cuda") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {device!r} was asked for but no CUDA GPU is usable; choose cpu")


def _has_validation(stream: TaskStream) -> bool:
    try:
        check_gradable(stream, ("val",))
    except InputError:
        return False
    return True


def _result(spec: RunSpec, stream: TaskStream, evaluation: Evaluation) -> Result:
    test, validation = evaluation.grades["test"], evaluation.grades.get("val")
    seconds = dict(evaluation.seconds)
    return Result(
        spec=spec,
        matrix=Graded[list[list[float]]](
            by_class=[list(row) for row in test.by_class.rows],
            by_node=[list(row) for row in test.by_node.rows],
        ),
        metrics=_metrics(test),
        validation=None if validation is None else _metrics(validation),
        drift=[value if math.isfinite(value) else None for value in evaluation.drift],
        cost=Cost(
            seconds=seconds | {"total": sum(seconds.values())},
            peak_memory_mb=evaluation.peak_memory_mb,
            state_mb=evaluation.state_bytes[-1] / MEGABYTE,
            threads=threads(),
        ),
        versions=_versions(),
        provenance=dict(stream.provenance) | {"stand_in": stream.stand_in},
    )


def _metrics(grades: Grades) -> Graded[Metrics]:
    return Graded[Metrics](by_class=Metrics.of(grades.by_class), by_node=Metrics.of(grades.by_node))


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "numpy", "scipy")}
    return {"undrift": undrift.__version__, **packages, "python": platform.python_version()}
