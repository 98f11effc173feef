"""The only loop over tasks: observe, examine, grade; for one learner, or many side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from undrift.analytic.buffers import used_again
from undrift.errors import InputError, not_installed, unknown_name
from undrift.evaluation import protocols
from undrift.evaluation.cost import PhaseClock, peak_memory_mb, reset_peak_memory
from undrift.evaluation.detection import anomalies
from undrift.evaluation.detection import open_world as unknown_classes
from undrift.evaluation.drift import relative_drift
from undrift.evaluation.matrix import AccuracyMatrix, class_accuracy, node_accuracy
from undrift.evaluation.metrics import mean_of
from undrift.evaluation.protocols import Exam, Protocol, Split, exam_of, exams, graded_batches
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

    A step is a task, or where classes come back a batch after which was graded. `drift[t]` is the
    relative drift of the base task's embeddings from step 0 to step t (empty if the learner has no
    `embed`), `embeddings` are those after step 0 and after the last, `state_bytes[t]` is the size
    of the state. `seconds` are per phase: `learn` is the part of `observe` under no phase of the
    learner's own, `evaluate` predicts, grades and measures drift. `series[key][t]` is a measure by
    the key of its metric, NaN where the step has none.

    >>> from undrift import Propagation, evaluate, load_stream
    >>> found = evaluate(Propagation(), load_stream("synthetic"))
    >>> isinstance(found, Evaluation), found.tasks == len(found.by_class.rows)
    (True, True)
    """

    grades: Mapping[Split, Grades]
    drift: tuple[float, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_memory_mb: float | None = None
    state_bytes: tuple[int, ...] = ()
    embeddings: tuple[Tensor, ...] = ()
    series: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        """How many steps were learned and graded."""
        return len(self.state_bytes)

    @property
    def by_class(self) -> AccuracyMatrix:
        """Class accuracy on the first split asked for."""
        return next(iter(self.grades.values()), Grades()).by_class

    @property
    def by_node(self) -> AccuracyMatrix:
        """Node accuracy on the first split asked for."""
        return next(iter(self.grades.values()), Grades()).by_node

    def then(
        self, learner: Any, clock: PhaseClock, measured: Mapping[str, float], **more: Any
    ) -> Evaluation:
        """What there is after one more step."""
        kept = learner.nbytes()
        clock.stop()
        peak, keys = peak_memory_mb(), dict.fromkeys([*self.series, *measured])
        before = {key: self.series.get(key, (nan,) * self.tasks) for key in keys}
        return replace(
            self,
            seconds=dict(clock.seconds),
            peak_memory_mb=None if peak is None else max(peak, self.peak_memory_mb or 0.0),
            state_bytes=(*self.state_bytes, kept),
            series={key: (*before[key], measured.get(key, nan)) for key in keys},
            **more,
        )

    def __repr__(self) -> str:
        matrix, back = self.by_class, self.by_class.parts == "classes"
        parts = [counted(self.tasks, *(("batch", "batches") if back else ("task",)))]
        if matrix.rows:
            lost = matrix.class_forgetting if back else matrix.forgetting
            parts += [f"A_avg {matrix.a_avg:.1f}", f"A_f {matrix.a_f:.1f}"]
            parts += [f"forgetting {lost:.1f}"]
        parts += [f"{key} {mean_of(self.series[key]):.1f}" for key in list(self.series)[:2]]
        return f"Evaluation({', '.join(parts)})"

    def table(self) -> str:
        """The accuracy matrix by class in percent: a row per step, a column per task or class."""
        matrix = self.by_class
        columns = max(map(len, matrix.rows), default=0)
        part, step = ("C", "S") if matrix.parts == "classes" else ("T", "T")
        text = "after" + "".join(f"{f'{part}{i}':>6}" for i in range(columns)) + "   A_t"
        for t, (row, mean) in enumerate(zip(matrix.rows, matrix.a_t, strict=True)):
            accuracies = "".join(f"{accuracy:6.1f}" for accuracy in row)
            text += f"\n{f'{step}{t}':5}{accuracies:{6 * columns}}{mean:6.1f}"
        return text

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of A_t, or of the first series, over steps; written to `path`."""
        try:
            from matplotlib.figure import Figure
            from matplotlib.ticker import MaxNLocator
        except ImportError as error:
            raise not_installed("figures need matplotlib", "figures") from error
        figure = Figure(figsize=(5, 3), layout="constrained")
        axes = figure.subplots()
        shown = {"A_t": self.by_class.a_t} if self.by_class.rows else self.series
        name, values = next(iter(shown.items()), ("", ()))
        axes.plot(range(1, self.tasks + 1), values, marker="o")
        axes.set(xlabel="step", ylabel=f"{name}, percent", ylim=(0, 100))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if path is not None:
            kinds = figure.canvas.get_supported_filetypes()
            if (kind := Path(path).suffix.lower().removeprefix(".")) not in ("", *kinds):
                raise unknown_name("kind of figure", kind, kinds)
            figure.savefig(path)
        return figure


Measure = Callable[[Learner, TaskStream, int], Mapping[str, float]]
"""`measure(learner, stream, t)`: numbers by the keys of their metrics, after step t."""

AfterTask = Callable[[int, Evaluation], None]
"""`after_task(t, so_far)`: called when task (batch) t has been learned and graded."""


@used_again()
def evaluate(
    learner: Learner,
    stream: TaskStream,
    *,
    protocol: Protocol = "global",
    splits: Sequence[Split] = ("test",),
    measures: Sequence[Measure] = (),
    progress: Progress = silent,
    after_task: AfterTask = lambda t, so_far: None,
    so_far: Evaluation | None = None,
) -> Evaluation:
    """Let a learner observe the tasks of a stream one by one, and grade it after each.

    A stream of many batches where classes come back is graded after some of them
    (`graded_batches`); a learner that cannot learn a class again is refused. What `measures` give
    after a step is in `series`. The learner ends having observed the whole stream. With `so_far`,
    an evaluation that was cut off goes on, of a learner that has observed the tasks in it.

    Cost: the learner's own, plus one prediction over all nodes seen so far per task.

    >>> from undrift import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> done = evaluate(Propagation(), tiny_stream())
    >>> [len(row) for row in done.grades["test"].by_class.rows]  # after task t, tasks 0 to t
    [1, 2, 3]
    """
    protocols.check_fits(learner, stream)
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
        task = stream.task(t)
        clock.enter("learn")
        learner.observe(task, progress=clock)
        del task  # observed: not even the evaluation may keep its data in memory
        if t not in graded:
            continue
        learner.settle(progress=clock)
        prepared = exams(stream, t, protocol, splits, built=built)
        total = 1 if protocol == "global" else t + 1
        accuracies = grade(learner, stream, prepared, clock, total)
        more: dict[str, Any] = {"grades": _with_accuracies(so_far.grades, accuracies, stream, t)}
        measured = {k: v for each in measures for k, v in each(learner, stream, t).items()}
        if hasattr(learner, "embed"):
            base = exam_of(stream, stream.nodes([0])).graph if base is None else base
            now = learner.embed(base).detach().cpu().clone()
            both = (so_far.embeddings[0] if so_far.embeddings else now, now)
            more |= {"embeddings": both, "drift": (*so_far.drift, relative_drift(*both))}
        so_far = so_far.then(learner, clock, measured, **more)
        after_task(t, so_far)
    return so_far


def evaluate_tasks(
    learner: Learner, stream: TaskStream, *, open_world: bool = False, **how: Any
) -> Evaluation:
    """`evaluate` as runs do it: on test and validation nodes, open world and anomalies if asked."""
    measures = [anomalies] * (stream.normal is not None) + [unknown_classes] * open_world
    splits: tuple[Split, ...] = ("test", "val")
    try:
        protocols.check_gradable(stream, ("val",))
    except InputError:  # some task has no validation nodes
        splits = ("test",)
    return evaluate(learner, stream, splits=splits, measures=measures, **how)


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

    One that fails is left out from there on. Memory: all states, less the tensors they share.
    """
    empty = _empty_grades(learners, stream, splits)
    outcomes = [Outcome(empty) for _ in learners]
    graded = graded_batches(stream)
    built: dict[int, Exam] = {}
    total = len(stream) * len(learners)

    def going(phase: str, t: int) -> Iterator[tuple[Learner, Outcome]]:
        for k, (learner, outcome) in enumerate(zip(learners, outcomes, strict=True)):
            progress(phase, t * len(learners) + k, total)
            if outcome.error is None:
                yield learner, outcome

    for t in range(len(stream)):
        task = stream.task(t)
        with sharing():
            for learner, outcome in going("learn", t):
                try:
                    learner.observe(task)
                except Exception as error:
                    outcome.error = error
        if t not in graded:
            continue
        prepared = list(exams(stream, t, protocol, splits, built=built))
        with sharing():
            for learner, outcome in going("grade", t):
                accuracies = grade(learner, stream, prepared, silent, 1)
                outcome.grades = _with_accuracies(outcome.grades, accuracies, stream, t)
    progress("grade", total, total)
    return outcomes


Accuracies = dict[tuple[str, int], tuple[float, float]]
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
    protocols.check_gradable(stream, splits)
    for learner in learners:
        protocols.check_returns(learner, returning=stream.returning)
    if not stream.returning:
        return {split: Grades() for split in splits}
    by_class = AccuracyMatrix(parts="classes")
    nodes = {split: protocols.graded_nodes(stream, split) for split in splits}
    return {split: Grades(by_class, replace(by_class, weights=w)) for split, w in nodes.items()}


def _with_accuracies(
    grades: Mapping[Split, Grades], accuracies: Accuracies, stream: TaskStream, t: int
) -> dict[Split, Grades]:
    seen, share, grown = range(t + 1), None, {}
    if stream.returning:  # the share of training nodes that arrived since the grading before
        seen = range(len(stream.seen(t)))
        before = max((batch for batch in graded_batches(stream) if batch < t), default=-1)
        arrived = stream.task_of[stream.train & (stream.task_of >= 0)]
        share = int(((arrived > before) & (arrived <= t)).sum()) / arrived.numel()
    for split, old in grades.items():
        by_class, by_node = zip(*(accuracies[split, i] for i in seen), strict=True)
        grown[split] = Grades(old.by_class.then(by_class, share), old.by_node.then(by_node, share))
    return grown
