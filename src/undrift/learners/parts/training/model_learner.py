"""`ModelLearner`: what every method with one encoder under one head answers in the same way."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from undrift.encoders.training import Loss, cross_entropy
from undrift.graphs import Graph
from undrift.learners.base import Learner, at_nodes
from undrift.learners.kept import Inventory, RowsOf
from undrift.learners.parts.training.backbone import (
    Backbone,
    Model,
    columns_among,
    generator_for,
)
from undrift.sharing import drawn_once
from undrift.streams.task import Task, joined
from undrift.typing import Progress


@dataclass(kw_only=True)
class ModelLearner(Learner, ABC):
    """A learner whose knowledge has a `model`: its logits are the scores. Methods add `_learn`.

    `no_sums`: what is kept that is no sum over rows (`Inventory.rest`); a method that keeps sums
    beside it says so in `_inventory`.
    """

    no_sums: ClassVar[tuple[str, ...]] = ("model",)

    def embed(self, graph: Graph) -> Tensor:
        """The encoder's embeddings of every node."""
        self._check_graph(graph)
        model: Model = self.learned_.model
        return model.embed(graph).cpu()

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        return at_nodes(learned.model.double().logits(graph), nodes)

    def _hops(self, learned: Any, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        hops: int = learned.model.encoder.hops
        return hops

    def _temperature(self, learned: Any) -> float | None:
        return 1.0

    def _inventory(self, learned: Any) -> Inventory:
        return Inventory(rest=self.no_sums)


def rows_by(model: Model) -> RowsOf:
    """Embeddings as rows, in float64."""
    return lambda graph, nodes: model.double().embed(graph)[nodes]


@dataclass(frozen=True, eq=False)
class ModelLearned:
    """What such a learner keeps: one encoder under one head over all classes seen."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model


def base_training(backbone: Backbone, task: Task) -> tuple[object, ...]:
    """What plain training on the first task depends on, beside the generator."""
    return "base training", backbone, task, task.classes


class Trains(Protocol):
    """A learner that trains one model, task after task."""

    backbone: Backbone
    seed: int


class _Knows(Protocol):
    """What such a learner knows after some tasks."""

    @property
    def classes(self) -> tuple[int, ...]: ...
    @property
    def tasks(self) -> int: ...
    @property
    def model(self) -> Model: ...


@dataclass(frozen=True, eq=False)
class TaskTraining:
    """Task t as it reaches a learner with one growing model.

    `classes` are all classes seen, new ones last, and `model` is the one before it under a head
    that has grown by the new ones (at the first task a new one). `generator` is where the task's
    randomness comes from.
    """

    learner: Trains
    task: Task
    t: int
    classes: tuple[int, ...]
    model: Model
    generator: torch.Generator

    @classmethod
    def of(cls, learner: Trains, task: Task, before: _Knows | None) -> TaskTraining:
        """The task as it reaches this learner, which knew `before`."""
        t = before.tasks if before else 0
        generator = generator_for(learner.seed, t)
        classes = joined(before.classes if before else (), task.classes)
        if before:
            model = before.model.grow(len(classes) - len(before.classes), generator)
        else:
            model = learner.backbone.model_for(task.graph, len(classes), generator)
        return cls(learner, task, t, classes, model, generator)

    @property
    def graph(self) -> Graph:
        """The task's graph."""
        return self.task.graph

    @property
    def own(self) -> Tensor:
        """The head's columns of the task's classes."""
        return columns_among(self.classes, self.task)

    def known(self, model: Model) -> tuple[tuple[int, ...], int, int, Model]:
        """The parts of `ModelLearned` after the task."""
        return self.classes, self.graph.num_features, self.t + 1, model

    def train(self, progress: Progress, loss: Loss = cross_entropy) -> Model:
        """The model after training on the task with this loss.

        The first task's plain training is the same for every method: it is shared.
        """
        backbone, generator = self.learner.backbone, self.generator
        settings: dict[str, Any] = {"t": self.t, "generator": generator, "progress": progress}
        train = partial(backbone.train, self.model, self.task, self.classes, loss=loss, **settings)
        if self.t > 0 or loss is not cross_entropy:
            return train()
        inputs = base_training(backbone, self.task)
        return drawn_once(train, generator, *inputs)
