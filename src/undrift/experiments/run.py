"""From a spec to its result."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass
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
from undrift.streams.file import is_stream_file, load_stream_file
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, silent

__all__ = ["PreparedRun", "prepare", "run"]


@dataclass(frozen=True)
class PreparedRun:
    """A run that can start: all its input was found good and its stream is loaded.

    `spec` is pinned to the content of its stream (see `RunSpec`).
    """

    spec: RunSpec
    learner: Learner
    stream: TaskStream

    def run(self, *, progress: Progress = silent, after_task: AfterTask | None = None) -> Result:
        """Evaluate the learner and say what it cost; it can be done once."""
        return self.result(self.evaluate(progress=progress, after_task=after_task))

    def evaluate(
        self,
        *,
        progress: Progress = silent,
        after_task: AfterTask | None = None,
        so_far: Evaluation | None = None,
    ) -> Evaluation:
        """Evaluate the learner, from the start or from where it was cut off."""
        blind = not _has_validation(self.stream)
        splits: tuple[Split, ...] = ("test",) if blind else ("test", "val")
        return evaluate(
            self.learner,
            self.stream,
            protocol=self.spec.protocol,
            splits=splits,
            progress=progress,
            after_task=after_task,
            so_far=so_far,
        )

    def result(self, evaluation: Evaluation) -> Result:
        """What is written about an evaluation of the whole stream."""
        return _result(self.spec, self.stream, evaluation)


def prepare(spec: RunSpec) -> PreparedRun:
    """Make the learner and load the stream, by its name or from its file."""
    learner = _learner(spec)  # first: a wrong parameter should not wait for the data
    if not is_stream_file(spec.stream):
        return PreparedRun(spec, learner, load_stream(spec.stream, seed=spec.seed))
    stream = load_stream_file(spec.stream, seed=spec.seed)
    return PreparedRun(spec.pin(stream.provenance["content_sha256"]), learner, stream)


def run(
    spec: RunSpec, *, progress: Progress = silent, after_task: AfterTask | None = None
) -> Result:
    """Load the stream, make the learner, evaluate it, and say what it cost.

    The seed decides both the stream's split and the learner. Test and, where every task has
    some, validation nodes are graded in the same pass. Nothing is written.
    """
    return prepare(spec).run(progress=progress, after_task=after_task)


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
            state_bytes=list(evaluation.state_bytes),
        ),
        versions=_versions(),
        provenance={
            "stand_in": False,
            **stream.provenance,
            "split_sha256": stream.saved_split().sha256,
        },
    )


def _metrics(grades: Grades) -> Graded[Metrics]:
    return Graded[Metrics](by_class=Metrics.of(grades.by_class), by_node=Metrics.of(grades.by_node))


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "numpy", "scipy")}
    return {"undrift": undrift.__version__, **packages, "python": platform.python_version()}
