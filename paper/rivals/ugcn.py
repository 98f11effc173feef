"""UGCN: linear discriminant analysis on layers that nobody trains."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.solve import factorise
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.additive import AdditiveLearner, Classifier, Known
from undrift.learners.parts.backbone import Grid
from undrift.learners.parts.expanded import DrawnRows
from undrift.streams.task import Task
from undrift.typing import Progress, Rows


@dataclass(frozen=True)
class LayerRows(DrawnRows):
    """The layers of a graph network with random weights, side by side."""

    num_features: int
    hidden: tuple[int, ...]
    seed: int

    def _every(self, graph: Graph) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        operator = graph.operator().to(dtype=torch.float64)
        held: Rows = graph.features.double()
        layers = []
        for width in self.hidden:
            bound = math.sqrt(6 / (held.shape[1] + width))
            drawn = torch.rand(held.shape[1], width, dtype=torch.float64, generator=generator)
            held = (operator @ (held @ ((2 * drawn - 1) * bound).to(graph.device))).tanh()
            layers.append(held)
        return torch.cat(layers, dim=1)


@dataclass(kw_only=True)
class Ugcn(AdditiveLearner[LayerRows, ClassSums, Classifier]):
    """UGCN: linear discriminant analysis on the layers of a graph network with random weights.

        H_k = tanh(A H_{k-1} Theta_k),  H_0 = X,    z = [H_1, H_2, ...]
        s_c = mu_c^T P z - mu_c^T P mu_c / 2,    P = ((1 - e) S + e I)^-1

    Theta_k are uniform by Glorot's rule, drawn from the seed. mu_c are the means of the classes and
    S is the covariance around them, both from plain sums. `shrinkage`: e. `hidden`: the widths.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Ugcn(hidden=(8, 4)).observe(first)
    >>> learner.known.plan.rows_of(first.graph).shape  # both layers side by side
    torch.Size([20, 12])
    >>> learner.merge(learner.sibling().observe(second)).classes_
    (0, 1, 2, 3)
    """

    name: ClassVar[str] = "ugcn"
    display: ClassVar[str] = "UGCN"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Donghi et al., arXiv 2510.06819"
    keeps: ClassVar[str] = "class means and one covariance"
    learned_type: ClassVar[type] = Known[LayerRows, ClassSums, Classifier]
    grid: ClassVar[Grid] = {"shrinkage": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}

    shrinkage: float = 1e-4
    hidden: tuple[int, ...] = (1024, 1024)

    def __post_init__(self) -> None:
        if not 0 < self.shrinkage < 1:
            raise InputError(f"shrinkage must be between 0 and 1, not {self.shrinkage}")
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"hidden must be one width or more, each at least 1: {self.hidden}")

    def _plan(self, task: Task, progress: Progress) -> LayerRows:
        return LayerRows(task.graph.num_features, self.hidden, self.seed)

    def _solve(
        self, plan: LayerRows, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        """`P mu_c` and `-mu_c^T P mu_c / 2`."""
        means, scatter = sums.means, sums.products_around
        scatter *= (1 - self.shrinkage) / sums.total
        weights = factorise(scatter, self.shrinkage).solve(means).contiguous()
        return Classifier(weights, -(means * weights).sum(dim=0) / 2)
