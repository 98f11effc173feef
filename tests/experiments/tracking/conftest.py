"""A run for trackers to follow."""

from __future__ import annotations

from typing import Any

import pytest

from undrift.evaluation.loop import Evaluation
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.steps import Grades
from undrift.experiments.result import Cost, Graded, Metrics, Result
from undrift.experiments.spec import RunSpec

ROWS = [[90.0], [70.0, 80.0]]
SPEC = RunSpec(method="adr", stream="cs-cl", params={"gamma": 0.1, "hidden": (8, 8)})


def so_far(tasks: int) -> Evaluation:
    matrix = AccuracyMatrix(ROWS[:tasks])
    return Evaluation({"test": Grades(matrix, matrix)}, drift=(0.0, 0.5)[:tasks])


def result() -> Result:
    metrics = Metrics.of(AccuracyMatrix(ROWS))
    return Result(
        spec=SPEC,
        matrix=Graded[list[list[float]]](by_class=ROWS, by_node=ROWS),
        metrics=Graded[Metrics](by_class=metrics, by_node=metrics),
        validation=None,
        drift=[0.0, 0.5],
        cost=Cost(seconds={"total": 1.5}, peak_memory_mb=None, state_mb=0.1, threads=1),
        versions={},
        provenance={},
    )


class Run:
    """A run of two tasks."""

    spec = SPEC

    def result(self) -> Result:
        """What came of it."""
        return result()

    def follow(self, tracker: Any, *, first: int = 0) -> None:
        """Let a tracker follow the run, which goes on with task `first`."""
        tracker.start(SPEC)
        for t in range(first, 2):
            tracker.after_task(t, so_far(t + 1))
        tracker.finish(result())
        assert tracker.failures == []


@pytest.fixture
def a_run() -> Run:
    """A run of two tasks."""
    return Run()
