"""ADR+: ADR with a ridge for merging and one for the classifier."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from undrift.learners.adr import AdrStages, Logits, Stages
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Grid, OngoingBackbone


@dataclass(kw_only=True)
class AdrPlus(AdrStages):
    """ADR+: the three stages of ADR, with a ridge for merging and one for the classifier.

        W_k = (R_k + gamma I)^-1 Q_k,    W = (R + classifier_gamma I)^-1 Q

    Unlike in ADR, HAM's sums are over all nodes of a task, and every class weighs the same in the
    classifier's sums. `alpha`, `logits`: as in `Adr`; where tasks bring one class each, set
    `logits="seen"`. Cost and memory: ADR's.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = AdrPlus(epochs=5, hidden=8).observe(first).observe(second)
    >>> {kept.name: kept.count for kept in learner.inventory().sums}  # all nodes, training nodes
    {'layer 1': 40, 'layer 2': 40, 'classifier': 24}
    """

    name: ClassVar[str] = "adr-plus"
    display: ClassVar[str] = "ADR+"
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
        "nodes": "all",
        "balance": "classifier",
        "start": "previous",
    }
    grid: ClassVar[Grid] = {"gamma": (1e-2, 1e-1, 1.0), "classifier_gamma": (1e-1, 1.0, 10.0)}

    gamma: Positive = 0.1
    classifier_gamma: Positive = 1.0
    alpha: int = 1
    logits: Logits = "task"
    backbone: OngoingBackbone = field(default_factory=OngoingBackbone)

    def _stages(self) -> Stages:
        return Stages("ham", self.gamma, self.classifier_gamma, "all", False, True)
