"""SGC with ridge regression: features some hops away, and one linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Sketch
from undrift.analytic.solve import solve
from undrift.graphs import Graph
from undrift.learners.additive import Classifier, HopPlan, Known, SeededLearner
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.backbone import Grid
from undrift.learners.parts.propagation.propagated import Mix, Propagated
from undrift.typing import Rows


@dataclass(kw_only=True)
class SgcRidge(SeededLearner):
    """Ridge regression on `A^K X`, or on `[X, AX, ..., A^K X]`.

        W = (sum z^T z + gamma mean(diag) I)^-1 sum z^T y    over all tasks

    `hops`: K. `channels=True` keeps every hop as columns of its own, as SIGN does. `sketch`: rows
    of more columns are sketched to this many (`Sketch`); 0 never. Every node weighs the same. Rows
    are scaled to length one before and after.
    """

    name: ClassVar[str] = "sgc-ridge"
    display: ClassVar[str] = "SGC + ridge"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Gaur and Sharma, arXiv 2605.25662"
    keeps: ClassVar[str] = "sums R and Q of the classifier"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    learned_type: ClassVar[type] = Known[HopPlan, ClassSums, Classifier]
    grid: ClassVar[Grid] = {"gamma": (0.01, 0.1, 1.0, 10.0), "hops": (1, 2)}

    gamma: float = 0.1
    hops: int = 2
    channels: bool = False
    sketch: int = 3072

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_not_negative(sketch=self.sketch)
        self._propagated()

    def _propagated(self) -> Propagated:
        mix: Mix = "concat" if self.channels else "hop"
        return Propagated(mix, self.hops)

    @property
    def settings(self) -> tuple[object, ...]:
        """The sketch is drawn from the seed."""
        return self.hops, self.channels, self.sketch, self.seed

    @property
    def reach(self) -> int:
        """K."""
        return self.hops

    def rows_of(self, graph: Graph) -> Rows:
        """Z of every node."""
        everyone = torch.arange(graph.num_nodes, device=graph.device)
        mix = self._propagated()
        sketch = None
        if 0 < self.sketch < mix.width(graph.num_features):
            size = max(1, self.sketch // mix.blocks)
            sketch = Sketch(graph.num_features, size, self.seed)
        return mix.rows(graph, everyone, sketch)

    def classifier(self, sums: ClassSums) -> Classifier:
        """W; there is no offset."""
        return Classifier(solve(sums.plain(), self.gamma, relative=True))
