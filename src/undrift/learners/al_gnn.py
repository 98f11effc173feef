"""AL-GNN: an encoder that nobody trains, and every class by recursive least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion
from undrift.analytic.solve import solve
from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.additive import AdditiveLearner, Classifier, Known, RowPlan
from undrift.learners.base import at_nodes
from undrift.learners.parameters import check_positive
from undrift.learners.parts.backbone import Grid
from undrift.sharing import once
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True)
class RandomRows(RowPlan):
    """Expanded embeddings of an encoder; both are drawn from the seed."""

    num_features: int
    hidden: tuple[int, ...]
    alpha: int
    seed: int

    @property
    def architecture(self) -> Architecture:
        """Of the encoder."""
        return Architecture("gcn", self.hidden)

    @property
    def expansion(self) -> Expansion:
        """Of the embeddings."""
        return Expansion(self.architecture.width, self.alpha, self.seed)

    @property
    def furthest(self) -> int:
        """A hop per layer."""
        return self.architecture.reach

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """H, made for every node, once for learners side by side."""

        def make() -> Tensor:
            generator = torch.Generator().manual_seed(self.seed)
            device = str(graph.device)
            encoder = Encoder.create(self.architecture, graph.num_features, generator, device)
            return self.expansion(encoder.double().embed(graph))

        return at_nodes(once(make, "rows", self, graph), nodes)


@dataclass(kw_only=True)
class AlGnn(AdditiveLearner[RandomRows, ClassSums, Classifier]):
    """AL-GNN: ridge regression on the expanded embeddings of a GCN with random weights.

        H = relu(f W_psi),    W = (sum H^T H + gamma I)^-1 sum H^T Y    over all tasks

    f are the embeddings of a GCN of widths `hidden`, whose weights are drawn from the seed and
    stay: no gradient is ever computed. Sums are kept in place of the published recursion.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = AlGnn(hidden=(8,)).observe(first).observe(second)
    >>> learner.forget(first).classes_  # no encoder was trained on the first task
    (2, 3)
    """

    name: ClassVar[str] = "al-gnn"
    display: ClassVar[str] = "AL-GNN"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Zhang et al., arXiv 2512.18295"
    keeps: ClassVar[str] = "sums R and Q of the classifier"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    learned_type: ClassVar[type] = Known[RandomRows, ClassSums, Classifier]
    grid: ClassVar[Grid] = {"gamma": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)}

    gamma: float = 0.1
    alpha: int = 16
    hidden: tuple[int, ...] = (128, 128)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        _ = self._rows(1).expansion  # rejects an alpha that is none

    def _rows(self, num_features: int) -> RandomRows:
        return RandomRows(num_features, self.hidden, self.alpha, self.seed)

    def _plan(self, task: Task, progress: Progress) -> RandomRows:
        return self._rows(task.graph.num_features)

    def _solve(
        self, plan: RandomRows, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        progress("classify", 0, 1)
        weights = solve(sums.plain(), self.gamma)
        progress("classify", 1, 1)
        return Classifier(weights)
