"""ACIL: freeze the base encoder, learn every class by ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.solve import solve
from undrift.learners.additive import Classifier, Known
from undrift.learners.parameters import check_positive
from undrift.learners.parts.backbone import Backbone, Grid
from undrift.learners.parts.expanded import weighed
from undrift.learners.parts.frozen_encoder import FrozenLearner, FrozenRows
from undrift.typing import Progress


@dataclass(kw_only=True)
class Acil(FrozenLearner):
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
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    learned_type: ClassVar[type] = Known[FrozenRows, ClassSums, Classifier]
    grid: ClassVar[Grid] = {"gamma": (1e-3, 1e-2, 1e-1, 1.0), "alpha": (1, 2, 4, 8, 16, 32, 64)}

    gamma: float = 0.1
    alpha: int = 16
    balanced: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        self.check_expansion()

    def _solve(
        self, plan: FrozenRows, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> Classifier:
        progress("classify", 0, 1)
        weights = solve(weighed(sums, balanced=self.balanced), self.gamma)
        progress("classify", 1, 1)
        return Classifier(weights)
