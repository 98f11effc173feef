"""LwF, Learning without Forgetting: keep the answers on old classes by distillation."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from undrift.encoders.training import Loss, Model, TrainingStep, cross_entropy
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Grid, distillation
from undrift.learners.parts.model_learner import ModelLearner, TaskTraining


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
    """LwF: cross-entropy, plus the distillation of the model before the task.

        L = CE - strength mean_x sum_{c old} softmax(z_old / T)_c log softmax(z_new / T)_c

    on the task's own training nodes, with logits z and T the `temperature`. A class that comes
    back is distilled like the other old ones, and learned like the new ones.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Lwf(epochs=5, hidden=8).observe(first).observe(second)
    >>> {path.split(".")[0] for path in learner.state().tensors}  # the teacher is the model before
    {'model'}
    """

    name: ClassVar[str] = "lwf"
    display: ClassVar[str] = "LwF"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Li and Hoiem, ECCV 2016"
    learned_type: ClassVar[type] = LwfLearned
    gone: ClassVar[dict[str, Any]] = {"logits": "seen"}
    other_form: ClassVar[dict[str, Any]] = {"overlapping": False}
    grid: ClassVar[Grid] = {"strength": (0.1, 1.0, 10.0), "temperature": (0.2, 2.0, 20.0)}

    strength: Positive = 10.0
    temperature: Positive = 0.2

    def _loss(self, training: TaskTraining) -> Loss:
        before: LwfLearned | None = training.before
        if before is None:
            return cross_entropy
        teacher = before.model.logits(training.task.graph)

        def loss(step: TrainingStep) -> Tensor:
            kept = distillation(step.logits, teacher[step.nodes], self.temperature)
            return cross_entropy(step) + self.strength * kept

        return loss

    def _kept(self, training: TaskTraining, model: Model) -> LwfLearned:
        sizes = (*(training.before.sizes if training.before else ()), len(training.classes))
        return LwfLearned(training.classes, training.task.graph.num_features, sizes, model)
