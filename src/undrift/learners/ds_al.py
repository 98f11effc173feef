"""DS-AL: ACIL with a second, compensating stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Activation
from undrift.analytic.solve import RidgeBank, solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.graphs import Graph
from undrift.learners.additive import Classifier, Known
from undrift.learners.kept import Inventory, KeptSum, of_class_sums, of_statistics
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.backbone import Backbone, Grid
from undrift.learners.parts.expanded import (
    balanced_rows,
    mean_class_size,
    nodes_that_count,
    targets_of,
    weighed,
)
from undrift.learners.parts.frozen_encoder import FrozenLearner, FrozenRows
from undrift.sharing import once
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class OrderedStreams(Additive):
    """The sums of both streams in the published form, in which the order of tasks counts."""

    told: ClassVar[tuple[str, ...]] = ("share",)

    main: RidgeBank
    second: RidgeBank
    share: float  # what a balanced class weighs


Streams = ClassSums | OrderedStreams
"""Without cleansing sums over rows `[relu(Z), tanh(Z)]`, else the published form."""


@dataclass(frozen=True, eq=False)
class TwoStreamRows(FrozenRows):
    """`[relu(Z), tanh(Z)]`. `balanced`: whether rows have weights in the published form."""

    activation: ClassVar[Activation] = "identity"

    balanced: bool

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Of all nodes or of these."""
        return torch.cat(self.both(graph, nodes), dim=1)

    def both(self, graph: Graph, nodes: Tensor | None) -> tuple[Tensor, Tensor]:
        """relu(Z) and tanh(Z), once for learners side by side."""

        def make() -> tuple[Tensor, Tensor]:
            z = FrozenRows.rows_of(self, graph, nodes).to_dense()
            return torch.relu(z), torch.tanh(z)

        return once(make, "two streams", self.encoder, self.alpha, self.seed, graph, nodes)

    def inventory(self, sums: Streams, classes: tuple[int, ...]) -> Inventory:
        """One sum over both streams, or two in the published form."""
        return Inventory(tuple(self._kept(sums, classes)), rest=("plan.encoder", "solution"))

    def _kept(self, sums: Streams, classes: tuple[int, ...]) -> Iterator[KeptSum]:
        if isinstance(sums, ClassSums):
            yield of_class_sums("two streams", sums, self.rows_of, classes, ("sums",))
            return
        exact = not self.balanced
        yield of_statistics(
            "main stream",
            sums.main.statistics,
            lambda graph, nodes: self.both(graph, nodes)[0],
            ("sums.main",),
            classes=classes,
            exact=exact,
        )
        # the second stream's targets are residuals: its moment is no class mean
        yield of_statistics(
            "second stream",
            sums.second.statistics,
            lambda graph, nodes: self.both(graph, nodes)[1],
            ("sums.second",),
            exact=exact,
        )


@dataclass(kw_only=True)
class DsAl(FrozenLearner):
    """DS-AL: two ridge regressions on one random projection `Z = f W_psi` of a frozen encoder.

        scores = relu(Z) W_main + compensation tanh(Z) W_comp

    The main stream fits the labels, as ACIL does. The compensation stream fits the residual
    `Y - relu(Z) W_main` of the main weights just solved; after the base task only the new classes'
    columns of it (previous-label cleansing). `balanced`: every class weighs the same.

    `cleansing=False` fits the residual of the main weights there are now on all rows there have
    been. That is a function of the rows alone, so every verb is exact, as in ACIL; the published
    form refuses. Cost and memory: twice ACIL's, four times without cleansing.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = DsAl(epochs=5, hidden=8).observe(first).observe(second)
    >>> [kept.name for kept in learner.inventory().sums]
    ['main stream', 'second stream']
    >>> learner.can("forgets"), DsAl(cleansing=False).can("forgets")
    (False, True)
    """

    name: ClassVar[str] = "ds-al"
    display: ClassVar[str] = "DS-AL"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Zhuang et al., AAAI 2024"
    keeps: ClassVar[str] = "sums R and Q of two streams, one encoder"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    verbs_need: ClassVar[str] = "cleansing=False"
    why_not: ClassVar[str] = "its second stream depends on the order of tasks"
    learned_type: ClassVar[type] = Known[TwoStreamRows, Streams, Classifier]
    grid: ClassVar[Grid] = {
        "gamma": (1e-3, 1e-2, 1e-1, 1.0),
        "alpha": (1, 2, 4, 8, 16, 32, 64),
    }

    gamma: float = 0.1
    alpha: int = 16
    compensation: float = 0.6
    balanced: bool = False
    cleansing: bool = True
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_not_negative(compensation=self.compensation)
        self.check_expansion()

    def _plan(self, task: Task, progress: Progress) -> TwoStreamRows:
        plain = super()._plan(task, progress)
        told = plain.num_features, plain.encoder, plain.trained_on, plain.alpha, plain.seed
        return TwoStreamRows(*told, self.balanced)

    def _sums(
        self, plan: FrozenRows, task: Task, within: Tensor | None, progress: Progress
    ) -> tuple[tuple[int, ...], Any]:
        if self.cleansing and isinstance(plan, TwoStreamRows):
            progress("classify", 0, 1)
            return task.classes, self._cleansed(plan, task)
        return super()._sums(plan, task, within, progress)

    def _cleansed(self, plan: TwoStreamRows, task: Task) -> OrderedStreams:
        """The published form: the residual of the main weights that the batch leads to."""
        before = None if self.learned_ is None else self.known.sums
        share = mean_class_size(task) if before is None else before.share
        active, tanh = plan.both(task.graph, nodes_that_count(task, "train"))
        rows = balanced_rows(task, "train", share) if self.balanced else None
        empty = RidgeBank.empty(active.shape[1], self.gamma, device=self.device)
        targets = targets_of(task, task.classes)
        main = empty.add(active, targets, rows)
        old = 0 if before is None else len(self.classes_)
        place = [-1] * old + list(range(len(task.classes)))
        whole = main if before is None else before.main + main.select(place)
        residual = targets - active @ whole.solve()[:, old:]  # of new classes: label cleansing
        return OrderedStreams(main, empty.add(tanh, residual, rows), share)

    def _solve(
        self, plan: FrozenRows, classes: tuple[int, ...], sums: Streams, progress: Progress
    ) -> Classifier:
        """The weights of both streams, one above the other."""
        progress("classify", 0, 1)
        if isinstance(sums, OrderedStreams):
            main, second = sums.main.solve(), sums.second.solve()
        else:
            main, second = self._by_rows(weighed(sums, balanced=self.balanced))
        progress("classify", 1, 1)
        return Classifier(torch.cat([main, self.compensation * second]))

    def _by_rows(self, all_rows: RidgeStatistics) -> tuple[Tensor, Tensor]:
        half = all_rows.width // 2
        gram, moment = all_rows.gram, all_rows.moment
        first = replace(all_rows, gram=gram[:half, :half], moment=moment[:half])
        weights = solve(first, self.gamma)
        left = moment[half:] - gram[half:, :half] @ weights  # of the residual
        second = replace(all_rows, gram=gram[half:, half:], moment=left)
        return weights, solve(second, self.gamma)
