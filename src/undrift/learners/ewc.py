"""EWC, Elastic Weight Consolidation: keep the parameters that old likelihoods depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from undrift.learners.parameters import check_positive
from undrift.learners.parts.backbone import Backbone, Grid, Model
from undrift.learners.parts.importance import (
    Parameters,
    PenaltyLearned,
    check_draws,
    learn_with_penalty,
    loss_gradients,
)
from undrift.learners.parts.model_learner import ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(kw_only=True)
class Ewc(ModelLearner):
    """EWC: cross-entropy, plus a quadratic penalty around every old solution.

        L = CE + strength sum_{s<t} sum_p F_s (p - theta_s)^2

    CE is over all classes seen. F_s is the diagonal of the empirical Fisher information: the mean
    over the task's training nodes of the squared gradient of a node's log-likelihood at theta_s.
    `draws` backward passes with random signs estimate it; 0 takes one pass per node.
    `batch_fisher`, the form of the CGLB code: the squared gradient of a batch's mean loss, in which
    nodes cancel.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> def moved(strength):
    ...     learner = Ewc(strength=strength, epochs=20, hidden=8, lr_next=0.1).observe(first)
    ...     before = learner.embed(first.graph)
    ...     return float((learner.observe(second).embed(first.graph) - before).norm())
    >>> moved(strength=1e6) < moved(strength=1e-6)  # the penalty holds the encoder
    True
    """

    name: ClassVar[str] = "ewc"
    display: ClassVar[str] = "EWC"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Kirkpatrick et al., PNAS 2017"
    keeps: ClassVar[str] = "one encoder and head, an importance and an anchor per parameter"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = PenaltyLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "penalty")
    grid: ClassVar[Grid] = {"strength": (1.0, 1e2, 1e3, 1e4, 3e4, 1e5, 1e6)}

    strength: float = 3e4
    draws: int = 32
    batch_fisher: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(strength=self.strength)
        check_draws(self.draws, least=1)

    def _learn(self, task: Task, progress: Progress) -> PenaltyLearned:
        return learn_with_penalty(self, task, progress, self._fisher, strength=self.strength)

    def _fisher(self, training: TaskTraining, model: Model) -> Parameters:
        task, classes = training.task, training.classes
        gradients, weights = loss_gradients(self.backbone, model, task, classes)
        if self.batch_fisher:
            return gradients.squared_batch_means(weights)
        sums = gradients.sum_of_squares(self.draws, training.generator)
        return tuple(total / gradients.nodes.numel() for total in sums)
