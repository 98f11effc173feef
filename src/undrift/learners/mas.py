"""MAS, Memory Aware Synapses: keep the parameters that the outputs depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.encoders.adam import widened
from undrift.encoders.training import Loss, cross_entropy
from undrift.graphs import Graph
from undrift.learners.parameters import check_positive
from undrift.learners.parts.regularisation.gradients import NodeGradients, check_draws
from undrift.learners.parts.regularisation.penalty import (
    Parameters,
    Penalty,
    parameters_of,
)
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.model_learner import (
    ModelLearned,
    ModelLearner,
    TaskTraining,
)
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class MasLearned(ModelLearned):
    """What MAS keeps: one model, an importance per parameter, and how many nodes made it.

    The anchor is the model's own parameters.
    """

    importance: Parameters
    nodes: int


@dataclass(kw_only=True)
class Mas(ModelLearner):
    """Cross-entropy over all classes seen, plus a quadratic penalty around the last solution.

        L = CE + strength sum_p Omega (p - theta)^2

    Omega is the mean over all training nodes so far of |d ||z_n||^2 / d theta|, z_n a node's
    logits, each task's at its own solution and without dropout. `draws` backward passes with
    Cauchy numbers estimate the mean; 0 takes one pass per node. `batch_importance`, the form of
    the CGLB code: the squared gradient of a batch's mean squared logit; it needs a `strength` of
    about 1e3.

    Cost: Bare's, `draws` backward passes per task, and four passes over the parameters per step.
    Memory: two models. Reference: Aljundi et al., "Memory Aware Synapses", ECCV 2018.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Mas(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "mas"
    display: ClassVar[str] = "MAS"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Aljundi et al., ECCV 2018"
    keeps: ClassVar[str] = "one encoder and head, an importance per parameter"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = MasLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"strength": (0.1, 1.0, 5.0, 25.0, 1e2, 1e4)}

    strength: float = 5.0
    draws: int = 32
    batch_importance: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(strength=self.strength)
        check_draws(self.draws, least=2)

    def _learn(self, task: Task, progress: Progress) -> MasLearned:
        before: MasLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        model = training.train(progress, self._loss(before) if before else cross_entropy)
        progress("importance", 0, 1)
        nodes = task.train.nonzero().flatten()
        omega = self._omega(model, task.graph, nodes, training.generator)
        if before:
            omega = _averaged(before.importance, before.nodes, omega, nodes.numel())
        progress("importance", 1, 1)
        count = (before.nodes if before else 0) + nodes.numel()
        return MasLearned(*training.known(model), omega, count)

    def _loss(self, before: MasLearned) -> Loss:
        anchor = parameters_of(before.model.encoder, before.model.head)
        return Penalty.of(before.importance, anchor).loss(self.strength)

    def _omega(
        self, model: Model, graph: Graph, nodes: Tensor, generator: torch.Generator
    ) -> Parameters:
        """The mean of |d ||z_n||^2 / d theta| over the nodes of one task."""
        size = self.backbone.batch_size
        if self.batch_importance:
            ones = torch.ones(graph.num_nodes, device=graph.device)
            return NodeGradients(model, graph, nodes, _mean_square, size).squared_batch_means(ones)
        gradients = NodeGradients(model, graph, nodes, _sum_square, size)
        sums = gradients.sum_of_sizes(self.draws, generator)
        return tuple(total / nodes.numel() for total in sums)


def _sum_square(logits: Tensor, nodes: Tensor) -> Tensor:
    return logits.square().sum(dim=1)


def _mean_square(logits: Tensor, nodes: Tensor) -> Tensor:
    return logits.square().mean(dim=1)


def _averaged(old: Parameters, seen: int, new: Parameters, count: int) -> Parameters:
    """The mean over all nodes; columns that came with the new ones were worth nothing before."""
    share = count / (seen + count)
    return tuple(o + share * (n - o) for o, n in zip(widened(old, new), new, strict=True))
