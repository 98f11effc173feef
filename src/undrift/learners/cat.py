"""CaT: condense every task into a few synthetic nodes and train on those alone.

Liu, Qiu and Huang, "CaT: Balanced Continual Graph Learning with Graph Condensation", ICDM 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

import torch

from undrift.graphs import Graph, disjoint_union
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.condensation import Condensation
from undrift.learners.parts.model import Model
from undrift.learners.parts.model_learner import ModelLearner
from undrift.learners.parts.randomness import generator_for
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Cat", "CatLearned"]


@dataclass(frozen=True, eq=False)
class CatLearned:
    """What CaT keeps: a condensed graph per task, and a model trained on them."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    bank: tuple[Graph, ...]
    model: Model


@dataclass(kw_only=True)
class Cat(ModelLearner):
    """Condense and train. After every task, two stages:

    1. Condense: the task becomes a few synthetic nodes without edges whose class means match
       the task's under random encoders; they join the memory bank. See `Condensation`.
    2. Train in memory: a new model learns from the bank alone, with the base task's settings.
       New and old tasks weigh the same, so nothing is biased towards the newest.

    It says that it keeps examples: a synthetic node starts as a training node and, in a few
    hundred steps, stays close to it. Cost per task: `n_encoders` class means on both sides, and
    a training on budget x classes dense nodes; memory: one model and 4 budget d bytes per class.
    """

    name: ClassVar[str] = "cat"
    display: ClassVar[str] = "CaT"
    family: ClassVar[str] = "rehearsal"
    paper: ClassVar[str] = "Liu, Qiu and Huang, ICDM 2023"
    keeps: ClassVar[str] = "a condensed graph per task, one encoder and head"
    keeps_examples: ClassVar[bool] = True
    learned_type: ClassVar[type] = CatLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "condense_lr": (1e-4, 1e-3, 1e-2),
        "propagations": (1, 2),
    }

    condensation: Condensation = field(default_factory=Condensation)
    backbone: Backbone = field(default_factory=Backbone)

    def _learn(self, task: Task, progress: Progress) -> CatLearned:
        before: CatLearned | None = self.learned_
        t = before.tasks if before else 0
        generator = generator_for(self.seed, t)
        graph = task.graph.to(self.device)
        condensed = self.condensation.condense(
            graph,
            task.train.nonzero().flatten().to(graph.device),
            task.classes,
            generator=generator,
            progress=progress,
        )
        bank = (*(before.bank if before else ()), condensed)
        classes = (*(before.classes if before else ()), *task.classes)
        model = self._trained(bank, classes, generator, progress)
        return CatLearned(classes, graph.num_features, t + 1, bank, model)

    def _trained(
        self,
        bank: tuple[Graph, ...],
        classes: tuple[int, ...],
        generator: torch.Generator,
        progress: Progress,
    ) -> Model:
        """A new model after training on every condensed graph, old and new alike."""
        everything = reduce(disjoint_union, bank)
        all_nodes = torch.ones(everything.num_nodes, dtype=torch.bool)
        return self.backbone.train(
            self.backbone.model_for(everything, len(classes), generator),
            everything,
            Task(everything, all_nodes, ~all_nodes, ~all_nodes, classes),
            classes,
            t=0,
            generator=generator,
            progress=progress,
            phase="train",
        )
