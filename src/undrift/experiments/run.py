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
from undrift.evaluation.protocols import (
    Split,
    check_gradable,
    check_returns,
    graded_batches,
    graded_nodes,
)
from undrift.experiments import checkpoint
from undrift.experiments.result import (
    Cost,
    Described,
    Graded,
    Result,
    Returning,
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


class UnsavedError(InputError):
    """A run that is finished and could not be written down: its `result` is all there is."""

    def __init__(self, why: object, result: Result) -> None:
        metrics = result.metrics.by_class.model_dump()
        numbers = ", ".join(f"{key} {value:.2f}" for key, value in metrics.items())
        super().__init__(f"{why} (the run itself was finished; by class: {numbers})")
        self.result = result


def prepare(spec: RunSpec) -> PreparedRun:
    """Make the learner and load the stream; the seed decides both.

    A metric of another package that cannot be loaded is noted here, before training.
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
    after_task: AfterTask = lambda t, so_far: None,
    checkpoints: bool = False,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Result:
    """Run and write `<out>/<id>/`: `split.npz`, `embedding.npz`, and `result.json` last.

    `embedding.npz` holds `first` and `last`, the base task's embeddings after the first and the
    last task in one plane (PCA, at most 1,000 nodes), and `labels`; only for learners with
    embeddings. With `checkpoints`, the state is written after every task but the last, and a run
    that was cut off goes on from there. A checkpoint that cannot be written is said to `warn`,
    once. Where the disk has no room for the result, it takes that of checkpoints which nobody is
    at; a result that cannot be written at all is in the `UnsavedError`.
    """
    spec, learner, stream = prepared.spec, prepared.learner, prepared.stream
    folder = result_path(spec, out).parent
    warned = False

    def each(t: int, evaluation: Evaluation) -> None:
        nonlocal warned
        if checkpoints and t + 1 < len(stream):
            try:
                checkpoint.save_checkpoint(folder, learner, evaluation)
            except InputError as error:
                if not warned:
                    warn(f"{error}; until then the run goes on without a checkpoint")
                warned = True
        after_task(t, evaluation)

    evaluation = evaluate(
        learner,
        stream,
        protocol=spec.protocol,
        splits=_splits(stream),
        progress=progress,
        after_task=each,
        so_far=checkpoint.load_checkpoint(folder, learner) if checkpoints else None,
    )
    result = _result(spec, stream, evaluation)
    try:
        _save(stream, evaluation, result, out)
    except InputError:
        checkpoint.drop_checkpoint(folder)
        checkpoint.make_room(out)
        try:
            _save(stream, evaluation, result, out)
        except InputError as error:
            raise UnsavedError(error, result) from error
    checkpoint.drop_checkpoint(folder)
    return result


def _splits(stream: TaskStream) -> tuple[Split, ...]:
    """Test and, where every task has some, validation nodes."""
    try:
        check_gradable(stream, ("val",))
    except InputError:
        return ("test",)
    return ("test", "val")


def _result(spec: RunSpec, stream: TaskStream, evaluation: Evaluation) -> Result:
    test, val = evaluation.grades["test"], evaluation.grades.get("val")
    seconds = dict(evaluation.seconds)
    packages = {name: version(name) for name in ("torch", "numpy", "scipy")}
    returning = Returning(
        batches=len(stream),
        classes=list(stream.arrived),
        nodes=list(graded_nodes(stream, "test")),
        graded=list(graded_batches(stream)),
        shares=list(test.by_class.shares),
    )
    return Result(
        spec=spec,
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
        versions={
            "undrift": undrift.__version__,
            **packages,
            "python": platform.python_version(),
        },
        provenance={
            "stand_in": False,
            **stream.provenance,
            "split_sha256": stream.saved_split().sha256,
        },
        imbalance=imbalance_of(stream),
        returning=returning if stream.returning else None,
        described=Described.of(spec.method),
    )


def _save(stream: TaskStream, evaluation: Evaluation, result: Result, out: str | Path) -> None:
    if evaluation.embeddings:
        path = result_path(result.spec, out).with_name("embedding.npz")
        write_atomically(path, _picture(stream, evaluation))
    save_result(result, out, split=stream.saved_split())


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
