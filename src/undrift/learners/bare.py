"""Bare: fine-tune on every new task and do nothing against forgetting. The lower bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(kw_only=True)
class Bare(ModelLearner):
    """Cross-entropy over all classes seen, on the current task's nodes only.

        L = CE(head(encoder(x)), y)

    The head grows by a task's classes; encoder and head go on from the task before. Cost: one
    training per task. Memory: one model.

    >>> from undrift.testing.graphs import tiny_stream
    >>> Bare.from_params(epochs=5).observe(tiny_stream().task(0)).classes_
    (0, 1)
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
