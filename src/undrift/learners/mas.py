"""MAS, Memory Aware Synapses: keep the parameters that the outputs depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.encoders.encoder import Head
from undrift.encoders.training import Loss, Model, cross_entropy, widened
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parameters import NotNegativeInt, Positive
from undrift.learners.parts.backbone import Grid, generator_for
from undrift.learners.parts.importance import NodeGradients, Parameters, Penalty
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.streams.task import Task

_RESERVED = 2**32 - 1  # the place of the generator for columns to come: no task has it


@dataclass(frozen=True, eq=False)
class MasLearned(ModelLearned):
    """What MAS keeps; `reserved` are the head's columns of classes to come (`outputs`)."""

    added_later: ClassVar[tuple[str, ...]] = ("reserved",)

    importance: Parameters
    nodes: int
    reserved: Head | None = None


@dataclass(kw_only=True)
class Mas(ModelLearner):
    """MAS: cross-entropy, plus a quadratic penalty around the last solution.

        L = CE + strength sum_p Omega (p - theta)^2

    CE is over all classes seen. Omega is the mean over all training nodes so far of |d ||z_n||^2 /
    d theta|, z_n a node's logits, without dropout. Backward passes with Cauchy numbers estimate it
    (`NodeGradients`). Two forms of the CGLB code: `batch_importance`, the squared gradient of a
    batch's mean squared logit; and `outputs`, so many columns has the head from the start (0: those
    of the classes seen), which all count in the importance and are held where they began.
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
    no_sums: ClassVar[tuple[str, ...]] = ("model", "importance", "reserved")
    phase: ClassVar[str] = "importance"
    gone: ClassVar[dict[str, Any]] = {"draws": 32}
    grid: ClassVar[Grid] = {"strength": (0.1, 1.0, 5.0, 25.0, 1e2, 1e4)}

    strength: Positive = 5.0
    batch_importance: bool = False
    outputs: NotNegativeInt = 0

    def _training(self, task: Task) -> TaskTraining:
        return self._reserving(super()._training(task))[0]

    def _loss(self, training: TaskTraining) -> Loss:
        """Cross-entropy, and the pull of the head's first so many columns and of the encoder."""
        before: MasLearned | None = training.before
        if before is None:
            return cross_entropy
        columns = len(training.classes)
        importance, anchor = (
            (*parts[:-2], *(part[..., :columns] for part in parts[-2:]))
            for parts in (before.importance, _whole(before.model, before.reserved).parameters)
        )
        return Penalty(importance, anchor).loss(self.strength)

    def _kept(self, training: TaskTraining, model: Model) -> MasLearned:
        before, graph = training.before, training.task.graph
        reserved, nodes = self._reserving(training)[1], training.task.train.nonzero().flatten()
        omega = self._omega(_whole(model, reserved), graph, nodes, training.generator)
        count = (before.nodes if before else 0) + nodes.numel()
        if before:  # the mean over all nodes; new columns were worth nothing before
            old, share = widened(before.importance, omega), nodes.numel() / count
            omega = tuple(o + share * (n - o) for o, n in zip(old, omega, strict=True))
        return MasLearned(*training.known(model), omega, count, reserved)

    def _reserving(self, training: TaskTraining) -> tuple[TaskTraining, Head | None]:
        """The task with columns that were reserved for its new classes, and those that are left."""
        if not self.outputs:
            return training, None
        before, seen = training.before, len(training.classes)
        if seen > self.outputs:
            raise InputError(
                f"outputs is {self.outputs}, but with this task there are {seen} classes; set "
                f"outputs to as many as will come, or to 0"
            )
        if before is None or before.reserved is None:
            generator = generator_for(self.seed, _RESERVED)
            return training, training.model.encoder.new_head(self.outputs - seen, generator)
        new = seen - len(before.classes)
        weight, bias = before.reserved.weight, before.reserved.bias
        grown = before.model.head.beside(Head(weight[:, :new], bias[:new]))
        begun = replace(training, model=replace(training.model, head=grown))
        return begun, Head(weight[:, new:], bias[new:])

    def _omega(
        self, model: Model, graph: Graph, nodes: Tensor, generator: torch.Generator
    ) -> Parameters:
        """The mean of |d ||z_n||^2 / d theta| over the nodes of one task."""

        def value(logits: Tensor, nodes: Tensor) -> Tensor:
            squares = logits.square()
            return squares.mean(dim=1) if self.batch_importance else squares.sum(dim=1)

        gradients = NodeGradients(model, graph, nodes, value, self.backbone.batch_size)
        if self.batch_importance:
            return gradients.squared_batch_means(torch.ones(graph.num_nodes, device=graph.device))
        sums = gradients.sum_of_sizes(generator)
        return tuple(total / nodes.numel() for total in sums)


def _whole(model: Model, reserved: Head | None) -> Model:
    """The model with the columns of classes to come."""
    return Model(model.encoder, model.head.beside(reserved)) if reserved else model
