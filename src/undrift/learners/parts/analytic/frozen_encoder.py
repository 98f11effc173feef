"""A base encoder that is trained once and frozen, for the analytic methods."""

from __future__ import annotations

from torch import Tensor

from undrift.analytic.statistics import one_hot
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.parts.training.model_learner import TaskTraining, Trains
from undrift.streams.task import Task
from undrift.typing import Once, Progress, unshared


def base_encoder(learner: Trains, task: Task, progress: Progress) -> Encoder:
    """The encoder after training on the base task; its head is thrown away."""
    return TaskTraining.of(learner, task, None).train(progress).encoder


def embedded(
    encoder: Encoder, graph: Graph, nodes: Tensor | None = None, once: Once = unshared
) -> Tensor:
    """Embeddings of every node, or of some, in float64; shared by learners side by side."""
    h = once(lambda: encoder.embed(graph).double(), "embedded", encoder, graph)
    return h if nodes is None else h[nodes.to(h.device)]


def targets_of(task: Task, classes: tuple[int, ...], once: Once = unshared) -> Tensor:
    """Y of the task's training nodes, with a column per class; shared side by side."""
    labels = task.labels[task.train]
    return once(lambda: one_hot(labels, classes), "targets", task, classes)
