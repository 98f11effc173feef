"""DS-AL: ACIL with a second, compensating stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.analytic.random_maps import Activation
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.base import check_not_negative, check_positive
from undrift.learners.parts.analytic.class_balance import balanced_rows, class_share
from undrift.learners.parts.analytic.frozen_encoder import (
    ExpandedLearner,
    base_encoder,
    targets_of,
)
from undrift.learners.parts.training.backbone import Backbone
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class DsAlLearned:
    """What DS-AL keeps: the frozen encoder, and sums and weights of both streams."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    encoder: Encoder
    main: RidgeBank
    main_weights: Tensor
    compensation: RidgeBank
    compensation_weights: Tensor


@dataclass(kw_only=True)
class DsAl(ExpandedLearner):
    """Two ridge regressions on one random projection `Z = f W_psi` of a frozen encoder.

        scores = relu(Z) W_main + compensation tanh(Z) W_comp

    The main stream fits the labels, as ACIL does. The compensation stream fits the residual
    `Y - relu(Z) W_main`, taken with the main weights just solved; after the base task only the new
    classes' columns of it (previous-label cleansing). `balanced`: every class weighs the same,
    not every node.

    Cost and memory: twice ACIL's. Reference: Zhuang et al., "DS-AL: A Dual-Stream Analytic
    Learning for Exemplar-Free Class-Incremental Learning", AAAI 2024.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = DsAl(alpha=2, backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "ds-al"
    display: ClassVar[str] = "DS-AL"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Zhuang et al., AAAI 2024"
    keeps: ClassVar[str] = "R and Q of two streams, one encoder"
    learned_type: ClassVar[type] = DsAlLearned
    activation: ClassVar[Activation] = "identity"
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-3, 1e-2, 1e-1, 1.0),
        "alpha": (1, 2, 4, 8, 16, 32, 64),
    }

    gamma: float = 0.1
    alpha: int = 16
    compensation: float = 0.6
    balanced: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_not_negative(compensation=self.compensation)
        self._expansion()

    def _learn(self, task: Task, progress: Progress) -> DsAlLearned:
        before: DsAlLearned | None = self.learned_
        if before is None:
            encoder = base_encoder(self, task, progress)
            main = RidgeBank.empty(self._expansion().outputs, self.gamma, device=self.device)
            second, classes, tasks = main, task.classes, 1
        else:
            encoder, main, second = before.encoder, before.main, before.compensation
            classes, tasks = (*before.classes, *task.classes), before.tasks + 1
        progress("classify", 0, 2)
        active, tanh = self._training_rows(encoder, task)
        targets = targets_of(task, classes, self.once)
        rows = None
        if self.balanced:
            rows = balanced_rows(task, "train", class_share(task, main), self.once)
        main = main.add(active, targets, rows, self.once)
        weights = main.solve()
        progress("classify", 1, 2)
        residual = targets - active @ weights
        residual[:, : len(classes) - len(task.classes)] = 0  # previous-label cleansing
        second = second.add(tanh, residual, rows)
        compensation_weights = second.solve()
        progress("classify", 2, 2)
        return DsAlLearned(
            classes=classes,
            num_features=task.graph.num_features,
            tasks=tasks,
            encoder=encoder,
            main=main,
            main_weights=weights,
            compensation=second,
            compensation_weights=compensation_weights,
        )

    def _training_rows(self, encoder: Encoder, task: Task) -> tuple[Tensor, Tensor]:
        """relu(Z) and tanh(Z) of the task's training nodes."""

        def make() -> tuple[Tensor, Tensor]:
            z = self._expanded(encoder, task.graph, task.train)
            return torch.relu(z), torch.tanh(z)

        return self.once(make, "two streams", encoder, task, self._expansion())

    def _scores_of(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        z = self._expanded(learned.encoder, graph, nodes)
        second: Tensor = torch.tanh(z) @ learned.compensation_weights
        scores: Tensor = torch.relu(z) @ learned.main_weights + self.compensation * second
        return scores
