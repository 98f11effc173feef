"""Joint: keep every task and train on all of them each time. The upper bound of training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from undrift.encoders.tuned import TunedNetwork, fit_tuned
from undrift.errors import InputError
from undrift.graphs import Graph, disjoint_union
from undrift.learners.parts.training.backbone import Backbone, Model, columns_of, generator_for
from undrift.learners.parts.training.model_learner import ModelLearner
from undrift.streams.task import Task, joined
from undrift.typing import Progress

Recipe = Literal["plain", "tuned", "isolated"]


@dataclass(frozen=True, eq=False)
class JointLearned:
    """What Joint keeps: every graph it was shown, and a model."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model | TunedNetwork
    graph: Graph
    train: Tensor
    val: Tensor


@dataclass(kw_only=True)
class Joint(ModelLearner):
    """After every task t, a new model trained on all tasks so far, with the base task's settings.

        L = CE over the training nodes of tasks 0..t

    The task graphs stay disjoint, as they arrived: edges between tasks are never shown. It keeps
    examples, so it is a bound and not a method for those who must delete.

    `recipe`: a `plain` encoder under a linear head, or the strongest we can train, `tuned`: with
    layer norm and a linear skip in every layer, the best epoch by validation, on the whole graph
    with the edges between tasks, so that every batch must hold all tasks so far
    (`TaskStream.until`). Its settings are to be searched: docs/methods/joint.md. `isolated` trains
    the tuned network on the task graphs as they arrived: what keeping all data can bring to a
    learner that is never shown an edge between tasks.

    Cost: task t trains on t + 1 graphs. Memory: all data.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Joint(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "joint"
    display: ClassVar[str] = "Joint"
    family: ClassVar[str] = "bound"
    keeps: ClassVar[str] = "every task graph"
    keeps_examples: ClassVar[bool] = True
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = JointLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "graph", "train", "val")

    recipe: Recipe = "plain"
    backbone: Backbone = field(default_factory=Backbone)

    @property
    def sees_all(self) -> bool:
        """With `recipe="tuned"` every batch holds all tasks so far."""
        return self.recipe == "tuned"

    def _learn(self, task: Task, progress: Progress) -> JointLearned:
        before: JointLearned | None = self.learned_
        t = before.tasks if before else 0
        everything = self._whole(before, task) if self.sees_all else _together(before, task)
        here = everything.to(self.device)
        model = (self._plain if self.recipe == "plain" else self._tuned)(here, t, progress)
        kept = everything.to("cpu")
        known = (kept.classes, kept.graph.num_features, t + 1, model)
        return JointLearned(*known, kept.graph, kept.train, kept.val)

    def _plain(self, everything: Task, t: int, progress: Progress) -> Model:
        generator, classes = generator_for(self.seed, t), everything.classes
        begun = self.backbone.model_for(everything.graph, len(classes), generator)
        return self.backbone.train(
            begun, everything, classes, t=0, generator=generator, progress=progress
        ).settled()

    def _tuned(self, everything: Task, t: int, progress: Progress) -> TunedNetwork:
        generator = generator_for(self.seed, t)
        classes, graph = everything.classes, everything.graph
        return fit_tuned(
            TunedNetwork.create(
                self.backbone.architecture(),
                graph.num_features,
                len(classes),
                generator,
                str(graph.device),
            ),
            graph,
            train=everything.train.nonzero().flatten(),
            val=everything.val.nonzero().flatten(),
            columns=columns_of(graph, classes),
            training=self.backbone.training(0),
            generator=generator,
            progress=progress,
        )

    def _whole(self, before: JointLearned | None, task: Task) -> Task:
        """The batch itself, which must hold all classes so far."""
        missing = set(before.classes if before else ()) - set(task.classes)
        if missing:
            raise InputError(
                f"recipe='tuned' trains on the whole graph, and class {min(missing)} is not in "
                "this batch; give it all tasks so far, as stream.until(t) does"
            )
        return task


def _together(before: JointLearned | None, task: Task) -> Task:
    """All tasks so far as one task on the disjoint union of their graphs."""
    task = task.to("cpu")
    if before is None:
        return task
    train = torch.cat([before.train.cpu(), task.train])
    val = torch.cat([before.val.cpu(), task.val])
    graph = disjoint_union(before.graph.to("cpu"), task.graph)
    return Task(graph, train, val, ~(train | val), joined(before.classes, task.classes))
