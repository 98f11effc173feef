"""DS-AL: ACIL with a second, compensating stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Activation
from undrift.analytic.rounding import Linear
from undrift.analytic.solve import solve
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.additive import Classifier, Known
from undrift.learners.base import Verb
from undrift.learners.kept import Inventory, KeptSum, of_class_sums, of_statistics
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.backbone import Backbone, Grid
from undrift.learners.parts.expanded import balanced_rows, mean_class_size, targets_of, weighed
from undrift.learners.parts.frozen_encoder import FrozenLearner, FrozenRows
from undrift.sharing import once
from undrift.streams.task import Task, joined
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class OrderedStreams:
    """The banks of both streams in the published form, in which the order of tasks counts."""

    main: RidgeBank
    second: RidgeBank
    share: float  # what a balanced class weighs


Streams = ClassSums | OrderedStreams
"""Without cleansing sums over rows `[relu(Z), tanh(Z)]`, else the published form."""


@dataclass(kw_only=True)
class DsAl(FrozenLearner):
    """Two ridge regressions on one random projection `Z = f W_psi` of a frozen encoder.

        scores = relu(Z) W_main + compensation tanh(Z) W_comp

    The main stream fits the labels, as ACIL does. The compensation stream fits the residual
    `Y - relu(Z) W_main` of the main weights just solved; after the base task only the new classes'
    columns of it (previous-label cleansing). `balanced`: every class weighs the same.

    `cleansing=False` fits the residual of the main weights there are now on all rows there have
    been. That is a function of the rows alone, so every verb is exact, as in ACIL; the published
    form refuses. Cost and memory: twice ACIL's, four times without cleansing.
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
    learned_type: ClassVar[type] = Known[FrozenRows, Streams, Classifier]
    activation: ClassVar[Activation] = "identity"
    grid: ClassVar[Grid] = {"gamma": (1e-3, 1e-2, 1e-1, 1.0), "alpha": (1, 2, 4, 8, 16, 32, 64)}

    gamma: float = 0.1
    alpha: int = 16
    compensation: float = 0.6
    balanced: bool = False
    cleansing: bool = True
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_not_negative(compensation=self.compensation)
        self._expansion()

    def _hindrance(self, verb: Verb) -> str | None:
        how = f"its second stream depends on the order of tasks; set {self.verbs_need}"
        return how if self.cleansing else None

    def _learn(self, task: Task, progress: Progress) -> Any:
        if not self.cleansing:
            return super()._learn(task, progress)
        before: Any = self.learned_  # with `OrderedStreams`
        plan = before.plan if before else self._plan(task, progress)
        empty = RidgeBank.empty(self._expansion().outputs, self.gamma, device=self.device)
        banks = before.sums if before else OrderedStreams(empty, empty, mean_class_size(task))
        main, second = banks.main, banks.second
        classes = joined(before.classes if before else (), task.classes)
        progress("classify", 0, 2)
        active, tanh = self._rows(plan.encoder, task.graph, task.train)
        targets = targets_of(task, classes)
        rows = balanced_rows(task, "train", banks.share) if self.balanced else None
        main = main.add(active, targets, rows)
        weights = main.solve()
        progress("classify", 1, 2)
        residual = targets - active @ weights
        residual[:, : len(classes) - len(task.classes)] = 0  # previous-label cleansing
        second = second.add(tanh, residual, rows)
        found = OrderedStreams(main, second, banks.share)
        progress("classify", 2, 2)
        return Known(classes, plan, found, self._both(weights, second.solve()))

    def rows(self, plan: FrozenRows, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """`[relu(Z), tanh(Z)]`."""
        return torch.cat(self._rows(plan.encoder, graph, nodes), dim=1)

    def _solve(
        self, plan: FrozenRows, classes: tuple[int, ...], sums: Streams, progress: Progress
    ) -> Classifier:
        if isinstance(sums, OrderedStreams):
            return self._both(sums.main.solve(), sums.second.solve())
        return super()._solve(plan, classes, sums, progress)

    def classifier(self, sums: ClassSums) -> Classifier:
        """The weights of both streams, one above the other."""
        all_rows = weighed(sums, balanced=self.balanced)
        half = all_rows.width // 2
        gram, moment = all_rows.gram, all_rows.moment
        first = replace(all_rows, gram=gram[:half, :half], moment=moment[:half])
        weights = solve(first, self.gamma)
        left = moment[half:] - gram[half:, :half] @ weights  # of the residual
        second = replace(all_rows, gram=gram[half:, half:], moment=left)
        return self._both(weights, solve(second, self.gamma))

    def _both(self, main: Tensor, second: Tensor) -> Classifier:
        return Classifier(torch.cat([main, self.compensation * second]))

    def _linear(self, known: Any) -> Linear | None:
        return None if isinstance(known.sums, OrderedStreams) else super()._linear(known)

    def _rows(self, encoder: Encoder, graph: Graph, nodes: Tensor | None) -> tuple[Tensor, Tensor]:
        """relu(Z) and tanh(Z) of some nodes."""

        def make() -> tuple[Tensor, Tensor]:
            z = self._expanded(encoder, graph, nodes)
            return torch.relu(z), torch.tanh(z)

        return once(make, "two streams", encoder, graph, nodes, self._expansion())

    def _inventory(self, learned: Any) -> Inventory:
        rows, sums, classes = self._rows_by(learned.plan.encoder), learned.sums, learned.classes

        def active(graph: Graph, nodes: Tensor) -> Tensor:
            return torch.relu(rows(graph, nodes))

        def tanh(graph: Graph, nodes: Tensor) -> Tensor:
            return torch.tanh(rows(graph, nodes))

        def both(graph: Graph, nodes: Tensor) -> Tensor:
            return torch.cat([active(graph, nodes), tanh(graph, nodes)], dim=1)

        kept: tuple[KeptSum, ...]
        if isinstance(sums, ClassSums):
            kept = (of_class_sums("two streams", sums, both, classes, ("sums",)),)
        else:
            main, second = sums.main.statistics, sums.second.statistics
            first, even = ("sums.main",), not self.balanced
            kept = (
                of_statistics("main stream", main, active, first, classes=classes, exact=even),
                # the second stream's targets are residuals: its moment is no class mean
                of_statistics("second stream", second, tanh, ("sums.second",), exact=even),
            )
        return Inventory(kept, rest=("plan.encoder", "solution"))
