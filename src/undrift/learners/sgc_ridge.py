"""SGC with ridge regression: propagated features and a solution."""

from dataclasses import dataclass
from typing import Any, ClassVar

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Sketch
from undrift.analytic.solve import solve
from undrift.graphs import Graph
from undrift.learners.additive import AdditiveLearner, Classifier, Known
from undrift.learners.nodes import every_node
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Grid
from undrift.learners.parts.expanded import DrawnRows
from undrift.propagation.mixes import Propagated
from undrift.propagation.plan import MOST_COLUMNS
from undrift.streams.task import Task
from undrift.typing import Progress, Rows


@dataclass(frozen=True)
class HopRows(DrawnRows):
    """Features some hops away, or a sketch of them."""

    num_features: int
    hops: int
    seed: int

    @property
    def furthest(self) -> int:
        """K."""
        return self.hops

    def _every(self, graph: Graph) -> Rows:
        wide = graph.num_features > MOST_COLUMNS
        sketch = Sketch(graph.num_features, MOST_COLUMNS, self.seed) if wide else None
        return Propagated("hop", self.hops).rows(graph, every_node(graph), sketch)


@dataclass(kw_only=True)
class SgcRidge(AdditiveLearner[HopRows, ClassSums, Classifier]):
    """SGC with ridge regression on `A^K X`.

        W = (sum z^T z + gamma mean(diag) I)^-1 sum z^T y    over all tasks

    `hops`: K. Rows of more than 3,072 columns are sketched to so many (`Sketch`). Every node weighs
    the same. Rows are scaled to length one before and after.

    >>> from undrift.testing.graphs import tiny_stream
    >>> task = tiny_stream().task(0)  # of 12 features
    >>> SgcRidge(hops=2).observe(task).inventory().sums[0].width  # columns of a row
    12
    """

    name: ClassVar[str] = "sgc-ridge"
    display: ClassVar[str] = "SGC + ridge"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Gaur and Sharma, arXiv 2605.25662"
    keeps: ClassVar[str] = "sums R and Q of the classifier"
    learned_type: ClassVar[type] = Known[HopRows, ClassSums, Classifier]
    gone: ClassVar[dict[str, Any]] = {"channels": False, "sketch": 3072}
    grid: ClassVar[Grid] = {"gamma": (0.01, 0.1, 1.0, 10.0), "hops": (1, 2)}

    gamma: Positive = 0.1
    hops: int = 2

    def __post_init__(self) -> None:
        Propagated("hop", self.hops)  # rejects hops that are none

    def _plan(self, task: Task, progress: Progress) -> HopRows:
        return HopRows(task.graph.num_features, self.hops, self.seed)

    def _solve(
        self, plan: HopRows, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        return Classifier(solve(sums.plain(), self.gamma, relative=True))
