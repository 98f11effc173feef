"""SGC with ridge regression: features some hops away, and one linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Sketch
from undrift.analytic.solve import solve
from undrift.graphs import Graph
from undrift.learners.additive import AdditiveLearner, Classifier, Known, RowPlan
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.backbone import Grid
from undrift.propagation.mixes import Mix, Propagated
from undrift.sharing import once
from undrift.streams.task import Task
from undrift.typing import Progress, Rows


@dataclass(frozen=True)
class HopRows(RowPlan):
    """Features some hops away; a sketch of them is drawn from the seed."""

    num_features: int
    hops: int
    channels: bool
    sketch: int
    seed: int

    @property
    def propagated(self) -> Propagated:
        """How the hops are mixed."""
        mix: Mix = "concat" if self.channels else "hop"
        return Propagated(mix, self.hops)

    @property
    def furthest(self) -> int:
        """K."""
        return self.hops

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """Z, made for every node, once for learners side by side."""
        every = once(lambda: self._everywhere(graph), "rows", self, graph)
        return every if nodes is None else every[nodes]

    def _everywhere(self, graph: Graph) -> Rows:
        everyone = torch.arange(graph.num_nodes, device=graph.device)
        mix, sketch = self.propagated, None
        if 0 < self.sketch < mix.width(graph.num_features):
            size = max(1, self.sketch // mix.blocks)
            sketch = Sketch(graph.num_features, size, self.seed)
        return mix.rows(graph, everyone, sketch)


@dataclass(kw_only=True)
class SgcRidge(AdditiveLearner[HopRows, ClassSums, Classifier]):
    """SGC with ridge regression on `A^K X`, or on `[X, AX, ..., A^K X]`.

        W = (sum z^T z + gamma mean(diag) I)^-1 sum z^T y    over all tasks

    `hops`: K. `channels=True` keeps every hop as columns of its own, as SIGN does. `sketch`: rows
    of more columns are sketched to this many (`Sketch`); 0 never. Every node weighs the same. Rows
    are scaled to length one before and after.

    >>> from undrift.testing.graphs import tiny_stream
    >>> task = tiny_stream().task(0)  # of 12 features
    >>> for channels in (False, True):
    ...     learner = SgcRidge(hops=2, channels=channels).observe(task)
    ...     learner.inventory().sums[0].width  # columns of a row
    12
    36
    """

    name: ClassVar[str] = "sgc-ridge"
    display: ClassVar[str] = "SGC + ridge"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Gaur and Sharma, arXiv 2605.25662"
    keeps: ClassVar[str] = "sums R and Q of the classifier"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    learned_type: ClassVar[type] = Known[HopRows, ClassSums, Classifier]
    grid: ClassVar[Grid] = {
        "gamma": (0.01, 0.1, 1.0, 10.0),
        "hops": (1, 2),
    }

    gamma: float = 0.1
    hops: int = 2
    channels: bool = False
    sketch: int = 3072

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_not_negative(sketch=self.sketch)
        _ = self._rows(1).propagated  # rejects hops that are none

    def _rows(self, num_features: int) -> HopRows:
        return HopRows(num_features, self.hops, self.channels, self.sketch, self.seed)

    def _plan(self, task: Task, progress: Progress) -> HopRows:
        return self._rows(task.graph.num_features)

    def _solve(
        self, plan: HopRows, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        progress("classify", 0, 1)
        weights = solve(sums.plain(), self.gamma, relative=True)
        progress("classify", 1, 1)
        return Classifier(weights)
