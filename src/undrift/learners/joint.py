"""Joint: keep every task and train on all of them each time. The upper bound of training."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor

from undrift.encoders.training import Model
from undrift.graphs import Graph, disjoint_union
from undrift.learners.parts.backbone import generator_for
from undrift.learners.parts.model_learner import ModelKeeper, ModelLearned
from undrift.streams.task import Task, joined
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class JointLearned(ModelLearned):
    """What Joint keeps: every graph it was shown, and a model."""

    graph: Graph
    train: Tensor
    val: Tensor

    @classmethod
    def of(cls, everything: Task, t: int, model: Model) -> Self:
        """All tasks so far, and the model after training on them."""
        kept = everything.to("cpu")
        parts = kept.graph, kept.train, kept.val
        return cls(kept.classes, kept.graph.num_features, t + 1, model, *parts)


@dataclass(kw_only=True)
class Joint(ModelKeeper):
    """Joint: after every task, a new model trained on all tasks so far.

        L = CE over the training nodes of tasks 0..t

    with the base task's settings, on the task graphs as they arrived. It keeps examples: it is a
    bound, and no method for those who must delete.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Joint(epochs=5, hidden=8).observe(first).observe(second)
    >>> learner.learned_.graph  # every node of both tasks
    Graph(40 nodes, 140 edges, 12 features dense, 4 classes)
    """

    name: ClassVar[str] = "joint"
    display: ClassVar[str] = "Joint"
    family: ClassVar[str] = "bound"
    keeps: ClassVar[str] = "every task graph"
    keeps_examples: ClassVar[bool] = True
    learned_type: ClassVar[type] = JointLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "graph", "train", "val")
    other_form: ClassVar[dict[str, Any]] = {"recipe": "plain"}

    def _learn(self, task: Task, progress: Progress) -> JointLearned:
        before = cast("JointLearned | None", self.learned_)
        t = before.tasks if before else 0
        everything, generator = together(before, task), generator_for(self.seed, t)
        model = self.backbone.fresh(everything.to(self.device), generator, progress)
        return JointLearned.of(everything, t, model)


def together(before: JointLearned | None, task: Task) -> Task:
    """All tasks so far as one task on the disjoint union of their graphs."""
    task = task.to("cpu")
    if before is None:
        return task
    train = torch.cat([before.train.cpu(), task.train])
    val = torch.cat([before.val.cpu(), task.val])
    graph = disjoint_union(before.graph.to("cpu"), task.graph)
    return Task(graph, train, val, ~(train | val), joined(before.classes, task.classes))
