"""EWC, Elastic Weight Consolidation: keep the parameters that old likelihoods depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from undrift.encoders.training import cross_entropy
from undrift.learners.parameters import check_positive
from undrift.learners.parts.regularisation.gradients import check_draws, loss_gradients
from undrift.learners.parts.regularisation.penalty import Parameters, PenaltyLearned
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.model_learner import ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(kw_only=True)
class Ewc(ModelLearner):
    """Cross-entropy over all classes seen, plus a quadratic penalty around every old solution.

        L = CE + strength sum_{s<t} sum_p F_s (p - theta_s)^2

    F_s is the diagonal of the empirical Fisher information: the mean over the task's training
    nodes of the squared gradient of a node's log-likelihood at theta_s, without dropout. `draws`
    backward passes with random signs estimate it; 0 takes one pass per node. `batch_fisher`, the
    form of the CGLB code: the squared gradient of a batch's mean loss, in which nodes cancel, so
    that it needs a `strength` of about 1e7.

    Cost: Bare's, `draws` backward passes per task, and four passes over the parameters per step.
    Memory: three models (`Penalty`). Reference: Kirkpatrick et al., "Overcoming catastrophic
    forgetting in neural networks", PNAS 2017.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Ewc(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "ewc"
    display: ClassVar[str] = "EWC"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Kirkpatrick et al., PNAS 2017"
    keeps: ClassVar[str] = "one encoder and head, an importance and an anchor per parameter"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = PenaltyLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "penalty")
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"strength": (1.0, 1e2, 1e3, 1e4, 3e4, 1e5, 1e6)}

    strength: float = 3e4
    draws: int = 32
    batch_fisher: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(strength=self.strength)
        check_draws(self.draws, least=1)

    def _learn(self, task: Task, progress: Progress) -> PenaltyLearned:
        before: PenaltyLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        loss = before.penalty.loss(self.strength) if before else cross_entropy
        model = training.train(progress, loss)
        progress("importance", 0, 1)
        learned = PenaltyLearned.after(before, training, model, self._fisher(training, model))
        progress("importance", 1, 1)
        return learned

    def _fisher(self, training: TaskTraining, model: Model) -> Parameters:
        task, classes = training.task, training.classes
        gradients, weights = loss_gradients(self.backbone, model, task, classes)
        if self.batch_fisher:
            return gradients.squared_batch_means(weights)
        sums = gradients.sum_of_squares(self.draws, training.generator)
        return tuple(total / gradients.nodes.numel() for total in sums)
