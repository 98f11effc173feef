"""ADR+: ADR with what was measured to help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from undrift.learners.parameters import check_positive
from undrift.learners.parts.analytic.adaptation import Logits, Start
from undrift.learners.parts.analytic.adr_stages import AdrStages, Balance
from undrift.learners.parts.analytic.class_balance import Nodes
from undrift.learners.parts.training.backbone import Backbone
from undrift.merging.merger import MergeSettings

Balanced = Literal["none", "classifier", "both"]


@dataclass(kw_only=True)
class AdrPlus(AdrStages):
    """ADR's three stages, each with its own ridge: adapt, merge (HAM), reconstruct (ACR).

        W_k = (R_k + gamma I)^-1 Q_k,    W = (R + classifier_gamma I)^-1 Q

    Unlike ADR, by default HAM's sums are over `nodes="all"` of a task, and every class weighs the
    same in the classifier's sums (`balance`: `none`, `classifier` or `both` sums).

    `alpha`, `start`, `logits`: as in `Adr`; where tasks bring one class each, set `logits="seen"`.
    Cost and memory: ADR's. Reference: Song, Guan and Kong, "Analytic Drift Resister", and this
    package.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = AdrPlus(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "adr-plus"
    display: ClassVar[str] = "ADR+"
    family: ClassVar[str] = "analytic"
    keeps: ClassVar[str] = "sums R and Q per layer and of the classifier, two encoders"
    returns: ClassVar[bool] = True
    renamed: ClassVar[dict[str, str]] = {
        "cure": "compensation",
        "cure_gamma": "compensation_gamma",
        "pull": "ridge_prior",
    }
    gone: ClassVar[dict[str, Any]] = {
        "inputs": "own",
        "ridge_prior": "zero",
        "compensation": "none",
        "compensation_gamma": ...,
        "solver": "direct",
    }
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-2, 1e-1, 1.0),
        "classifier_gamma": (1e-1, 1.0, 10.0),
    }

    gamma: float = 0.1
    classifier_gamma: float = 1.0
    alpha: int = 1
    nodes: Nodes = "all"
    balance: Balanced = "classifier"
    start: Start = "previous"
    logits: Logits = "task"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma, classifier_gamma=self.classifier_gamma)
        self._expansion()

    def _rule(self) -> str:
        return "ham"

    def _settings(self) -> MergeSettings:
        return MergeSettings(self.gamma)

    def _ridge(self) -> tuple[float, bool]:
        return self.classifier_gamma, False

    def _balance(self) -> Balance:
        return Balance(merging=self.balance == "both", classifier=self.balance != "none")
