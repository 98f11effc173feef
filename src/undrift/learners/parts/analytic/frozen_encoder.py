"""A base encoder that is trained once and frozen, for the analytic methods."""

from __future__ import annotations

from torch import Tensor

from undrift.analytic.statistics import one_hot
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.learners.parts.training.model_learner import base_training
from undrift.sharing import once, trained_once
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["base_encoder", "embedded", "targets_of", "training_labels"]


def base_encoder(
    backbone: Backbone, task: Task, graph: Graph, seed: int, progress: Progress
) -> Encoder:
    """The encoder after training on the base task; its head is thrown away."""
    generator = generator_for(seed, 0)
    model = backbone.model_for(graph, len(task.classes), generator)

    def train() -> Model:
        return backbone.train(
            model,
            graph,
            task,
            task.classes,
            t=0,
            generator=generator,
            progress=progress,
            phase="train",
        )

    inputs = base_training(backbone, task, str(graph.device))
    return trained_once(train, generator, *inputs).encoder


def training_labels(task: Task, graph: Graph) -> tuple[Tensor, Tensor]:
    """The mask of the training nodes on the graph's device, and their labels."""
    assert graph.labels is not None  # noqa: S101  # a task has labels
    train = task.train.to(graph.device)
    return train, graph.labels[train]


def embedded(encoder: Encoder, graph: Graph, nodes: Tensor | None = None) -> Tensor:
    """Embeddings of every node, or of some, in float64; shared by learners side by side."""
    h = once(lambda: encoder.embed(graph).double(), "embedded", encoder, graph)
    return h if nodes is None else h[nodes.to(h.device)]


def targets_of(task: Task, graph: Graph, classes: tuple[int, ...]) -> Tensor:
    """Y of the task's training nodes, with a column per class; shared side by side."""

    def make() -> Tensor:
        return one_hot(training_labels(task, graph)[1], classes)

    return once(make, "targets", task.graph, classes, str(graph.device))
