"""EWC, Elastic Weight Consolidation: keep the parameters that old likelihoods depend on."""

from dataclasses import dataclass
from typing import Any, ClassVar

from undrift.encoders.training import Loss, Model, cross_entropy
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Grid
from undrift.learners.parts.importance import PenaltyLearned, loss_gradients, with_penalty
from undrift.learners.parts.model_learner import ModelLearner, TaskTraining


@dataclass(kw_only=True)
class Ewc(ModelLearner):
    """EWC: cross-entropy, plus a quadratic penalty around every old solution.

        L = CE + strength sum_{s<t} sum_p F_s (p - theta_s)^2

    CE is over all classes seen. F_s is the diagonal of the empirical Fisher information: the mean
    over the task's training nodes of the squared gradient of a node's log-likelihood at theta_s.
    Backward passes with random signs estimate it (`NodeGradients`).

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> penalty = Ewc(epochs=5, hidden=8).observe(first).observe(second).learned_.penalty
    >>> [tuple(part.shape) for part in penalty.importance]  # of all tasks so far
    [(12, 8), (8, 8), (8, 4), (4,)]
    """

    name: ClassVar[str] = "ewc"
    display: ClassVar[str] = "EWC"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Kirkpatrick et al., PNAS 2017"
    keeps: ClassVar[str] = "one encoder and head, an importance and an anchor per parameter"
    learned_type: ClassVar[type] = PenaltyLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "penalty")
    phase: ClassVar[str] = "importance"
    gone: ClassVar[dict[str, Any]] = {"draws": 32}
    other_form: ClassVar[dict[str, Any]] = {"batch_fisher": False}
    grid: ClassVar[Grid] = {"strength": (1.0, 1e2, 1e3, 1e4, 3e4, 1e5, 1e6)}

    strength: Positive = 3e4

    def _loss(self, training: TaskTraining) -> Loss:
        before: PenaltyLearned | None = training.before
        return before.penalty.loss(self.strength) if before else cross_entropy

    def _kept(self, training: TaskTraining, model: Model) -> PenaltyLearned:
        gradients, _ = loss_gradients(training, model)
        sums, n = gradients.sum_of_squares(training.generator), gradients.nodes.numel()
        return with_penalty(training, model, tuple(total / n for total in sums))
