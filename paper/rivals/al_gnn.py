"""AL-GNN: ridge regression on embeddings of a graph network that nobody trains."""

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
from undrift.learners.additive import AdditiveLearner, Classifier, Known
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Grid
from undrift.learners.parts.expanded import DrawnRows
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True)
class RandomRows(DrawnRows):
    """Expanded embeddings of an encoder."""

    num_features: int
    hidden: tuple[int, ...]
    alpha: int
    seed: int

    def _every(self, graph: Graph) -> Tensor:
        shape, drawn = Architecture("gcn", self.hidden), torch.Generator().manual_seed(self.seed)
        encoder = Encoder.create(shape, graph.num_features, drawn, str(graph.device))
        return Expansion(shape.width, self.alpha, self.seed)(encoder.double().embed(graph))


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
    learned_type: ClassVar[type] = Known[RandomRows, ClassSums, Classifier]
    grid: ClassVar[Grid] = {"gamma": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)}

    gamma: Positive = 0.1
    alpha: int = 16
    hidden: tuple[int, ...] = (128, 128)

    def __post_init__(self) -> None:
        Expansion(Architecture("gcn", self.hidden).width, self.alpha, self.seed)  # rejects others

    def _plan(self, task: Task, progress: Progress) -> RandomRows:
        return RandomRows(task.graph.num_features, self.hidden, self.alpha, self.seed)

    def _solve(
        self, plan: RandomRows, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        return Classifier(solve(sums.plain(), self.gamma))
