"""Propagation: ridge regression on a fixed function of the graph, so that nothing can drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.fourier import Fourier
from undrift.analytic.gram import Rows, chunks
from undrift.analytic.selection import Chosen, choose_by_leave_one_out, choose_by_validation
from undrift.analytic.sketch import Sketch
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics, one_hot
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.neighbours import trust_in_neighbours
from undrift.learners.parts.propagated import Mix, Propagated
from undrift.sparse import Csr
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Propagation", "PropagationLearned"]

_NARROW = 1024  # columns up to which random Fourier features are added on their own
_FIRST_GAMMA = 0.1 * 10**0.5  # where the very first search begins


@dataclass(frozen=True, eq=False)
class PropagationLearned:
    """What is kept: two sums, the gamma they chose, and the weights that follow from them."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    trust: float
    gamma: float
    statistics: RidgeStatistics
    validation: RidgeStatistics | None
    weights: Tensor


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows of one split of a task, before Fourier features, with their targets and weights."""

    rows: Rows
    targets: Tensor
    weights: Tensor | None


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
    (`trust_in_neighbours`), so a graph whose neighbours disagree falls back to plain ridge.
    `sketch`: features of more columns are count-sketched to this many (`Sketch`), 0 never does.
    `fourier`: random Fourier features beside the propagated ones; without a number
    min(2048, 16 d) where rows have at most 1,024 columns, else none. `balanced=False`: every
    node weighs the same.

    With D the width of a row, at most max(`sketch`, 1024 + 2048) by default: memory
    16 D^2 + 24 D C bytes, 8 D^2 + 16 D C with a fixed gamma, whatever the number of nodes. Time
    per task with n training and validation nodes: n D^2 for the sums (nnz D where rows stay
    sparse), mostly one factorisation of D^3 / 3; scores cost 2 nnz(X) C + 2 hops nnz(A) C, with
    Fourier features 2 nodes d D more. Scores without Fourier features are right up to a
    positive factor per node (`Propagated.spread`), which no prediction depends on.
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
    balanced: bool = True

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        if self.fourier is not None and self.fourier < 0:
            raise InputError(f"fourier must be at least 0, not {self.fourier}")
        if self.sketch < 0 or self.sketch != int(self.sketch):
            raise InputError(
                f"sketch must be a whole number of columns, or 0 for none, not {self.sketch}"
            )
        self._propagated(1.0 if self.trust is None else self.trust)

    def _learn(self, task: Task, progress: Progress) -> PropagationLearned:
        before: PropagationLearned | None = self.learned_
        progress("accumulate", 0, 1)
        graph = task.graph.to(self.device)
        classes = (*(before.classes if before else ()), *task.classes)
        trust = before.trust if before else self._trust(task)
        train, val = self._samples(task, graph, classes, trust)
        fourier = self._fourier(train.rows.shape[1])
        width = train.rows.shape[1] + (fourier.outputs if fourier else 0)
        empty = RidgeStatistics.zero(width, device=self.device)
        statistics = _added(before.statistics if before else empty, train, fourier)
        validation = None
        if self.gamma is None:
            seen = before.validation if before and before.validation is not None else empty
            validation = _added(seen, val, fourier)
        progress("solve", 0, 1)
        chosen = self._solved(before, statistics, validation, train, val)
        progress("solve", 1, 1)
        return PropagationLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=before.tasks + 1 if before else 1,
            trust=trust,
            gamma=chosen.gamma,
            statistics=statistics,
            validation=validation,
            weights=chosen.weights,
        )

    def _solved(
        self,
        before: PropagationLearned | None,
        statistics: RidgeStatistics,
        validation: RidgeStatistics | None,
        train: _Sample,
        val: _Sample,
    ) -> Chosen:
        if validation is None:
            assert self.gamma is not None  # noqa: S101  # otherwise there is a validation sum
            return Chosen(self.gamma, solve(statistics, self.gamma, relative=True))
        start = before.gamma if before else _FIRST_GAMMA
        if validation.count == 0:
            rows = _expanded(train.rows, self._fourier(train.rows.shape[1]))
            return choose_by_leave_one_out(statistics, rows, train.targets, train.weights, start)
        if val.targets.shape[0] == 0:
            return Chosen(start, solve(statistics, start, relative=True))
        return choose_by_validation(statistics, validation, start)

    # rows --------------------------------------------------------------------------------

    def _trust(self, task: Task) -> float:
        return trust_in_neighbours(task) if self.trust is None else self.trust

    def _propagated(self, trust: float) -> Propagated:
        return Propagated(self.mix, self.hops, self.words, trust)

    def _sketch(self, num_features: int) -> Sketch | None:
        if not 0 < self.sketch < num_features:
            return None
        return Sketch(num_features, self.sketch, self.seed)

    def _fourier(self, width: int) -> Fourier | None:
        wanted = self.fourier
        if wanted is None:
            wanted = min(2 * _NARROW, 16 * width) if width <= _NARROW else 0
        return Fourier(width, wanted, seed=self.seed) if wanted else None

    def _samples(
        self, task: Task, graph: Graph, classes: tuple[int, ...], trust: float
    ) -> tuple[_Sample, _Sample]:
        """The training and the validation nodes, propagated together."""
        assert graph.labels is not None  # noqa: S101  # a task has labels
        train, val = (mask.to(graph.device).nonzero().flatten() for mask in (task.train, task.val))
        rows = self._rows(graph, torch.cat([train, val]), trust)
        m = train.numel()
        first, second = (
            (rows.slice(0, m), rows.slice(m, rows.shape[0]))
            if isinstance(rows, Csr)
            else (rows[:m], rows[m:])
        )
        return (
            self._sample(first, graph.labels[train], classes),
            self._sample(second, graph.labels[val], classes),
        )

    def _sample(self, rows: Rows, labels: Tensor, classes: tuple[int, ...]) -> _Sample:
        targets = one_hot(labels, classes)
        weights = None
        if self.balanced:  # each class weighs one; gamma is relative, so the scale is no matter
            weights = targets @ targets.sum(dim=0).clamp(min=1).reciprocal()
        return _Sample(rows, targets, weights)

    def _rows(self, graph: Graph, nodes: Tensor, trust: float) -> Rows:
        return self._propagated(trust).rows(graph, nodes, self._sketch(graph.num_features))

    # scores ------------------------------------------------------------------------------

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        graph = graph.to(self.device)
        propagated = self._propagated(learned.trust)
        sketch = self._sketch(graph.num_features)
        columns = graph.num_features if sketch is None else sketch.size
        if self._fourier(propagated.width(columns)) is not None:
            return self._scores_from_rows(learned, graph)
        return propagated.spread(graph, learned.weights, sketch)

    def _scores_from_rows(self, learned: Any, graph: Graph) -> Tensor:
        """With Fourier features a row must be formed; some nodes at a time."""
        everyone = torch.arange(graph.num_nodes, device=graph.device)
        rows = self._rows(graph, everyone, learned.trust)
        fourier = self._fourier(rows.shape[1])
        assert fourier is not None  # noqa: S101  # asked before
        split = rows.shape[1]
        parts = [
            _times(part, learned.weights[:split]) + fourier(part) @ learned.weights[split:]
            for _, part in chunks(rows, budget_mb=64)
        ]
        return torch.cat(parts)


def _added(
    statistics: RidgeStatistics, sample: _Sample, fourier: Fourier | None
) -> RidgeStatistics:
    """The sum with these rows; Fourier features exist for some rows at a time only."""
    if sample.rows.shape[0] == 0:
        return statistics.grow(sample.targets.shape[1])
    if fourier is None:
        return statistics.add(sample.rows, sample.targets, sample.weights)
    for where, part in chunks(sample.rows):
        weights = None if sample.weights is None else sample.weights[where]
        statistics = statistics.add(_expanded(part, fourier), sample.targets[where], weights)
    return statistics


def _expanded(rows: Rows, fourier: Fourier | None) -> Rows:
    if fourier is None:
        return rows
    plain = rows.to_dense(torch.float64) if isinstance(rows, Csr) else rows.double()
    return torch.cat([plain, fourier(rows)], dim=1)


def _times(rows: Rows, weights: Tensor) -> Tensor:
    if isinstance(rows, Csr):
        return rows.to(dtype=weights.dtype) @ weights
    return rows.to(weights.dtype) @ weights
