"""The only loop over tasks: observe, examine, grade; for one learner, or many side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from undrift.analytic.buffers import used_again
from undrift.errors import InputError, not_installed
from undrift.evaluation.cost import PhaseClock, peak_memory_mb, reset_peak_memory
from undrift.evaluation.drift import Embeds, relative_drift
from undrift.evaluation.matrix import AccuracyMatrix, class_accuracy, node_accuracy
from undrift.evaluation.protocols import (
    Exam,
    Protocol,
    Split,
    check_gradable,
    check_returns,
    exams,
    graded_batches,
    graded_nodes,
    share_of_nodes,
)
from undrift.formatting import counted
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.sharing import sharing
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, silent


@dataclass(frozen=True)
class Grades:
    """The accuracy matrices of a split: every class of a part weighs the same, or every node."""

    by_class: AccuracyMatrix = field(default_factory=AccuracyMatrix)
    by_node: AccuracyMatrix = field(default_factory=AccuracyMatrix)


@dataclass(frozen=True)
class Evaluation:
    """What came of running a learner over a stream, or over its first tasks.

    A step is a task, or where classes come back a batch after which was graded
    (`graded_batches`). `drift[t]` is the relative drift of the base task's embeddings between
    the learner after step 0 and after step t (empty if the learner has no `embed`),
    `state_bytes[t]` the size of its state after step t. `seconds` are per phase: `prepare` makes
    the task graph, `learn` is the part of `observe` under no phase of the learner's own,
    `evaluate` predicts, grades and measures drift. `embeddings` are those of the base task after
    step 0 and after the last.
    """

    grades: Mapping[Split, Grades]
    drift: tuple[float, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_memory_mb: float | None = None
    state_bytes: tuple[int, ...] = ()
    embeddings: tuple[Tensor, ...] = ()

    @property
    def tasks(self) -> int:
        """How many steps were learned and graded."""
        return len(self.state_bytes)

    @property
    def by_class(self) -> AccuracyMatrix:
        """Class accuracy on the first split asked for."""
        return next(iter(self.grades.values())).by_class

    @property
    def by_node(self) -> AccuracyMatrix:
        """Node accuracy on the first split asked for."""
        return next(iter(self.grades.values())).by_node

    def __repr__(self) -> str:
        matrix, told = self.by_class, [counted(self.tasks, "task")]
        if matrix.parts == "classes":
            told = [counted(self.tasks, "batch", "batches")]
        if matrix.rows:
            lost = matrix.forgetting if matrix.parts == "tasks" else matrix.class_forgetting
            told += [f"A_avg {matrix.a_avg:.1f}", f"A_f {matrix.a_f:.1f}", f"forgetting {lost:.1f}"]
        return f"Evaluation({', '.join(told)})"

    def table(self) -> str:
        """The accuracy matrix by class in percent, a row per step, with A_t at its end.

        Columns are tasks (T0, T1, ...), or where classes come back classes (C0, C1, ...) in the
        order of their arrival, with a row per step (S0, S1, ...).
        """
        matrix = self.by_class
        columns = max(map(len, matrix.rows), default=0)
        part, step = ("C", "S") if matrix.parts == "classes" else ("T", "T")
        lines = [["after", *(f"{part}{i}" for i in range(columns)), "A_t"]]
        for t, (row, mean) in enumerate(zip(matrix.rows, matrix.a_t, strict=True)):
            empty = [""] * (columns - len(row))
            lines.append([f"{step}{t}", *(f"{a:.1f}" for a in row), *empty, f"{mean:.1f}"])
        return "\n".join(f"{head:5}" + "".join(f"{c:>6}" for c in rest) for head, *rest in lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of A_t after each step, written to `path` if one is given."""
        try:
            from matplotlib.figure import Figure
            from matplotlib.ticker import MaxNLocator
        except ImportError as error:
            raise not_installed("figures need matplotlib", "figures") from error
        figure = Figure(figsize=(5, 3), layout="constrained")
        axes = figure.subplots()
        axes.plot(range(1, self.tasks + 1), self.by_class.a_t, marker="o")
        axes.set(xlabel="step", ylabel="A_t, percent", ylim=(0, 100))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if path is not None:
            figure.savefig(path)
        return figure


AfterTask = Callable[[int, Evaluation], None]
"""`after_task(t, so_far)`: called when task (batch) t has been learned and graded."""


@used_again()
def evaluate(
    learner: Learner,
    stream: TaskStream,
    *,
    protocol: Protocol = "global",
    splits: Sequence[Split] = ("test",),
    progress: Progress = silent,
    after_task: AfterTask | None = None,
    so_far: Evaluation | None = None,
) -> Evaluation:
    """Let a learner observe the tasks of a stream one by one, and grade it after each.

    A stream of many batches where classes come back is graded after some of them
    (`graded_batches`); a learner that cannot learn a class again is refused. Each exam is
    predicted once and graded on every split of `splits`. The learner is changed: it ends having
    observed the whole stream. What `after_task` takes is in no phase. With `so_far`, an
    evaluation that was cut off goes on, of a learner that has observed the tasks in it.

    Cost: the learner's own, plus one prediction over all nodes seen so far per task.

    >>> from undrift import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> done = evaluate(Propagation(), tiny_stream())
    >>> [len(row) for row in done.grades["test"].by_class.rows]  # after task t, tasks 0 to t
    [1, 2, 3]
    """
    empty = _empty_grades([learner], stream, splits)
    clock = PhaseClock(progress, device=learner.device)
    clock.enter("prepare")
    stream = stream.to(learner.device)  # graphs are cut and normalised where they are used
    so_far = so_far or Evaluation(empty)
    graded = graded_batches(stream)
    clock.seconds.update(so_far.seconds)
    base: Graph | None = None
    built: dict[int, Exam] = {}
    reset_peak_memory()
    for t in range(graded[so_far.tasks - 1] + 1 if so_far.tasks else 0, len(stream)):
        clock.enter("prepare")
        task = stream.until(t) if learner.sees_all else stream.task(t)
        clock.enter("learn")
        learner.observe(task, progress=clock)
        del task  # observed: not even the evaluation may keep its data in memory
        if t not in graded:
            continue
        learner.settle(progress=clock)
        prepared = exams(stream, t, protocol, splits, built=built)
        total = 1 if protocol == "global" else t + 1
        accuracies = grade(learner, stream, prepared, clock, total)
        embeddings, drift = so_far.embeddings, so_far.drift
        if isinstance(learner, Embeds):
            base = _base_task(stream) if base is None else base
            now = learner.embed(base).detach().cpu().clone()
            embeddings = (embeddings[0] if embeddings else now, now)
            drift = (*drift, relative_drift(*embeddings))
        kept = learner.nbytes()
        clock.stop()
        peak = peak_memory_mb()
        so_far = Evaluation(
            grades=_with_accuracies(so_far.grades, accuracies, stream, t),
            drift=drift,
            seconds=dict(clock.seconds),
            peak_memory_mb=None if peak is None else max(peak, so_far.peak_memory_mb or 0.0),
            state_bytes=(*so_far.state_bytes, kept),
            embeddings=embeddings,
        )
        if after_task is not None:
            after_task(t, so_far)
    return so_far


@dataclass
class Outcome:
    """What came of one of several learners: its grades, or the error that stopped it."""

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
    """Grade many learners as `evaluate` grades each; what they have in common is done once.

    All observe task t before any observes task t + 1. One that fails is left out from there on.
    Memory: the state of all learners at once, less the tensors they share.
    """
    empty = _empty_grades(learners, stream, splits)
    outcomes = [Outcome(empty) for _ in learners]
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
                    outcome.grades = _with_accuracies(outcome.grades, accuracies, stream, t)
    progress("grade", total, total)
    return outcomes


Accuracies = dict[tuple[Split, int], tuple[float, float]]
"""Class and node accuracy by split and part."""


def grade(
    learner: Learner, stream: TaskStream, prepared: Iterable[Exam], clock: Progress, total: int
) -> Accuracies:
    """Class and node accuracy for every split and part in the exams."""
    accuracies: Accuracies = {}
    parts = [(c,) for c in stream.arrived] if stream.returning else stream.classes
    clock("evaluate", 0, total)
    for done, exam in enumerate(prepared, start=1):
        asked = torch.stack(list(exam.masks.values())).any(dim=0)
        predicted = torch.full_like(exam.truth, -1)  # no class: only what counts is asked
        predicted[asked] = learner.predict(exam.graph, asked)
        for split, mask in exam.masks.items():
            for i in exam.task.unique().tolist():
                graded = mask & (exam.task == i)
                answer, truth = predicted[graded], exam.truth[graded]
                by_class = class_accuracy(answer, truth, parts[i])
                accuracies[split, i] = by_class, node_accuracy(answer, truth)
        clock("evaluate", done, total)
    return accuracies


def _empty_grades(
    learners: Iterable[Learner], stream: TaskStream, splits: Sequence[Split]
) -> dict[Split, Grades]:
    """Matrices without a row, if these learners can be graded on the stream."""
    if not splits:
        raise InputError("an evaluation needs at least one split to grade; pass splits=('test',)")
    check_gradable(stream, splits)
    for learner in learners:
        check_returns(learner, returning=stream.returning)
    if not stream.returning:
        return {split: Grades() for split in splits}
    return {
        split: Grades(
            AccuracyMatrix(parts="classes"),
            AccuracyMatrix(parts="classes", weights=graded_nodes(stream, split)),
        )
        for split in splits
    }


def _with_accuracies(
    grades: Mapping[Split, Grades], accuracies: Accuracies, stream: TaskStream, t: int
) -> dict[Split, Grades]:
    """The accuracy matrices with the row of task t."""
    seen = range(len(stream.seen(t)) if stream.returning else t + 1)
    share = share_of_nodes(stream, t) if stream.returning else None
    return {
        split: Grades(
            old.by_class.then([accuracies[split, i][0] for i in seen], share),
            old.by_node.then([accuracies[split, i][1] for i in seen], share),
        )
        for split, old in grades.items()
    }


def _base_task(stream: TaskStream) -> Graph:
    """The base task's graph without labels, to measure how far its embeddings move."""
    part = stream.graph.subgraph(stream.nodes([0]))
    return Graph(part.features, part.adjacency)
