"""A run with all it leaves on disk: the result, the split, the picture of its drift."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from undrift.evaluation.drift import principal_plane
from undrift.evaluation.loop import AfterTask, Evaluation
from undrift.experiments.checkpoint import drop_checkpoint, load_checkpoint, save_checkpoint
from undrift.experiments.result import Result, result_path, save_result
from undrift.experiments.run import PreparedRun
from undrift.storage.files import write_atomically
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, silent

__all__ = ["embedding_path", "execute"]

_SHOWN = 1000  # points of a picture: more cannot be told apart


def embedding_path(result: str | Path) -> Path:
    """Where the picture of the base task's embeddings lies: `embedding.npz` beside the result."""
    return Path(result).with_name("embedding.npz")


def execute(
    prepared: PreparedRun,
    out: str | Path,
    *,
    progress: Progress = silent,
    after_task: AfterTask | None = None,
    checkpoints: bool = False,
) -> Result:
    """Run and write `<out>/<id>/`: `split.npz`, `embedding.npz`, and `result.json` last.

    `embedding.npz` holds `first` and `last`, the base task's embeddings after the first and the
    last task in one plane (PCA, at most 1,000 nodes), and `labels`; only for learners with
    embeddings. With `checkpoints`, the state is written after every task but the last, and a run
    that was cut off goes on from there; the file is removed once the result is there.
    """
    path = result_path(prepared.spec, out)
    folder = path.parent
    so_far = load_checkpoint(folder, prepared.learner) if checkpoints else None

    def each(t: int, evaluation: Evaluation) -> None:
        if checkpoints and t + 1 < len(prepared.stream):
            save_checkpoint(folder, prepared.learner, evaluation)
        if after_task is not None:
            after_task(t, evaluation)

    evaluation = prepared.evaluate(progress=progress, after_task=each, so_far=so_far)
    result = prepared.result(evaluation)
    if evaluation.embeddings:
        write_atomically(embedding_path(path), _picture(prepared.stream, evaluation))
    save_result(result, out, split=prepared.stream.saved_split())
    drop_checkpoint(folder)
    return result


def _picture(stream: TaskStream, evaluation: Evaluation) -> bytes:
    first, last = evaluation.embeddings
    assert stream.graph.labels is not None  # noqa: S101  # a stream has labels
    labels = stream.graph.labels[stream.nodes([0])].cpu()
    step = -(-first.shape[0] // _SHOWN)
    before, after = principal_plane(first[::step], last[::step])
    file = io.BytesIO()
    np.savez_compressed(
        file,
        first=before.numpy().astype(np.float32),
        last=after.numpy().astype(np.float32),
        labels=labels[::step].numpy(),
    )
    return file.getvalue()
