"""MAS, Memory Aware Synapses: keep the parameters that the outputs depend on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from undrift.encoders.adam import widened
from undrift.encoders.encoder import Head
from undrift.encoders.training import Loss, cross_entropy
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.backbone import Backbone, Grid, Model, generator_for
from undrift.learners.parts.importance import (
    NodeGradients,
    Parameters,
    Penalty,
    check_draws,
    parameters_of,
)
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress

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
    d theta|, z_n a node's logits, without dropout. `draws` backward passes with Cauchy numbers
    estimate it; 0 takes one pass per node. Two forms of the CGLB code: `batch_importance`, the
    squared gradient of a batch's mean squared logit; and `outputs`, so many columns has the head
    from the start (0: those of the classes seen), which all count in the importance and are held
    where they began.
    Cost: Bare's and `draws` backward passes per task. Memory: two models.

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
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = MasLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "importance", "reserved")
    grid: ClassVar[Grid] = {"strength": (0.1, 1.0, 5.0, 25.0, 1e2, 1e4)}

    strength: float = 5.0
    draws: int = 32
    batch_importance: bool = False
    outputs: int = 0
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(strength=self.strength)
        check_not_negative(outputs=self.outputs)
        check_draws(self.draws, least=2)

    def _learn(self, task: Task, progress: Progress) -> MasLearned:
        before: MasLearned | None = self.learned_
        training, reserved = self._reserving(before, TaskTraining.of(self, task, before))
        seen = len(training.classes)
        model = training.train(progress, self._loss(before, seen) if before else cross_entropy)
        progress("importance", 0, 1)
        nodes = task.train.nonzero().flatten()
        every = Model(model.encoder, model.head.beside(reserved) if reserved else model.head)
        omega = self._omega(every, task.graph, nodes, training.generator)
        count = (before.nodes if before else 0) + nodes.numel()
        if before:  # the mean over all nodes; new columns were worth nothing before
            old, share = widened(before.importance, omega), nodes.numel() / count
            omega = tuple(o + share * (n - o) for o, n in zip(old, omega, strict=True))
        progress("importance", 1, 1)
        return MasLearned(*training.known(model), omega, count, reserved)

    def _reserving(
        self, before: MasLearned | None, training: TaskTraining
    ) -> tuple[TaskTraining, Head | None]:
        """The task with columns that were reserved for its new classes, and those that are left."""
        if not self.outputs:
            return training, None
        head, seen = training.model.head, len(training.classes)
        if seen > self.outputs:
            raise InputError(
                f"outputs is {self.outputs}, but with this task there are {seen} classes; set "
                f"outputs to as many as will come, or to 0"
            )
        if before is None or before.reserved is None:
            width, device = head.weight.shape[0], str(head.weight.device)
            generator = generator_for(self.seed, _RESERVED)
            return training, Head.create(width, self.outputs - seen, generator, device)
        new = seen - len(before.classes)
        weight, bias = before.reserved.weight, before.reserved.bias
        grown = before.model.head.beside(Head(weight[:, :new], bias[:new]))
        begun = replace(training, model=replace(training.model, head=grown))
        return begun, Head(weight[:, new:], bias[new:])

    def _loss(self, before: MasLearned, columns: int) -> Loss:
        """Cross-entropy, and the pull of the head's first so many columns and of the encoder."""
        head = before.model.head
        head = head.beside(before.reserved) if before.reserved else head
        anchor = parameters_of(before.model.encoder, head)
        importance, anchor = (
            (*parts[:-2], *(part[..., :columns] for part in parts[-2:]))
            for parts in (before.importance, anchor)
        )
        return Penalty(importance, anchor).loss(self.strength)

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
        sums = gradients.sum_of_sizes(self.draws, generator)
        return tuple(total / nodes.numel() for total in sums)
