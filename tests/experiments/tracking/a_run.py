"""A run of two tasks for trackers to follow."""

from __future__ import annotations

from tests.experiments.made import ROWS, made
from undrift.evaluation.loop import Evaluation, Grades
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.spec import RunSpec
from undrift.experiments.tracking import Tracker, Trackers

SPEC = RunSpec(method="adr", stream="cs-cl", params={"gamma": 0.1, "hidden": (8, 8)})


def so_far(tasks: int) -> Evaluation:
    """What is known after so many tasks."""
    matrix = AccuracyMatrix(ROWS[:tasks])
    return Evaluation({"test": Grades(matrix, matrix)}, drift=(0.0, 0.5)[:tasks])


def follow(tracker: Tracker | Trackers, *, first: int = 0) -> None:
    """Let a tracker follow the run, which goes on with task `first`."""
    told = tracker if isinstance(tracker, Trackers) else Trackers([("this", tracker)])
    with told.following(SPEC):
        for t in range(first, 2):
            told.after_task(t, so_far(t + 1))
        spec = SPEC.model_dump()
        told.finish(made(**spec))
    assert told.failures == []
