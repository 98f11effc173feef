"""AL-GNN: an encoder that nobody trains, and every class by recursive least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

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


@dataclass(kw_only=True)
class AlGnn(SeededLearner):
    """Ridge regression on the expanded embeddings of a GCN with random weights.

        H = relu(f W_psi),    W = (sum H^T H + gamma I)^-1 sum H^T Y    over all tasks

    f are the embeddings of a GCN whose weights are drawn from the seed and stay: no gradient is
    ever computed. `hidden`: its widths. The published recursion of the inverse has the same
    solution; sums are kept instead, as they add up without collecting rounding (`acil` does the
    same with an encoder that was trained on the base task). What is known of the paper, and what
    is not: docs/methods/al-gnn.md.

    Cost per task: one forward pass, one Gram product, one factorisation. Memory:
    8 alpha d (alpha d + 2 C) bytes. Reference: Zhang et al., "AL-GNN: Privacy-Preserving and
    Replay-Free Continual Graph Learning via Analytic Learning", arXiv 2512.18295.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> AlGnn(alpha=2).observe(first).observe(second).scores(first.graph).shape
    torch.Size([20, 4])
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
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    }

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
