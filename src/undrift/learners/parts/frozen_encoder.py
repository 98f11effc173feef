"""For the analytic methods: sums over rows of a frozen base encoder."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from undrift.analytic.random_maps import Activation, Expansion
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.additive import AdditiveLearner, Classifier, RowPlan
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.expanded import checked_expansion, embedded
from undrift.learners.parts.model_learner import TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress, Rows


def base_encoder(learner: Any, task: Task, progress: Progress) -> Encoder:
    """The encoder after training on the base task; its head is thrown away."""
    encoder: Encoder = TaskTraining.of(learner, task, None).train(progress).encoder
    return encoder


@dataclass(frozen=True, eq=False)
class FrozenRows(RowPlan):
    """What rows depend on: an encoder, the batch that it was trained on, and an expansion.

    `trained_on` is the digest of that batch (`batch_digest`).
    """

    activation: ClassVar[Activation] = "relu"

    num_features: int
    encoder: Encoder
    trained_on: str
    alpha: int
    seed: int

    @property
    def furthest(self) -> int:
        """A hop per layer."""
        return self.encoder.hops

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """The expanded embeddings."""
        h = embedded(self.encoder, graph, nodes)
        return Expansion(h.shape[1], self.alpha, self.seed, self.activation)(h)


class FrozenLearner(AdditiveLearner[FrozenRows, Any, Classifier], ABC):
    """Sums over rows that are read off a frozen encoder, so that every verb is exact.

    But for the first batch, which the encoder was trained on: it cannot be forgotten or revised.
    No dataclass itself: what is annotated here are fields of the methods.
    """

    alpha: int
    backbone: Backbone

    def embed(self, graph: Graph) -> Tensor:
        """The encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        return self.known.plan.encoder.embed(graph).cpu()

    def _plan(self, task: Task, progress: Progress) -> FrozenRows:
        encoder = base_encoder(self, task, progress)
        where = task.graph.num_features, encoder, self._digest(task)
        return FrozenRows(*where, self.alpha, self.seed)

    def check_expansion(self) -> None:
        """Reject an alpha that is none, or for which there is no memory."""
        checked_expansion(self.backbone, self.alpha, self.seed)
