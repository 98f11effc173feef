"""Bare: fine-tune on every new task and do nothing against forgetting. The lower bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from undrift.learners.parts.training.backbone import Backbone
from undrift.learners.parts.training.model_learner import (
    ModelLearned,
    ModelLearner,
    TaskTraining,
)
from undrift.streams.task import Task
from undrift.typing import Progress


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
    keeps: ClassVar[str] = "one encoder and head"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = ModelLearned

    backbone: Backbone = field(default_factory=Backbone)

    def _learn(self, task: Task, progress: Progress) -> ModelLearned:
        training = TaskTraining.of(self, task, self.learned_)
        return ModelLearned(*training.known(training.train(progress)))
