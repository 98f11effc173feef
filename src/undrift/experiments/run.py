"""From a spec to its result, and all that a run leaves on disk."""

from __future__ import annotations

import io
import math
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import torch

import undrift
from undrift.errors import InputError
from undrift.evaluation.cost import MEGABYTE
from undrift.evaluation.drift import principal_plane
from undrift.evaluation.loop import AfterTask, Evaluation, Grades
from undrift.evaluation.metrics import METRICS
from undrift.evaluation.protocols import check_fits, check_returns, graded_batches, graded_nodes
from undrift.experiments import checkpoint
from undrift.experiments import result as results
from undrift.experiments.result import Graded, Result, graded_metrics, result_path, save_result
from undrift.experiments.spec import RunSpec
from undrift.learners.base import Learner
from undrift.learners.registry import make_learner
from undrift.storage.files import write_atomically
from undrift.streams.arrival import BY_CLASS
from undrift.streams.benchmarks import load_stream
from undrift.streams.file import is_stream_file, load_stream_file
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, silent

_SHOWN = 1000  # points of a picture: more cannot be distinguished


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

    >>> ready = prepare(RunSpec(method="sgc-ridge", seed=2))
    >>> ready.learner.name, ready.stream.name
    ('sgc-ridge', 'synthetic')
    """
    len(METRICS)  # one of another package that cannot be loaded is noted before training
    # first: a wrong parameter should not wait for the data
    learner = make_learner(spec.method, seed=spec.seed, device=spec.device, **spec.params)
    check_returns(learner, returning=spec.arrive != BY_CLASS)
    if is_stream_file(spec.stream):
        stream = load_stream_file(spec.stream, seed=spec.seed)
        spec = spec.pin(stream.provenance["content_sha256"])
    else:
        stream = load_stream(spec.stream, seed=spec.seed)
    check_fits(learner, stream)
    return PreparedRun(spec, learner, stream.arranged(spec.arrive))


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
    last task in one plane (PCA, at most 1,000 nodes), and `labels`. With `checkpoints`, the state
    is written after every task but the last, and a run that was cut off goes on from there. Where
    the disk is full, the result takes the space of checkpoints which nobody is at; a result
    that cannot be written at all is in the `UnsavedError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as runs:
    ...     execute(prepare(RunSpec(method="propagation")), runs).value("a_avg") > 90
    True
    """
    spec, learner, stream = prepared.spec, prepared.learner, prepared.stream
    folder = result_path(spec, out).parent
    warn_once = cache(warn)

    def each(t: int, evaluation: Evaluation) -> None:
        if checkpoints and t + 1 < len(stream):
            try:
                checkpoint.save_checkpoint(folder, learner, evaluation)
            except InputError as error:
                warn_once(f"{error}; until then the run goes on without a checkpoint")
        after_task(t, evaluation)

    evaluation: Evaluation = resolve_name(stream.evaluator)(
        learner,
        stream,
        protocol=spec.protocol,
        open_world=spec.open_world,
        progress=progress,
        after_task=each,
        so_far=checkpoint.load_checkpoint(folder, learner) if checkpoints else None,
    )
    result = _result(spec, stream, evaluation)
    try:
        _save(stream, evaluation, result, out)
    except InputError:
        checkpoint.drop_checkpoint(folder)
        checkpoint.free_space(out)
        try:
            _save(stream, evaluation, result, out)
        except InputError as error:
            raise UnsavedError(error, result) from error
    checkpoint.drop_checkpoint(folder)
    return result


def _result(spec: RunSpec, stream: TaskStream, evaluation: Evaluation) -> Result:
    test, val = evaluation.grades.get("test", Grades()), evaluation.grades.get("val")
    by_class, by_node = ([*map(list, each.rows)] for each in (test.by_class, test.by_node))
    split = stream.saved_split()
    written = {} if split is None else {"split_sha256": split.sha256}
    return Result(
        spec=spec,
        matrix=Graded[list[list[float]]](by_class=by_class, by_node=by_node),
        metrics=graded_metrics(test.by_class, test.by_node),
        validation=graded_metrics(val.by_class, val.by_node) if val else None,
        drift=_finite(evaluation.drift),
        cost=results.Cost(
            seconds={**evaluation.seconds, "total": sum(evaluation.seconds.values())},
            peak_memory_mb=evaluation.peak_memory_mb,
            state_mb=evaluation.state_bytes[-1] / MEGABYTE,
            threads=torch.get_num_threads(),
            state_bytes=list(evaluation.state_bytes),
        ),
        versions={
            "undrift": undrift.__version__,
            **{name: version(name) for name in ("torch", "numpy", "scipy")},
            "python": platform.python_version(),
        },
        provenance={"stand_in": False, **stream.provenance, **written},
        imbalance=stream.imbalance(),
        returning=results.Returning(
            batches=len(stream),
            classes=list(stream.arrived),
            nodes=list(graded_nodes(stream, "test")),
            graded=list(graded_batches(stream)),
            shares=list(test.by_class.shares),
        )
        if stream.returning
        else None,
        described=results.Described.of(spec.method),
        series={key: _finite(values) for key, values in evaluation.series.items()},
    )


def _finite(values: Iterable[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def _save(stream: TaskStream, evaluation: Evaluation, result: Result, out: str | Path) -> None:
    if evaluation.embeddings:
        first, last = evaluation.embeddings
        step = -(-first.shape[0] // _SHOWN)
        labels = stream.graph.labelled()[stream.nodes([0])].cpu()[::step].numpy()
        plane = principal_plane(first[::step], last[::step])
        before, after = (x.numpy().astype(np.float32) for x in plane)
        file = io.BytesIO()
        np.savez_compressed(file, first=before, last=after, labels=labels)
        path = result_path(result.spec, out).with_name("embedding.npz")
        write_atomically(path, file.getvalue())
    save_result(result, out, split=stream.saved_split())
