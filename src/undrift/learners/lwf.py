"""LwF, Learning without Forgetting: answer as before on the classes known before.

Li and Hoiem, "Learning without Forgetting", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from torch import Tensor
from torch.nn import functional

from undrift.encoders.training import Loss, Step, cross_entropy
from undrift.graphs import Graph
from undrift.learners.base import check_positive
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.distillation import distillation, overlapping_distillation
from undrift.learners.parts.training.model_learner import ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Lwf", "LwfLearned"]

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
    """Cross-entropy on the new nodes, plus `strength` times a distillation loss.

    The teacher is the model before the task. On the task's own training nodes the student's
    answers over all old classes, softened by `temperature`, are held to the teacher's:

        L = CE - strength mean_x sum_{c old} softmax(z_old / T)_c log softmax(z_new / T)_c

    `logits`: the cross-entropy is over all classes `seen`, as in the CGLB code, or over the
    `task`'s classes only, as in the paper of LwF: then nothing pushes old classes down, and
    nothing tells new from old.

    `overlapping` is the form of the CGLB code: the sum over s < t of that loss over the classes
    of tasks 0..s, so early classes count once per task since.

    Cost: Bare's, plus one forward pass per task and one pass over the logits per step, for the
    teacher is fixed and answers once. Memory: one model; the teacher is what was kept anyway.
    """

    name: ClassVar[str] = "lwf"
    display: ClassVar[str] = "LwF"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Li and Hoiem, ECCV 2016"
    keeps: ClassVar[str] = "one encoder and head"
    learned_type: ClassVar[type] = LwfLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "strength": (1.0, 10.0),
        "temperature": (2.0, 20.0),
        "logits": ("seen", "task"),
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
        graph, classes = training.graph, training.classes
        model = training.train(progress, self._loss(before, graph) if before else cross_entropy)
        sizes = (*(before.sizes if before else ()), len(classes))
        return LwfLearned(classes, graph.num_features, sizes, model)

    def _loss(self, before: LwfLearned, graph: Graph) -> Loss:
        teacher = before.model.logits(graph)
        old = len(before.classes)

        def loss(step: Step) -> Tensor:
            answers = teacher[step.nodes]
            if self.overlapping:
                kept = overlapping_distillation(
                    step.logits, answers, before.sizes, self.temperature
                )
            else:
                kept = distillation(step.logits, answers, self.temperature)
            new = _task_cross_entropy(step, old) if self.logits == "task" else cross_entropy(step)
            return new + self.strength * kept

        return loss


def _task_cross_entropy(step: Step, old: int) -> Tensor:
    """Cross-entropy over the columns after the first `old`."""
    weights = None if step.class_weights is None else step.class_weights[old:]
    return functional.cross_entropy(step.logits[:, old:], step.columns - old, weights)
