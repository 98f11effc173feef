"""ACIL: freeze the base encoder, learn every class by ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.encoders.encoder import Encoder
from undrift.learners.base import check_positive
from undrift.learners.parts.analytic.class_balance import balanced_rows, class_share
from undrift.learners.parts.analytic.frozen_encoder import (
    ExpandedLearner,
    base_encoder,
    targets_of,
)
from undrift.learners.parts.training.backbone import Backbone
from undrift.streams.task import Task, joined
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class AcilLearned:
    """What ACIL keeps: the frozen encoder, the sums and the classifier."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    encoder: Encoder
    bank: RidgeBank
    classifier: Tensor


@dataclass(kw_only=True)
class Acil(ExpandedLearner):
    """Train an encoder on the base task, freeze it, and fit all classes in closed form.

        H = relu(f W_psi),    W = (sum H^T H + gamma I)^-1 sum H^T Y    over all tasks

    with a fixed random `W_psi` of `alpha` times the width. The published recursion of the inverse
    has the same solution (`undrift.testing.references`); sums are kept instead, as they add
    up without collecting rounding. `balanced`: every class weighs the same, not every node.

    Cost per task after the first: one forward pass, one Gram product, one factorisation. Memory:
    8 alpha d (alpha d + C) bytes. Reference: Zhuang et al., "ACIL: Analytic Class-Incremental
    Learning with Absolute Memorization and Privacy Protection", NeurIPS 2022.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Acil(alpha=2, backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "acil"
    display: ClassVar[str] = "ACIL"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Zhuang et al., NeurIPS 2022"
    keeps: ClassVar[str] = "R and Q of the classifier, one encoder"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = AcilLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-3, 1e-2, 1e-1, 1.0),
        "alpha": (1, 2, 4, 8, 16, 32, 64),
    }

    gamma: float = 0.1
    alpha: int = 16
    balanced: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        self._expansion()

    def _learn(self, task: Task, progress: Progress) -> AcilLearned:
        before: AcilLearned | None = self.learned_
        if before is None:
            encoder = base_encoder(self, task, progress)
            bank = RidgeBank.empty(self._expansion().outputs, self.gamma, device=self.device)
            classes, tasks = task.classes, 1
        else:
            encoder, bank = before.encoder, before.bank
            classes, tasks = joined(before.classes, task.classes), before.tasks + 1
        progress("classify", 0, 1)
        weights = None
        if self.balanced:
            weights = balanced_rows(task, "train", class_share(task, bank), self.once)
        inputs = ("rows", encoder, task, self._expansion())
        rows = self.once(lambda: self._expanded(encoder, task.graph, task.train), *inputs)
        bank = bank.add(rows, targets_of(task, classes, self.once), weights, self.once)
        classifier = bank.solve()
        progress("classify", 1, 1)
        return AcilLearned(classes, task.graph.num_features, tasks, encoder, bank, classifier)
