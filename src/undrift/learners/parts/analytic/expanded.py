"""Embeddings that are expanded by a fixed random map, and scores that are linear in them."""

from __future__ import annotations

from abc import ABC
from typing import Any

from torch import Tensor

from undrift.analytic.random_maps import Expansion
from undrift.analytic.statistics import one_hot
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.base import Learner
from undrift.learners.kept import RowsOf
from undrift.learners.parts.training.backbone import Backbone
from undrift.machine import need
from undrift.sharing import is_shared, once
from undrift.sparse import row_index
from undrift.streams.task import Task


def embedded(encoder: Encoder, graph: Graph, nodes: Tensor | None = None) -> Tensor:
    """Embeddings of every node, or of some, in float64; shared by learners side by side.

    In float64 a row does not depend, to 1e-12, on which others are computed with it, so some rows
    may be computed alone, and again after a change of the graph.
    """
    field = None
    if nodes is not None and not is_shared():
        field = ReceptiveField.of(graph, row_index(nodes, graph.num_nodes), encoder.hops)
    if field is not None:
        return encoder.double().embed(field.graph)[field.at]
    h = once(lambda: encoder.double().embed(graph), "embedded", encoder, graph)
    return h if nodes is None else h[nodes.to(h.device)]


def targets_of(task: Task, classes: tuple[int, ...]) -> Tensor:
    """Y of the task's training nodes, with a column per class; shared side by side."""
    labels = task.labels[task.train]
    return once(lambda: one_hot(labels, classes), "targets", task, classes)


def checked_expansion(backbone: Backbone, alpha: int, seed: int) -> Expansion:
    """The random map of embeddings; one that memory does not hold is an error."""
    width = backbone.architecture().width
    columns = width * alpha
    what = f"an expansion by alpha = {alpha:,} to {columns:,} columns"
    need(8 * columns**2, what, "lower alpha, or use a machine with more")
    return Expansion(width, alpha, seed)


class Expanded(Learner, ABC):
    """For a learner whose classifier reads the embeddings of its `encoder`, expanded by `alpha`.

    No dataclass itself: what is annotated here are fields of the methods.
    """

    alpha: int
    backbone: Backbone

    def embed(self, graph: Graph) -> Tensor:
        """The encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        encoder: Encoder = self.learned_.encoder
        return encoder.embed(graph).cpu()

    def _expansion(self) -> Expansion:
        return checked_expansion(self.backbone, self.alpha, self.seed)

    def _expanded(self, encoder: Encoder, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        return self._expansion()(embedded(encoder, graph, nodes))

    def _rows_by(self, encoder: Encoder) -> RowsOf:
        """The rows that this encoder makes, as they are summed."""
        return lambda graph, nodes: self._expanded(encoder, graph, nodes).double()

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        scores: Tensor = self._expanded(learned.encoder, graph, nodes) @ learned.classifier
        return scores

    def _hops(self, learned: Any, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        return self.backbone.architecture().reach
