"""A base encoder that is trained once and frozen, for the analytic methods."""

from __future__ import annotations

from torch import Tensor

from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.randomness import generator_for
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["base_encoder", "training_labels"]


def base_encoder(
    backbone: Backbone, task: Task, graph: Graph, seed: int, progress: Progress
) -> Encoder:
    """The encoder after training on the base task; its head is thrown away."""
    generator = generator_for(seed, 0)
    model = backbone.model_for(graph, len(task.classes), generator)
    trained = backbone.train(
        model,
        graph,
        task,
        task.classes,
        t=0,
        generator=generator,
        progress=progress,
        phase="train",
    )
    return trained.encoder


def training_labels(task: Task, graph: Graph) -> tuple[Tensor, Tensor]:
    """The mask of the training nodes on the graph's device, and their labels."""
    assert graph.labels is not None  # noqa: S101  # a task has labels
    train = task.train.to(graph.device)
    return train, graph.labels[train]
