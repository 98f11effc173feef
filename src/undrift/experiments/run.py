"""From a spec to its result, and all that a run leaves on disk."""

from __future__ import annotations

import io
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

import undrift
from undrift.errors import InputError
from undrift.evaluation.cost import MEGABYTE
from undrift.evaluation.drift import principal_plane
from undrift.evaluation.loop import AfterTask, Evaluation, evaluate
from undrift.evaluation.metrics import METRICS
from undrift.evaluation.protocols import check_gradable
from undrift.evaluation.steps import check_returns, graded_batches, graded_nodes
from undrift.experiments.checkpoint import load_checkpoint, save_checkpoint
from undrift.experiments.leftovers import drop_checkpoint, make_room
from undrift.experiments.result import (
    Cost,
    Described,
    Graded,
    Result,
    Returning,
    embedding_path,
    graded_metrics,
    result_path,
    save_result,
)
from undrift.experiments.spec import RunSpec
from undrift.learners.base import Learner
from undrift.learners.registry import make_learner
from undrift.storage.files import write_atomically
from undrift.streams.arrange import arrange
from undrift.streams.arrival import BY_CLASS
from undrift.streams.benchmarks import load_stream
from undrift.streams.file import is_stream_file, load_stream_file
from undrift.streams.stream import TaskStream
from undrift.streams.summary import imbalance_of
from undrift.typing import Progress, silent

_SHOWN = 1000  # points of a picture: more cannot be told apart


@dataclass(frozen=True)
class PreparedRun:
    """A run that can start, once: its input was found good, its stream loaded, its spec pinned."""

    spec: RunSpec
    learner: Learner
    stream: TaskStream

    def evaluate(
        self,
        *,
        progress: Progress = silent,
        after_task: AfterTask | None = None,
        so_far: Evaluation | None = None,
    ) -> Evaluation:
        """Evaluate on test and, where every task has some, validation nodes."""
        return evaluate(
            self.learner,
            self.stream,
            protocol=self.spec.protocol,
            splits=("test", "val") if _has_validation(self.stream) else ("test",),
            progress=progress,
            after_task=after_task,
            so_far=so_far,
        )

    def result(self, evaluation: Evaluation) -> Result:
        """What is written about an evaluation of the whole stream."""
        test, val = evaluation.grades["test"], evaluation.grades.get("val")
        seconds = dict(evaluation.seconds)
        return Result(
            spec=self.spec,
            matrix=Graded[list[list[float]]](
                by_class=[list(row) for row in test.by_class.rows],
                by_node=[list(row) for row in test.by_node.rows],
            ),
            metrics=graded_metrics(test.by_class, test.by_node),
            validation=graded_metrics(val.by_class, val.by_node) if val else None,
            drift=[value if math.isfinite(value) else None for value in evaluation.drift],
            cost=Cost(
                seconds=seconds | {"total": sum(seconds.values())},
                peak_memory_mb=evaluation.peak_memory_mb,
                state_mb=evaluation.state_bytes[-1] / MEGABYTE,
                threads=torch.get_num_threads(),
                state_bytes=list(evaluation.state_bytes),
            ),
            versions=_versions(),
            provenance={
                "stand_in": False,
                **self.stream.provenance,
                "split_sha256": self.stream.saved_split().sha256,
            },
            imbalance=imbalance_of(self.stream),
            returning=_returning(self.stream, evaluation),
            described=Described.of(self.spec.method),
        )


class UnsavedError(InputError):
    """A run that is finished and could not be written down: its `result` is all there is."""

    def __init__(self, why: object, result: Result) -> None:
        metrics = result.metrics.by_class.model_dump()
        numbers = ", ".join(f"{key} {value:.2f}" for key, value in metrics.items())
        super().__init__(f"{why} (the run itself was finished; by class: {numbers})")
        self.result = result


def prepare(spec: RunSpec) -> PreparedRun:
    """Make the learner and load the stream; the seed decides both.

    Metrics of other packages are loaded here as well: one that cannot be is noted before training.
    """
    len(METRICS)
    # first: a wrong parameter should not wait for the data
    learner = make_learner(spec.method, seed=spec.seed, device=spec.device, **spec.params)
    check_returns(learner, returning=spec.arrive != BY_CLASS)
    if is_stream_file(spec.stream):
        stream = load_stream_file(spec.stream, seed=spec.seed)
        spec = spec.pin(stream.provenance["content_sha256"])
    else:
        stream = load_stream(spec.stream, seed=spec.seed)
    return PreparedRun(spec, learner, arrange(stream, spec.arrive))


def execute(
    prepared: PreparedRun,
    out: str | Path,
    *,
    progress: Progress = silent,
    after_task: AfterTask | None = None,
    checkpoints: bool = False,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Result:
    """Run and write `<out>/<id>/`: `split.npz`, `embedding.npz`, and `result.json` last.

    `embedding.npz` holds `first` and `last`, the base task's embeddings after the first and the
    last task in one plane (PCA, at most 1,000 nodes), and `labels`; only for learners with
    embeddings. With `checkpoints`, the state is written after every task but the last, and a run
    that was cut off goes on from there; the file is removed once the result is there. One that
    cannot be written is said to `warn`, once, and the run goes on. Where the disk has no room for
    the result, it takes that of checkpoints which nobody is at; a result that cannot be written
    at all is in the `UnsavedError`.
    """
    folder = result_path(prepared.spec, out).parent
    so_far = load_checkpoint(folder, prepared.learner) if checkpoints else None
    warned: list[str] = []

    def each(t: int, evaluation: Evaluation) -> None:
        if checkpoints and t + 1 < len(prepared.stream):
            try:
                save_checkpoint(folder, prepared.learner, evaluation)
            except InputError as error:
                if not warned:
                    warn(f"{error}; until then the run goes on without a checkpoint")
                warned.append(str(error))
        if after_task is not None:
            after_task(t, evaluation)

    evaluation = prepared.evaluate(progress=progress, after_task=each, so_far=so_far)
    result = prepared.result(evaluation)
    try:
        _save(prepared, evaluation, result, out)
    except InputError:
        drop_checkpoint(folder)
        make_room(out)
        try:
            _save(prepared, evaluation, result, out)
        except InputError as error:
            raise UnsavedError(error, result) from error
    drop_checkpoint(folder)
    return result


def _save(prepared: PreparedRun, evaluation: Evaluation, result: Result, out: str | Path) -> None:
    if evaluation.embeddings:
        path = embedding_path(result_path(prepared.spec, out))
        write_atomically(path, _picture(prepared.stream, evaluation))
    save_result(result, out, split=prepared.stream.saved_split())


def _returning(stream: TaskStream, evaluation: Evaluation) -> Returning | None:
    if not stream.returning:
        return None
    return Returning(
        batches=len(stream),
        classes=list(stream.arrived),
        nodes=list(graded_nodes(stream, "test")),
        graded=list(graded_batches(stream)),
        shares=list(evaluation.grades["test"].by_class.shares),
    )


def _picture(stream: TaskStream, evaluation: Evaluation) -> bytes:
    first, last = evaluation.embeddings
    labels = stream.graph.labelled()[stream.nodes([0])].cpu()
    step = -(-first.shape[0] // _SHOWN)
    before, after = (
        x.numpy().astype(np.float32) for x in principal_plane(first[::step], last[::step])
    )
    file = io.BytesIO()
    np.savez_compressed(file, first=before, last=after, labels=labels[::step].numpy())
    return file.getvalue()


def _has_validation(stream: TaskStream) -> bool:
    try:
        check_gradable(stream, ("val",))
    except InputError:
        return False
    return True


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "numpy", "scipy")}
    return {"undrift": undrift.__version__, **packages, "python": platform.python_version()}
