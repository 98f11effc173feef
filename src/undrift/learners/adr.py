"""ADR, the Analytic Drift Resister: adapt freely, merge in closed form, rebuild the classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from undrift.errors import unknown_name
from undrift.learners.parameters import check_positive
from undrift.learners.parts.analytic.adaptation import Logits, Start
from undrift.learners.parts.analytic.adr_stages import AdrStages, Balance
from undrift.learners.parts.analytic.class_balance import Nodes
from undrift.learners.parts.training.backbone import Backbone
from undrift.merging import RULES, merging_rule
from undrift.merging.merger import MergeSettings, Origin


@dataclass(kw_only=True)
class Adr(AdrStages):
    """ADR (Alg. 1): after every task, adapt, merge (HAM) and reconstruct the classifier (ACR).

        W_k = (sum H_k^T H_k + gamma I)^-1 sum H_k^T H_k W_k,t     per layer k (eqs. 4-7)
        W = (sum H^T H + gamma I)^-1 sum H^T Y                     classifier (eqs. 8-11)

    theta_t, with layers W_k,t, is trained on the task's cross-entropy (eq. 2). H_k are the inputs
    of layer k; H are the merged encoder's embeddings, expanded by `alpha`.

    `relative_gamma`: gamma times the mean diagonal. `merging`: `ham`, `none` ("w/o HAM") or another
    rule (`undrift.merging.RULES`, or `module:Class`). `origin`: what MagMax and TIES measure
    changes from, `base` or `initial` weights. `start` of theta_t: the `previous` theta, the
    `merged` or the `base` encoder, or `scratch`. `nodes` in the sums of a merging rule: `train` or
    `all`. `logits` of adaptation: the `task`'s classes or all `seen`. `balanced`: every class
    weighs the same, not every node, by weights that rows get as they arrive (`balanced_rows`), as
    HAM's sums, whose targets are no classes, could not be balanced later.
    Known classes may come back; as its encoders move, ADR cannot forget a batch or merge learners.

    Cost per task: training, and per layer a Gram product and a factorisation, d_in^3 / 3. Memory:
    8 (d_in^2 + d_in d_out) bytes per layer and 8 alpha d (alpha d + C). Reference: Song, Guan and
    Kong, "Analytic Drift Resister for Non-Exemplar Continual Graph Learning".

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Adr(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "adr"
    display: ClassVar[str] = "ADR"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Song, Guan and Kong, Analytic Drift Resister"
    keeps: ClassVar[str] = "sums R and Q per layer and of the classifier, two encoders"
    returns: ClassVar[bool] = True
    renamed: ClassVar[dict[str, str]] = {"merge": "merging"}
    gone: ClassVar[dict[str, Any]] = {"solver": "direct"}
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-3, 1e-2, 1e-1, 1.0),
        "alpha": (1, 2, 4, 8, 16, 32, 64),
    }

    gamma: float = 1.0
    alpha: int = 1
    relative_gamma: bool = False
    merging: str = "ham"
    origin: Origin = "base"
    start: Start = "previous"
    nodes: Nodes = "train"
    logits: Logits = "task"
    balanced: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        if self.merging not in ("none", *RULES.names()) and ":" not in self.merging:
            raise unknown_name("merging", self.merging, ("none", *RULES.names()))
        if self.merging != "none":
            merging_rule(self.merging)
        self._expansion()

    def _rule(self) -> str:
        return self.merging

    def _settings(self) -> MergeSettings:
        return MergeSettings(self.gamma, self.relative_gamma, self.origin)

    def _ridge(self) -> tuple[float, bool]:
        return self.gamma, self.relative_gamma

    def _balance(self) -> Balance:
        return Balance(merging=self.balanced, classifier=self.balanced)
