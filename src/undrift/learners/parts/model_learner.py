"""`ModelLearner`: what every method that trains one encoder and head on does in the same way."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.encoders.training import Loss, Model, cross_entropy
from undrift.graphs import Graph
from undrift.learners.base import Learner, at_nodes
from undrift.learners.kept import Inventory
from undrift.learners.parts.backbone import Backbone, FeatureTeacher, OngoingBackbone, generator_for
from undrift.learners.reading import Embedding
from undrift.sharing import drawn_once
from undrift.streams.task import Task, joined
from undrift.typing import Progress, silent


@dataclass(frozen=True, eq=False)
class ModelLearned:
    """What such a learner keeps: one encoder under one head over all classes seen."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model


def base_training(backbone: Backbone, task: Task) -> tuple[object, ...]:
    """What plain training on the first task depends on, beside the generator."""
    return "base training", backbone.first(), task, task.classes


@dataclass(frozen=True, eq=False)
class TaskTraining:
    """Task t as it reaches a learner with one growing model.

    `classes`: all seen, by which the head of `model` has grown. `before`: what was known, if any.
    """

    learner: Any
    task: Task
    before: Any
    t: int
    classes: tuple[int, ...]
    model: Model
    generator: torch.Generator

    @classmethod
    def of(cls, learner: Any, task: Task, before: Any) -> TaskTraining:
        """The task as it reaches this learner, which knew `before`."""
        t = before.tasks if before else 0
        generator = generator_for(learner.seed, t)
        classes = joined(before.classes if before else (), task.classes)
        if before:
            new = len(classes) - len(before.classes)
            model = replace(before.model, head=before.model.head.grow(new, generator))
        else:
            model = learner.backbone.model_for(task.graph, len(classes), generator)
        return cls(learner, task, before, t, classes, model, generator)

    @property
    def own(self) -> Tensor:
        """The head's columns of the task's classes."""
        places = [self.classes.index(c) for c in self.task.classes]
        return torch.tensor(places, device=self.task.graph.device)

    @cached_property
    def teacher(self) -> FeatureTeacher:
        """The encoder that training starts from."""
        return FeatureTeacher(self.model.encoder, self.task.graph)

    def known(self, model: Model) -> tuple[tuple[int, ...], int, int, Model]:
        """The parts of `ModelLearned` after the task."""
        return self.classes, self.task.graph.num_features, self.t + 1, model

    def train(self, progress: Progress, loss: Loss = cross_entropy) -> Model:
        """The model after training; the first task's plain training is shared between methods."""
        backbone: Backbone = self.learner.backbone
        given, noise = (self.model, self.task, self.classes), self.generator

        def train() -> Model:
            return backbone.train(*given, t=self.t, generator=noise, progress=progress, loss=loss)

        if self.t > 0 or loss is not cross_entropy:
            return train()
        return drawn_once(train, noise, *base_training(backbone, self.task))


@dataclass(kw_only=True)
class ModelKeeper(Embedding, Learner, ABC):
    """A learner whose knowledge has a `model`: its logits are the scores.

    `no_sums`: what is kept that is no sum over rows (`Inventory.rest`).
    """

    returns: ClassVar[bool] = True
    keeps: ClassVar[str] = "one encoder and head"
    learned_type: ClassVar[Any] = ModelLearned
    encoder_at: ClassVar[str] = "model"
    no_sums: ClassVar[tuple[str, ...]] = ("model",)

    backbone: Backbone = field(default_factory=Backbone)

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        return at_nodes(learned.model.double().logits(graph), nodes)

    def _hops(self, learned: Any, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        return self.backbone.architecture().reach

    def _temperature(self, learned: Any) -> float | None:
        return 1.0

    def _inventory(self, learned: Any) -> Inventory:
        return Inventory(rest=self.no_sums)


@dataclass(kw_only=True)
class ModelLearner(ModelKeeper):
    """One whose model every task trains on `_loss`; then `_kept` says what is known.

    `phase`: the name of the latter in progress and costs.
    """

    phase: ClassVar[str] = ""

    backbone: OngoingBackbone = field(default_factory=OngoingBackbone)

    def _learn(self, task: Task, progress: Progress) -> Any:
        training = TaskTraining.of(self, task, self.learned_)
        phase = progress if self.phase else silent
        model = training.train(progress, self._loss(training))
        phase(self.phase, 0, 1)
        known = self._kept(training, model)
        phase(self.phase, 1, 1)
        return known

    def _loss(self, training: TaskTraining) -> Loss:
        """What a step of the task's training makes small."""
        return cross_entropy

    def _kept(self, training: TaskTraining, model: Model) -> Any:
        """What is known with the trained model; the data is still there."""
        return ModelLearned(*training.known(model))
