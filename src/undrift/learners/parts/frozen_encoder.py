"""For the analytic methods: sums over rows of a frozen base encoder."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.additive import LinearLearner
from undrift.learners.parts.expanded import Expanded
from undrift.learners.parts.model_learner import TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress, Rows


def base_encoder(learner: Any, task: Task, progress: Progress) -> Encoder:
    """The encoder after training on the base task; its head is thrown away."""
    encoder: Encoder = TaskTraining.of(learner, task, None).train(progress).encoder
    return encoder


@dataclass(frozen=True, eq=False)
class FrozenRows:
    """What rows depend on: an encoder, and the batch that it was trained on (`batch_digest`)."""

    num_features: int
    encoder: Encoder
    trained_on: str

    @property
    def sees_all_edges(self) -> bool:
        """No row depends on more than its surroundings."""
        return False

    def reach(self, graph: Graph) -> Tensor:
        """A hop per layer, for every node."""
        return torch.full((graph.num_nodes,), self.encoder.hops, device=graph.device)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """A hop per layer, for every node."""
        return torch.full(nodes.shape, hops <= self.encoder.hops, device=nodes.device)


class FrozenLearner(Expanded, LinearLearner[FrozenRows], ABC):
    """Sums over rows of a frozen encoder; the batch that trained it cannot be forgotten."""

    def _plan(self, task: Task, progress: Progress) -> FrozenRows:
        encoder = base_encoder(self, task, progress)
        return FrozenRows(task.graph.num_features, encoder, self._digest(task))

    def rows(self, plan: FrozenRows, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """The expanded embeddings."""
        return self._expanded(plan.encoder, graph, nodes)

    def rows_depend_on(self, plan: FrozenRows) -> tuple[object, ...]:
        """The encoder and its expansion."""
        return plan.encoder, self._expansion()

    def _encoder(self, learned: Any) -> Encoder:
        encoder: Encoder = learned.plan.encoder
        return encoder

    def _scores_of(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        found: Tensor = learned.answer.scores(self.rows(learned.plan, graph, nodes))
        return found
