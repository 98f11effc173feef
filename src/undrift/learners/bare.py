"""Bare: fine-tune on every new task and do nothing against forgetting. The lower bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.model_learner import ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class BareLearned:
    """What Bare keeps: one encoder and one head over all classes seen."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model


@dataclass(kw_only=True)
class Bare(ModelLearner):
    """Cross-entropy over all classes seen, on the current task's nodes only.

        L = CE(head(encoder(x)), y)

    The head grows by a task's classes; encoder and head go on from the task before.

    Cost: one training per task. Memory: one model.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Bare(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "bare"
    display: ClassVar[str] = "Bare"
    family: ClassVar[str] = "bound"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "one encoder and head"
    learned_type: ClassVar[type] = BareLearned

    backbone: Backbone = field(default_factory=Backbone)

    def _learn(self, task: Task, progress: Progress) -> BareLearned:
        before: BareLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        graph, classes = training.graph, training.classes
        model = training.train(progress)
        return BareLearned(classes, graph.num_features, training.t + 1, model)
