"""ER-GNN: keep a few nodes of every class and show them again while learning the next task.

Zhou and Cao, "Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience
Replay", AAAI 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from undrift.encoders.training import Loss, cross_entropy
from undrift.graphs import Graph
from undrift.learners.base import check_choice, check_positive
from undrift.learners.parts.arrival import Arrival
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.exemplars import SAMPLERS, Sampler, select
from undrift.learners.parts.model import Model
from undrift.learners.parts.model_learner import ModelLearner
from undrift.learners.parts.randomness import generator_for
from undrift.learners.parts.replay import Buffer, replayed
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["ErGnn", "ErGnnLearned"]


@dataclass(frozen=True, eq=False)
class ErGnnLearned:
    """What ER-GNN keeps: a model, and `budget` nodes of every class seen."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model
    buffer: Buffer


@dataclass(kw_only=True)
class ErGnn(ModelLearner):
    """Experience replay: nodes of old tasks, without their edges, beside the new task's.

    Loss from the second task on, with B the buffer of all old tasks:

        beta CE(task) + (1 - beta) CE(B),   beta = |B| / (|B| + n_batch)

    both over all classes seen. `budget`: nodes kept per class. `sampler`: which ones: `mf`
    nearest to the class mean of the raw features, `cm` fewest training nodes of other classes
    nearer than `distance`, or `random`; see `learners/parts/exemplars.py`.

    Keeps examples. Cost per step: a forward and backward pass over |B| nodes more than Bare;
    per task the selection (`cm`: all pairs of training nodes of different classes). Memory: one
    model and budget x classes rows of features, sparse where they came sparse.
    """

    name: ClassVar[str] = "er-gnn"
    display: ClassVar[str] = "ER-GNN"
    family: ClassVar[str] = "rehearsal"
    paper: ClassVar[str] = "Zhou and Cao, AAAI 2021"
    keeps: ClassVar[str] = "nodes of every class, one encoder and head"
    keeps_examples: ClassVar[bool] = True
    learned_type: ClassVar[type] = ErGnnLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "sampler": ("mf", "cm"),
        "distance": (0.05, 0.5, 5.0),
    }

    budget: int = 10
    sampler: Sampler = "cm"
    distance: float = 0.5
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(budget=self.budget, distance=self.distance)
        check_choice("sampler", self.sampler, SAMPLERS)

    def _learn(self, task: Task, progress: Progress) -> ErGnnLearned:
        before: ErGnnLearned | None = self.learned_
        arrival = Arrival.of(self, task, before)
        graph, classes = arrival.graph, arrival.classes
        model = arrival.train(progress, self._loss(before, arrival.model, classes))
        progress("select", 0, 1)
        kept = self._selected(task, graph, arrival.t)
        buffer = before.buffer.add(kept) if before else kept
        progress("select", 1, 1)
        return ErGnnLearned(classes, graph.num_features, arrival.t + 1, model, buffer)

    def _loss(self, before: ErGnnLearned | None, model: Model, classes: tuple[int, ...]) -> Loss:
        if before is None:
            return cross_entropy
        weighted = self.backbone.class_weighted
        return replayed(before.buffer, model, classes, class_weighted=weighted)

    def _selected(self, task: Task, graph: Graph, t: int) -> Buffer:
        nodes = select(
            graph,
            task.train.nonzero().flatten().to(graph.device),
            task.classes,
            sampler=self.sampler,
            budget=self.budget,
            distance=self.distance,
            # its own generator: which nodes are kept does not depend on how training went
            generator=generator_for(self.seed, t),
        )
        return Buffer.of(graph, nodes, self.budget)
