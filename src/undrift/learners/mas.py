"""MAS, Memory Aware Synapses: keep the parameters that the outputs depend on."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.encoders.training import Loss, Model, cross_entropy, widened
from undrift.graphs import Graph
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Grid
from undrift.learners.parts.importance import NodeGradients, Penalty, PerParameter
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining


@dataclass(frozen=True, eq=False)
class MasLearned(ModelLearned):
    """What MAS keeps: one model, its importance, and of how many nodes that is the mean."""

    importance: PerParameter
    nodes: int


@dataclass(kw_only=True)
class Mas(ModelLearner):
    """MAS: cross-entropy, plus a quadratic penalty around the last solution.

        L = CE + strength sum_p Omega (p - theta)^2

    CE is over all classes seen. Omega is the mean over all training nodes so far of |d ||z_n||^2 /
    d theta|, z_n a node's logits, without dropout. Backward passes with Cauchy numbers estimate it
    (`NodeGradients`).
    Cost: Bare's and 32 backward passes per task. Memory: two models.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learned = Mas(epochs=5, hidden=8).observe(first).observe(second).learned_
    >>> learned.nodes, [tuple(part.shape) for part in learned.importance]  # one per parameter
    (24, [(12, 8), (8, 8), (8, 4), (4,)])
    """

    name: ClassVar[str] = "mas"
    display: ClassVar[str] = "MAS"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Aljundi et al., ECCV 2018"
    keeps: ClassVar[str] = "one encoder and head, an importance per parameter"
    learned_type: ClassVar[type] = MasLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "importance")
    phase: ClassVar[str] = "importance"
    gone: ClassVar[dict[str, Any]] = {"draws": 32, "outputs": 0}
    other_form: ClassVar[dict[str, Any]] = {"batch_importance": False}
    grid: ClassVar[Grid] = {"strength": (0.1, 1.0, 5.0, 25.0, 1e2, 1e4)}

    strength: Positive = 5.0

    def _loss(self, training: TaskTraining) -> Loss:
        before: MasLearned | None = training.before
        if before is None:
            return cross_entropy
        return Penalty(before.importance, before.model.parameters).loss(self.strength)

    def _kept(self, training: TaskTraining, model: Model) -> MasLearned:
        before, graph = training.before, training.task.graph
        nodes = training.task.train.nonzero().flatten()
        omega = self._omega(model, graph, nodes, training.generator)
        count = (before.nodes if before else 0) + nodes.numel()
        if before:  # the mean over all nodes; new columns were worth nothing before
            old, share = widened(before.importance, omega), nodes.numel() / count
            omega = tuple(o + share * (n - o) for o, n in zip(old, omega, strict=True))
        return MasLearned(*training.known(model), omega, count)

    def _omega(
        self, model: Model, graph: Graph, nodes: Tensor, generator: torch.Generator
    ) -> PerParameter:
        """The mean of |d ||z_n||^2 / d theta| over the nodes of one task."""

        def value(logits: Tensor, nodes: Tensor) -> Tensor:
            return logits.square().sum(dim=1)

        gradients = NodeGradients(model, graph, nodes, value, self.backbone.batch_size)
        return tuple(total / nodes.numel() for total in gradients.sum_of_sizes(generator))
