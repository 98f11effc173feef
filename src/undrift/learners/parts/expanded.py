"""Rows by fixed random maps, most of them of embeddings; scores and sums linear in them."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion
from undrift.analytic.statistics import RidgeStatistics, one_hot
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.additive import Classifier, RowPlan
from undrift.learners.base import at_nodes
from undrift.learners.kept import Nodes
from undrift.learners.parts.backbone import columns_of
from undrift.learners.parts.model_learner import TaskTraining
from undrift.machine import need
from undrift.sharing import is_shared, once
from undrift.sparse import row_index
from undrift.streams.task import Task
from undrift.typing import Progress, Rows


def embedded(encoder: Encoder, graph: Graph, nodes: Tensor | None = None) -> Tensor:
    """Embeddings of all nodes, or of some, in float64: rows are independent, to 1e-12."""
    if nodes is not None and not is_shared():
        index, hops = row_index(nodes, graph.num_nodes), encoder.architecture.reach
        field = ReceptiveField.of(graph, index, hops)
        if field is not None:
            return encoder.double().embed(field.graph)[field.at]
    return at_nodes(once(lambda: encoder.double().embed(graph), "embedded", encoder, graph), nodes)


def targets_of(task: Task, classes: tuple[int, ...]) -> Tensor:
    """Y of the task's training nodes, with a column per class; shared side by side."""
    labels = task.labels[task.train]
    return once(lambda: one_hot(labels, classes), "targets", task, classes)


def expansion_of(learner: Any) -> Expansion:
    """The random map of a learner's embeddings; one that memory does not hold is an error."""
    width, alpha = learner.backbone.architecture().width, learner.alpha
    what = f"an expansion by alpha = {alpha:,} to {width * alpha:,} columns"
    need(8 * (width * alpha) ** 2, what, "lower alpha, or use a machine with more")
    return Expansion(width, alpha, learner.seed)


class DrawnRows(RowPlan[Classifier]):
    """Rows that depend on the seed alone, made for every node, once for learners side by side."""

    hidden: tuple[int, ...]

    @property
    def furthest(self) -> int:
        """A hop per layer."""
        return len(self.hidden)

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """Those of all nodes or of these."""
        every = once(lambda: self._every(graph), "rows", self, graph)
        return every if nodes is None else every[nodes.to(every.device)]

    @abstractmethod
    def _every(self, graph: Graph) -> Rows:
        """Those of every node."""


def weighed(sums: ClassSums, *, balanced: bool) -> RidgeStatistics:
    """R and Q of a classifier; balanced, every class weighs as much as one of mean size."""
    if not balanced:
        return sums.plain()
    even = sums.balanced()
    size = sums.count / max(even.energy, 1.0)  # the energy is the number of classes with rows
    return RidgeStatistics(even.gram * size, even.moment * size, even.count, even.energy * size)


def nodes_that_count(task: Task, nodes: Nodes) -> Tensor:
    """Their indices; shared side by side."""
    mask = task.train if nodes == "train" else torch.ones_like(task.train)
    return once(lambda: mask.nonzero().flatten(), "nodes that count", task, nodes)


def mean_class_size(task: Task) -> float:
    """What a class of the first task weighs on average, and every class ever in balanced rows."""
    return int(task.train.sum()) / len(task.classes)


def balanced_rows(task: Task, nodes: Nodes, share: float, seen: tuple[int, ...] = ()) -> Tensor:
    """A weight per row of a sum over these nodes, for sums that cannot be balanced later.

    Training nodes of class c weigh `share / n_c` each, n_c those of the class so far: `seen` has
    those of earlier batches, per class of the task. `all` nodes weigh the same, and together as
    much as the training nodes would. In float64; shared side by side.
    """
    earlier = seen or (0,) * len(task.classes)

    def make() -> Tensor:
        place = columns_of(task.graph, task.classes)[task.train]
        sizes = place.bincount(minlength=len(task.classes))
        if nodes == "train":
            weights = share / (sizes + torch.tensor(earlier, device=sizes.device)).double()
            return torch.as_tensor(weights[place])
        pairs, n = zip(sizes.tolist(), earlier, strict=True), task.graph.num_nodes
        each = share * sum(size / (size + before) for size, before in pairs) / n
        return torch.full((n,), each, dtype=torch.float64, device=sizes.device)

    return once(make, "balanced rows", task, nodes, share, earlier)


def base_encoder(learner: Any, task: Task, progress: Progress) -> Encoder:
    """The encoder after training on the base task; its head is thrown away."""
    return TaskTraining.of(learner, task, None).train(progress).encoder
