"""LwF, Learning without Forgetting: keep the answers on old classes by distillation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from torch import Tensor

from undrift.encoders.training import Loss, TrainingStep, cross_entropy
from undrift.learners.parameters import check_positive
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.losses import (
    distillation,
    overlapping_distillation,
    task_cross_entropy,
)
from undrift.learners.parts.training.model_learner import ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress

Logits = Literal["seen", "task"]


@dataclass(frozen=True, eq=False)
class LwfLearned:
    """What LwF keeps: one model, and how many classes there were after each task."""

    classes: tuple[int, ...]
    num_features: int
    sizes: tuple[int, ...]
    model: Model

    @property
    def tasks(self) -> int:
        """How many tasks were learned."""
        return len(self.sizes)


@dataclass(kw_only=True)
class Lwf(ModelLearner):
    """Cross-entropy, plus `strength` times the distillation of the model before the task.

        L = CE - strength mean_x sum_{c old} softmax(z_old / T)_c log softmax(z_new / T)_c

    on the task's own training nodes, with logits z and T the `temperature`. `logits`: the
    cross-entropy is over all classes `seen`, as in the CGLB code, or over the `task`'s only, as in
    the paper: then nothing lowers old classes, and nothing tells new from old. `overlapping`, the
    form of the CGLB code: a sum over s < t of that loss over the classes of tasks 0..s. A class
    that comes back is distilled like the other old ones, and learned like the new ones.

    Cost: Bare's, one forward pass per task, and one pass over the logits per step. Memory: one
    model. Reference: Li and Hoiem, "Learning without Forgetting", ECCV 2016.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Lwf(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "lwf"
    display: ClassVar[str] = "LwF"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Li and Hoiem, ECCV 2016"
    keeps: ClassVar[str] = "one encoder and head"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = LwfLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "strength": (0.1, 1.0, 10.0),
        "temperature": (0.2, 2.0, 20.0),
    }

    strength: float = 10.0
    temperature: float = 0.2
    logits: Logits = "seen"
    overlapping: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(strength=self.strength, temperature=self.temperature)

    def _learn(self, task: Task, progress: Progress) -> LwfLearned:
        before: LwfLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        model = training.train(progress, self._loss(before, training) if before else cross_entropy)
        sizes = (*(before.sizes if before else ()), len(training.classes))
        return LwfLearned(training.classes, task.graph.num_features, sizes, model)

    def _loss(self, before: LwfLearned, training: TaskTraining) -> Loss:
        teacher = before.model.logits(training.graph)
        own = training.own

        def loss(step: TrainingStep) -> Tensor:
            answers = teacher[step.nodes]
            if self.overlapping:
                kept = overlapping_distillation(
                    step.logits, answers, before.sizes, self.temperature
                )
            else:
                kept = distillation(step.logits, answers, self.temperature)
            among_own = self.logits == "task"
            new = task_cross_entropy(step, own) if among_own else cross_entropy(step)
            return new + self.strength * kept

        return loss
