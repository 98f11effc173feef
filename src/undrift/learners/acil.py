"""ACIL: freeze the base encoder, learn every class by ridge regression."""

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion
from undrift.analytic.solve import solve
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.additive import AdditiveLearner, Classifier, Known, RowPlan
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Backbone, Grid
from undrift.learners.parts.expanded import base_encoder, embedded, expansion_of, weighed
from undrift.learners.reading import Embedding
from undrift.streams.task import Task, batch_digest
from undrift.typing import Progress, Rows


@dataclass(frozen=True, eq=False)
class AcilPlan(RowPlan[Classifier]):
    """What rows depend on: an encoder, the digest of its batch (`trained_on`), an expansion."""

    rare_columns: ClassVar[bool] = False

    num_features: int
    encoder: Encoder
    trained_on: str
    alpha: int
    seed: int

    @property
    def furthest(self) -> int:
        """A hop per layer."""
        return self.encoder.architecture.reach

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Rows:
        """The expanded embeddings."""
        h = embedded(self.encoder, graph, nodes)
        return Expansion(h.shape[1], self.alpha, self.seed)(h)


@dataclass(kw_only=True)
class Acil(Embedding, AdditiveLearner[AcilPlan, ClassSums, Classifier]):
    """ACIL: an encoder trained on the base task and frozen, and all classes in closed form.

        H = relu(f W_psi),    W = (sum H^T H + gamma I)^-1 sum H^T Y    over all tasks

    with a fixed random `W_psi` of `alpha` times the width. `balanced`: every class weighs the same,
    not every node. Rows are a fixed function of their batch, so every verb is exact but for the
    base task, which the encoder was trained on. The published recursion has the same solution.
    Cost per task: a forward pass, a Gram product, a factorisation, 8 alpha d (alpha d + 2 C) bytes.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Acil(epochs=5, hidden=8).observe(first)
    >>> before = learner.embed(first.graph)
    >>> bool((learner.observe(second).embed(first.graph) == before).all())  # no drift
    True
    >>> learner.forget(second).classes_
    (0, 1)
    """

    name: ClassVar[str] = "acil"
    display: ClassVar[str] = "ACIL"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Zhuang et al., NeurIPS 2022"
    keeps: ClassVar[str] = "sums R and Q of the classifier, one encoder"
    learned_type: ClassVar[type] = Known[AcilPlan, ClassSums, Classifier]
    encoder_at: ClassVar[str] = "plan.encoder"
    grid: ClassVar[Grid] = {"gamma": (1e-3, 1e-2, 1e-1, 1.0), "alpha": (1, 2, 4, 8, 16, 32, 64)}

    gamma: Positive = 0.1
    alpha: int = 16
    balanced: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        expansion_of(self)  # rejects an alpha that is none

    def _plan(self, task: Task, progress: Progress) -> AcilPlan:
        encoder = base_encoder(self, task, progress)
        where = task.graph.num_features, encoder, batch_digest(task)
        return AcilPlan(*where, self.alpha, self.seed)

    def _solve(
        self, plan: AcilPlan, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        return Classifier(solve(weighed(sums, balanced=self.balanced), self.gamma))
