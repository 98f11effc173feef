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
from undrift.learners.additive import Classifier, HopPlan, Known, SeededLearner
from undrift.learners.parameters import check_positive
from undrift.learners.parts.backbone import Grid


@dataclass(kw_only=True)
class AlGnn(SeededLearner):
    """Ridge regression on the expanded embeddings of a GCN with random weights.

        H = relu(f W_psi),    W = (sum H^T H + gamma I)^-1 sum H^T Y    over all tasks

    f are the embeddings of a GCN of widths `hidden`, whose weights are drawn from the seed and
    stay: no gradient is ever computed. Sums are kept in place of the published recursion.
    """

    name: ClassVar[str] = "al-gnn"
    display: ClassVar[str] = "AL-GNN"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Zhang et al., arXiv 2512.18295"
    keeps: ClassVar[str] = "sums R and Q of the classifier"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    learned_type: ClassVar[type] = Known[HopPlan, ClassSums, Classifier]
    grid: ClassVar[Grid] = {"gamma": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)}

    gamma: float = 0.1
    alpha: int = 16
    hidden: tuple[int, ...] = (128, 128)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        self._expansion()

    def _expansion(self) -> Expansion:
        return Expansion(self._architecture().width, self.alpha, self.seed)

    def _architecture(self) -> Architecture:
        return Architecture("gcn", self.hidden)

    @property
    def settings(self) -> tuple[object, ...]:
        """Encoder and expansion are drawn from the seed."""
        return self.hidden, self.alpha, self.seed

    @property
    def reach(self) -> int:
        """A hop per layer."""
        return self._architecture().reach

    def rows_of(self, graph: Graph) -> Tensor:
        """H of every node."""
        generator = torch.Generator().manual_seed(self.seed)
        architecture, device = self._architecture(), str(graph.device)
        encoder = Encoder.create(architecture, graph.num_features, generator, device)
        return self._expansion()(encoder.double().embed(graph))

    def classifier(self, sums: ClassSums) -> Classifier:
        """W; there is no offset."""
        return Classifier(solve(sums.plain(), self.gamma))
