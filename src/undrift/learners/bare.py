"""Bare: fine-tune on every new task and do nothing against forgetting. The lower bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.parts.arrival import Arrival
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.model import Model
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Bare", "BareLearned"]


@dataclass(frozen=True, eq=False)
class BareLearned:
    """What Bare keeps: one encoder and one head over all classes seen."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model


@dataclass(kw_only=True)
class Bare(Learner):
    """Sequential cross-entropy over all classes seen, on the current task's nodes only.

    The head grows by a task's classes; encoder and head go on from the task before. Cost: one
    training per task; memory: one model.
    """

    name: ClassVar[str] = "bare"
    learned_type: ClassVar[type] = BareLearned

    backbone: Backbone = field(default_factory=Backbone)

    def _learn(self, task: Task, progress: Progress) -> BareLearned:
        before: BareLearned | None = self.learned_
        arrival = Arrival.of(self, task, before)
        graph, classes = arrival.graph, arrival.classes
        model = arrival.train(progress)
        return BareLearned(classes, graph.num_features, arrival.t + 1, model)

    def embed(self, graph: Graph) -> Tensor:
        """The encoder's embeddings of every node."""
        self._check_graph(graph)
        model: Model = self.learned_.model
        return model.embed(graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        logits: Tensor = learned.model.logits(graph)
        return logits
