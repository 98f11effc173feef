"""After which batches a stream is graded, and what a row of its accuracy matrix is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.protocols import Split
from undrift.learners.base import Learner
from undrift.streams.stream import TaskStream

MOST = 20
"""A stream of many small batches is graded so many times, evenly over its batches."""


@dataclass(frozen=True)
class Grades:
    """The accuracy matrices of a split: every class of a part weighs the same, or every node."""

    by_class: AccuracyMatrix = field(default_factory=AccuracyMatrix)
    by_node: AccuracyMatrix = field(default_factory=AccuracyMatrix)


def graded_batches(stream: TaskStream) -> tuple[int, ...]:
    """The batches after which a stream is graded, the last among them.

    Every task where no class comes back; else every batch, or `MOST` of them.
    """
    batches = len(stream)
    if not stream.returning or batches <= MOST:
        return tuple(range(batches))
    return tuple(-(-batches * k // MOST) - 1 for k in range(1, MOST + 1))


def share_of_nodes(stream: TaskStream, t: int) -> float | None:
    """The share of the training nodes that arrived since the grading before that of batch t.

    None where no class comes back.
    """
    if not stream.returning:
        return None
    before = max((batch for batch in graded_batches(stream) if batch < t), default=-1)
    arrived = stream.task_of[stream.train & (stream.task_of >= 0)]
    return int(((arrived > before) & (arrived <= t)).sum()) / arrived.numel()


def empty_grades(stream: TaskStream, splits: Sequence[Split]) -> dict[Split, Grades]:
    """What a run over the stream starts with: matrices without a row."""
    if not stream.returning:
        return {split: Grades() for split in splits}
    return {
        split: Grades(
            AccuracyMatrix(parts="classes"),
            AccuracyMatrix(parts="classes", weights=graded_nodes(stream, split)),
        )
        for split in splits
    }


def graded_nodes(stream: TaskStream, split: Split) -> tuple[int, ...]:
    """How many nodes of a split every class has, in the order in which the classes arrive."""
    labels = stream.graph.labelled()[getattr(stream, split)]
    return tuple(int((labels == c).sum()) for c in stream.arrived)


def parts_of(stream: TaskStream) -> tuple[tuple[int, ...], ...]:
    """The classes of every part: those of a task, or each by itself where classes come back."""
    return tuple((c,) for c in stream.arrived) if stream.returning else stream.classes


def parts_seen(stream: TaskStream, t: int) -> int:
    """How many parts have been seen after batch t."""
    return len(stream.seen(t)) if stream.returning else t + 1


def check_returns(learner: Learner, *, returning: bool) -> None:
    """Reject a learner that cannot learn a class again, where classes come back."""
    if returning:
        learner._must("returns", "learn a class that comes back")
