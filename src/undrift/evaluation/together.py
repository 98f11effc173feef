"""Many learners over one stream, side by side: what they have in common is done once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from undrift.errors import InputError
from undrift.evaluation.loop import grade, with_accuracies
from undrift.evaluation.protocols import Exam, Protocol, Split, check_gradable, exams
from undrift.evaluation.steps import Grades, check_returns, empty_grades, graded_batches
from undrift.learners.base import Learner
from undrift.sharing import sharing
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, silent


@dataclass
class Outcome:
    """What came of one learner: its grades, or the error that stopped it."""

    grades: dict[Split, Grades] = field(default_factory=dict)
    error: Exception | None = None


def evaluate_together(
    learners: Sequence[Learner],
    stream: TaskStream,
    *,
    protocol: Protocol = "global",
    splits: Sequence[Split] = ("val",),
    progress: Progress = silent,
) -> list[Outcome]:
    """Grade many learners as `evaluate` grades each; they share a cache while they work.

    All observe task t before any observes task t + 1. One that fails is left out from there on.
    Memory: the state of all learners at once, less the tensors they share.
    """
    if not splits:
        raise InputError("evaluate_together needs at least one split; pass splits=('val',)")
    check_gradable(stream, splits)
    for learner in learners:
        check_returns(learner, returning=stream.returning)
    outcomes = [Outcome(empty_grades(stream, splits)) for _ in learners]
    graded = graded_batches(stream)
    built: dict[int, Exam] = {}
    total = len(stream) * len(learners)
    for t in range(len(stream)):
        task, done = stream.task(t), t * len(learners)
        with sharing():
            for k, (learner, outcome) in enumerate(zip(learners, outcomes, strict=True)):
                progress("learn", done + k, total)
                if outcome.error is None:
                    try:
                        learner.observe(stream.until(t) if learner.sees_all else task)
                    except Exception as error:
                        outcome.error = error
        if t not in graded:
            continue
        prepared = list(exams(stream, t, protocol, splits, built=built))
        with sharing():
            for k, (learner, outcome) in enumerate(zip(learners, outcomes, strict=True)):
                progress("grade", done + k, total)
                if outcome.error is None:
                    accuracies = grade(learner, stream, prepared, silent, 1)
                    outcome.grades = with_accuracies(outcome.grades, accuracies, stream, t)
    progress("grade", total, total)
    return outcomes
