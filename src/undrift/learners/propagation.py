"""Propagation: ridge regression on a fixed function of the graph, so that nothing can drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from undrift.analytic.selection import (
    FIRST_GAMMA,
    Chosen,
    choose_by_leave_one_out,
    choose_by_validation,
)
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.fixed_rows import FixedRows, Sample, check_widths, samples_of
from undrift.learners.parts.neighbours import (
    TELLING_FROM,
    pattern_of_neighbours,
    trust_in_neighbours,
)
from undrift.learners.parts.propagated import Mix, Propagated
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Propagation", "PropagationLearned"]

_DOUBT = 0.5  # trust under which it is asked whether neighbours tell something by differing
_APART = Propagated("apart", hops=2)
_DENSE = 256  # dense features of at most so many columns are no words: hops may get their own
_GAIN = 0.05  # of the targets' energy, by which hops of their own must lower validation error


@dataclass(frozen=True, eq=False)
class Fitted:
    """Two sums over the same rows, the gamma they chose, and the weights that follow."""

    gamma: float
    statistics: RidgeStatistics
    validation: RidgeStatistics | None
    weights: Tensor


@dataclass(frozen=True, eq=False)
class PropagationLearned:
    """What is kept: two sums, the gamma they chose, and the weights that follow from them.

    `apart`: the same for rows in which neighbours have columns of their own, as long as every
    task has shown that neighbours differ in a way that tells; scores then come from it.
    `separate`: the same for narrow dense features with a column per hop; scores come from it
    where `separated` says so.
    """

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    trust: float
    gamma: float
    statistics: RidgeStatistics
    validation: RidgeStatistics | None
    weights: Tensor
    apart: Fitted | None = None
    separate: Fitted | None = None
    separated: bool = False


@dataclass(kw_only=True)
class Propagation(Learner):
    """Class-balanced ridge on propagated features; needs no hyperparameter from the user.

    Features are a fixed function of the graph (`Propagated`), so the sums R and Q are those of
    joint training, whatever the order of the tasks, and old classes can only lose to new ones
    that compete. Every class weighs the same. `gamma`, relative to the mean diagonal of R, is
    chosen again after every task by the squared error over every validation node ever seen,
    from the sums (R_val, Q_val, n_val) alone; in a history without any validation node by
    leave-one-out on the task at hand; a later task without keeps the last. A number fixes it,
    and then no validation sums are kept.

    `mix`, `hops`, `words`: see `Propagated`. `trust`: how far neighbours are believed, 0 to 1;
    without a number it is measured on the labelled edges of the first task and kept
    (`trust_in_neighbours`), so a graph whose neighbours disagree falls back to plain ridge. If
    trust is under 0.5 and neighbours differ in a way that tells (`pattern_of_neighbours`), a
    second bank keeps what neighbours say in columns of its own (mix `apart`, two hops), and is
    believed as long as every task shows the pattern; then it is dropped for good. Dense
    features of at most 256 columns are no words, and own ones may be mostly noise: a bank with
    a column per hop (`concat`, two hops) stands beside, and answers while it lowers the squared
    validation error by more than 5 % of the targets' energy.
    `sketch`: rows of more columns are count-sketched to this many (`Sketch`), 0 never does.
    `fourier`: random Fourier features beside the propagated ones; without a number
    min(2048, 16 d) where rows have at most 1,024 columns, else none. `structure`: columns of
    degrees (`structural_columns`). `balanced=False`: every node weighs the same.

    With D the width of a row, at most max(`sketch`, 1024 + 2048) by default: memory
    16 D^2 + 24 D C bytes, 8 D^2 + 16 D C with a fixed gamma, whatever the number of nodes (the
    second bank, where there is one, as much again for its own D). Time per task with n training
    and validation nodes: n D^2 for the sums (nnz D where rows stay sparse), mostly one
    factorisation of D^3 / 3; scores cost 2 nnz(X) C + 2 hops nnz(A) C, with Fourier features
    2 nodes d D more. Scores without Fourier features are right up to a positive factor per node
    (`Propagated.spread`), which no prediction depends on.
    """

    name: ClassVar[str] = "propagation"
    learned_type: ClassVar[type] = PropagationLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"words": (1e3, 1e4, 1e5)}

    gamma: float | None = None
    mix: Mix = "adaptive"
    hops: int = 8
    words: float = 1e4
    trust: float | None = None
    fourier: int | None = None
    sketch: int = 3072
    structure: bool = False
    balanced: bool = True

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        check_widths(self.fourier, self.sketch)
        self._fixed(1.0 if self.trust is None else self.trust)

    def _learn(self, task: Task, progress: Progress) -> PropagationLearned:
        before: PropagationLearned | None = self.learned_
        graph = task.graph.to(self.device)
        classes = (*(before.classes if before else ()), *task.classes)
        trust = before.trust if before else self._trust(task)
        fit = self._fit(self._fixed(trust), before, task, graph, classes, progress=progress)
        apart = None
        if self._listens(before, task, trust):
            seen = before.apart if before else None
            rows = self._rows(_APART)
            apart = self._fit(rows, seen, task, graph, classes, progress=progress)
        separate = None
        if self._separates(before, graph):
            seen = before.separate if before else None
            rows = self._separate_rows(trust)
            separate = self._fit(rows, seen, task, graph, classes, progress=progress)
        return PropagationLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=before.tasks + 1 if before else 1,
            trust=trust,
            gamma=fit.gamma,
            statistics=fit.statistics,
            validation=fit.validation,
            weights=fit.weights,
            apart=apart,
            separate=separate,
            separated=separate is not None and _saved(fit, separate) > _GAIN,
        )

    def _fit(
        self,
        fixed: FixedRows,
        before: PropagationLearned | Fitted | None,
        task: Task,
        graph: Graph,
        classes: tuple[int, ...],
        *,
        progress: Progress,
    ) -> Fitted:
        """One bank, a task further."""
        progress("accumulate", 0, 1)
        train, val = samples_of(fixed, task, graph, classes, balanced=self.balanced)
        empty = RidgeStatistics.zero(fixed.width(graph.num_features), device=self.device)
        statistics = _added(before.statistics if before else empty, train, fixed)
        validation = None
        if self.gamma is None:
            seen = before.validation if before and before.validation is not None else empty
            validation = _added(seen, val, fixed)
        progress("solve", 0, 1)
        start = before.gamma if before else FIRST_GAMMA
        chosen = self._solved(start, statistics, validation, (train, val), fixed)
        progress("solve", 1, 1)
        return Fitted(chosen.gamma, statistics, validation, chosen.weights)

    def _separates(self, before: PropagationLearned | None, graph: Graph) -> bool:
        """Whether features are narrow and dense, so that own ones may be mostly noise."""
        if before is not None:
            return before.separate is not None
        asked = self.mix == "adaptive" and self.hops > 0 and self.gamma is None
        dense = isinstance(graph.features, Tensor) and graph.num_features <= _DENSE
        return asked and dense

    def _separate_rows(self, trust: float) -> FixedRows:
        concat = Propagated("concat", hops=2, trust=trust)
        return FixedRows(concat, self.sketch, 0, self.seed, self.structure)

    def _listens(self, before: PropagationLearned | None, task: Task, trust: float) -> bool:
        """Whether this task and every one before it show that neighbours tell by differing."""
        if before is None:
            asked = self.mix == "adaptive" and self.trust is None and self.hops > 0
            return asked and trust < _DOUBT and pattern_of_neighbours(task) >= TELLING_FROM
        # the first task had three classes or more; two are enough to see the same again
        return before.apart is not None and pattern_of_neighbours(task, 2) >= TELLING_FROM

    def _solved(
        self,
        start: float,
        statistics: RidgeStatistics,
        validation: RidgeStatistics | None,
        samples: tuple[Sample, Sample],
        fixed: FixedRows,
    ) -> Chosen:
        train, val = samples
        if validation is None:
            assert self.gamma is not None  # noqa: S101  # otherwise there is a validation sum
            return Chosen(self.gamma, solve(statistics, self.gamma, relative=True))
        if validation.count == 0:
            rows = fixed.expanded(train.rows)
            return choose_by_leave_one_out(statistics, rows, train.targets, train.weights, start)
        if len(val) == 0:
            return Chosen(start, solve(statistics, start, relative=True))
        return choose_by_validation(statistics, validation, start)

    def _trust(self, task: Task) -> float:
        return trust_in_neighbours(task) if self.trust is None else self.trust

    def _fixed(self, trust: float) -> FixedRows:
        return self._rows(Propagated(self.mix, self.hops, self.words, trust))

    def _rows(self, propagated: Propagated) -> FixedRows:
        return FixedRows(propagated, self.sketch, self.fourier, self.seed, self.structure)

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        graph = graph.to(self.device)
        if learned.apart is not None:
            return self._rows(_APART).spread(graph, learned.apart.weights)
        if learned.separated:
            return self._separate_rows(learned.trust).spread(graph, learned.separate.weights)
        return self._fixed(learned.trust).spread(graph, learned.weights)


def _saved(plain: Fitted, other: Fitted) -> float:
    """By how much the other bank lowers the validation error, as a share of the energy."""
    if plain.validation is None or other.validation is None or plain.validation.count == 0:
        return 0.0
    before = plain.validation.squared_error(plain.weights)
    return (before - other.validation.squared_error(other.weights)) / plain.validation.energy


def _added(statistics: RidgeStatistics, sample: Sample, fixed: FixedRows) -> RidgeStatistics:
    """The sum with these rows; Fourier features exist for some rows at a time only."""
    if len(sample) == 0:
        return statistics.grow(sample.targets.shape[1])
    for where, part in fixed.pieces(sample.rows):
        weights = None if sample.weights is None else sample.weights[where]
        statistics = statistics.add(part, sample.targets[where], weights)
    return statistics
