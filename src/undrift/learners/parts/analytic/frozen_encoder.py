"""For the analytic methods: sums over rows of a frozen base encoder."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.parts.analytic.expanded import Expanded
from undrift.learners.parts.sum_learner import SumLearner
from undrift.learners.parts.training.model_learner import TaskTraining, Trains
from undrift.streams.task import Task
from undrift.typing import Once, Progress


def base_encoder(learner: Trains, task: Task, progress: Progress) -> Encoder:
    """The encoder after training on the base task; its head is thrown away."""
    return TaskTraining.of(learner, task, None).train(progress).encoder


@dataclass(frozen=True, eq=False)
class FrozenRows:
    """What rows depend on: an encoder, and the batch that it was trained on (`batch_digest`)."""

    num_features: int
    encoder: Encoder
    trained_on: str


class FrozenLearner(Expanded, SumLearner, ABC):
    """Sums over rows that are read off a frozen encoder, so that every verb is exact.

    But for the first batch, which the encoder was trained on: it cannot be forgotten or revised.
    """

    once: Once
    seed: int

    def _fixed(self, task: Task, progress: Progress) -> FrozenRows:
        encoder = base_encoder(self, task, progress)
        return FrozenRows(task.graph.num_features, encoder, self._digest(task))

    def _looks(self, fixed: FrozenRows, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        return torch.full(nodes.shape, hops <= fixed.encoder.hops, device=nodes.device)

    def _trained_on(self, fixed: FrozenRows) -> str:
        return fixed.trained_on

    def _added(self, sums: Any, more: Any) -> Any:
        return self.once(lambda: sums + more, "both sums", sums, more)

    def _reach(self, fixed: FrozenRows, graph: Graph) -> Tensor:
        return torch.full((graph.num_nodes,), fixed.encoder.hops, device=graph.device)
