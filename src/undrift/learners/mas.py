"""MAS, Memory Aware Synapses: keep the parameters that the outputs depend on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.encoders.adam import widened
from undrift.encoders.encoder import Head
from undrift.encoders.training import Loss, cross_entropy
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.regularisation.gradients import NodeGradients, check_draws
from undrift.learners.parts.regularisation.penalty import (
    Parameters,
    Penalty,
    parameters_of,
)
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.learners.parts.training.model_learner import (
    ModelLearned,
    ModelLearner,
    TaskTraining,
)
from undrift.streams.task import Task
from undrift.typing import Progress

_RESERVED = 2**32 - 1  # the place of the generator for columns to come: no task has it


@dataclass(frozen=True, eq=False)
class MasLearned(ModelLearned):
    """What MAS keeps: one model, an importance per parameter, and how many nodes made it.

    The anchor is the model's own parameters. `reserved` are the head's columns of classes to come,
    where there are such (`outputs`).
    """

    added_later: ClassVar[tuple[str, ...]] = ("reserved",)

    importance: Parameters
    nodes: int
    reserved: Head | None = None


@dataclass(kw_only=True)
class Mas(ModelLearner):
    """Cross-entropy over all classes seen, plus a quadratic penalty around the last solution.

        L = CE + strength sum_p Omega (p - theta)^2

    Omega is the mean over all training nodes so far of |d ||z_n||^2 / d theta|, z_n a node's
    logits, each task's at its own solution and without dropout. `draws` backward passes with
    Cauchy numbers estimate the mean; 0 takes one pass per node. `batch_importance`, the form of
    the CGLB code: the squared gradient of a batch's mean squared logit; it needs a `strength` of
    about 1e3. `outputs`, also of that code: so many columns has the head from the start (0: those
    of the classes seen), and the importance is over all of them; columns of classes to come count,
    and are held where they began.

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
    no_sums: ClassVar[tuple[str, ...]] = ("model", "importance", "reserved")
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"strength": (0.1, 1.0, 5.0, 25.0, 1e2, 1e4)}

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
        every = Model(model.encoder, _beside(model.head, reserved))
        omega = self._omega(every, task.graph, nodes, training.generator)
        if before:
            omega = _averaged(before.importance, before.nodes, omega, nodes.numel())
        progress("importance", 1, 1)
        count = (before.nodes if before else 0) + nodes.numel()
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
        grown = _beside(before.model.head, Head(weight[:, :new], bias[:new]))
        begun = replace(training, model=replace(training.model, head=grown))
        return begun, Head(weight[:, new:], bias[new:])

    def _loss(self, before: MasLearned, columns: int) -> Loss:
        """Cross-entropy, and the pull of the head's first so many columns and of the encoder."""
        anchor = parameters_of(before.model.encoder, _beside(before.model.head, before.reserved))
        parts = (_first(parameters, columns) for parameters in (before.importance, anchor))
        return Penalty.of(*parts).loss(self.strength)

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


def _beside(head: Head, more: Head | None) -> Head:
    if more is None:
        return head
    weight = torch.cat([head.weight, more.weight], dim=1)
    return Head(weight, torch.cat([head.bias, more.bias]))


def _first(parameters: Parameters, columns: int) -> Parameters:
    """The parameters with at most so many columns of the head."""
    return (*parameters[:-2], *(part[..., :columns] for part in parameters[-2:]))


def _sum_square(logits: Tensor, nodes: Tensor) -> Tensor:
    return logits.square().sum(dim=1)


def _mean_square(logits: Tensor, nodes: Tensor) -> Tensor:
    return logits.square().mean(dim=1)


def _averaged(old: Parameters, seen: int, new: Parameters, count: int) -> Parameters:
    """The mean over all nodes; columns that came with the new ones were worth nothing before."""
    share = count / (seen + count)
    return tuple(o + share * (n - o) for o, n in zip(widened(old, new), new, strict=True))
