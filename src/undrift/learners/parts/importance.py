"""For EWC, MAS and TWP: gradients per node, and a pull of parameters to where tasks left them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.adam import widened
from undrift.encoders.encoder import Encoder, Head, batch_of
from undrift.encoders.training import Loss, cross_entropy
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parts.backbone import Backbone, Model, columns_of
from undrift.learners.parts.model_learner import ModelLearned, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress

Parameters = tuple[Tensor, ...]
"""One tensor per parameter: the encoder's weights, the head's weight, the head's bias."""

NodeValue = Callable[[Tensor, Tensor], Tensor]
"""`value(logits, nodes)`: a number per node of a batch, from that node's row of logits."""


def parameters_of(encoder: Encoder, head: Head) -> Parameters:
    """All parameters of a model, in the order of `Parameters`."""
    return (*encoder.weights, head.weight, head.bias)


@dataclass(frozen=True, eq=False)
class Penalty:
    """`sum_s sum_p F_s (p - a_s)^2` over all tasks s, exact and of constant size.

        sum_s F_s (p - a_s)^2 = F (p - a)^2 + rest,   F = sum_s F_s,   a = sum_s F_s a_s / F

    `importance` F and `anchor` a are one model each. Columns of the head that came after a task
    have no importance for it.
    """

    importance: Parameters
    anchor: Parameters
    rest: float = 0.0

    def add(self, importance: Parameters, anchor: Parameters) -> Penalty:
        """The penalty with one task more, whose parameters may have more columns."""
        sums, anchors, rest = [], [], self.rest
        before = zip(widened(self.importance, anchor), widened(self.anchor, anchor), strict=True)
        for (f_old, a_old), f, a in zip(before, importance, anchor, strict=True):
            total = f_old + f
            share = torch.where(total > 0, f / total, 1.0)  # no importance at all: move along
            gap = a - a_old
            rest += float((f_old * share * gap.square()).sum())
            sums.append(total)
            anchors.append(a_old + share * gap)
        return Penalty(tuple(sums), tuple(anchors), rest)

    def __call__(self, parameters: Parameters) -> Tensor:
        """Its value, with a gradient for the parameters."""
        total = parameters[0].new_tensor(self.rest)
        for f, a, p in zip(self.importance, self.anchor, parameters, strict=True):
            old = p if p.shape == a.shape else p[..., : a.shape[-1]]
            gap = old - a
            total = total + torch.dot((f * gap).flatten(), gap.flatten())
        return total

    def loss(self, strength: float, fits: Loss = cross_entropy) -> Loss:
        """`fits` plus `strength` times the penalty."""
        return lambda step: fits(step) + strength * self(parameters_of(step.encoder, step.head))


@dataclass(frozen=True, eq=False)
class PenaltyLearned(ModelLearned):
    """What EWC and TWP keep: one model, and an importance and an anchor per parameter."""

    penalty: Penalty


def learn_with_penalty(
    learner: Any,
    task: Task,
    progress: Progress,
    importance: Callable[[TaskTraining, Model], Parameters],
    *,
    strength: float = 1.0,
    fits: Loss = cross_entropy,
) -> PenaltyLearned:
    """What is known after training with the penalty so far; then the task's importance joins it."""
    before: PenaltyLearned | None = learner.learned_
    training = TaskTraining.of(learner, task, before)
    model = training.train(progress, before.penalty.loss(strength, fits) if before else fits)
    progress("importance", 0, 1)
    found, anchor = importance(training, model), parameters_of(model.encoder, model.head)
    penalty = before.penalty.add(found, anchor) if before else Penalty(found, anchor)
    progress("importance", 1, 1)
    return PenaltyLearned(*training.known(model), penalty)


@dataclass(frozen=True, eq=False)
class NodeGradients:
    """Sums over `nodes` of the gradients g_n of their values by every parameter, without dropout.

    One backward pass gives `sum_n s_n g_n` for any numbers s_n. Random signs estimate
    `sum_n g_n^2`, the mean of its square. Cauchy numbers estimate `sum_n |g_n|`: the geometric mean
    of k sizes, times `cos(pi / 2k)^k` (Li, Hastie and Church, 2007). A batch of no more nodes than
    passes gets a pass per node, which is exact. Cost: a forward and k backward passes per batch.
    """

    model: Model
    graph: Graph
    nodes: Tensor
    value: NodeValue
    batch_size: int | None = None

    def sum_of_squares(self, draws: int, generator: torch.Generator) -> Parameters:
        """`sum_n g_n^2` for every parameter, by random signs; `draws=0` is exact."""
        sums = self._zeros()
        for values, live in self._batches(often=True):
            exact = draws == 0 or draws >= values.numel()
            scale = 1.0 if exact else 1 / draws
            for weights in _one_by_one(values) if exact else _signs(values, draws, generator):
                for total, g in zip(sums, _gradient(values, live, weights), strict=True):
                    total.addcmul_(g, g, value=scale)
        return sums

    def sum_of_sizes(self, draws: int, generator: torch.Generator) -> Parameters:
        """`sum_n |g_n|` for every parameter, by Cauchy numbers; `draws=0` is exact."""
        sums = self._zeros()
        for values, live in self._batches(often=True):
            if draws == 0 or draws >= values.numel():
                for weights in _one_by_one(values):
                    for total, g in zip(sums, _gradient(values, live, weights), strict=True):
                        total.add_(g.abs())
                continue
            logs = self._zeros()
            for weights in _cauchy(values, draws, generator):
                for total, g in zip(logs, _gradient(values, live, weights), strict=True):
                    total.add_(g.abs_().log_())
            unbias = math.cos(math.pi / (2 * draws)) ** draws
            for total, log in zip(sums, logs, strict=True):
                total.add_(log.div_(draws).exp_(), alpha=unbias)
        return sums

    def mean(self, weights: Tensor) -> Parameters:
        """`sum_n w_n g_n / sum_n w_n`, in which nodes cancel; the batch size does not matter."""
        total = weights[self.nodes].sum()
        sums = self._zeros()
        for gradient, weight in self._batch_means(weights):
            for one, g in zip(sums, gradient, strict=True):
                one.add_(g * (weight / total))
        return sums

    def squared_batch_means(self, weights: Tensor) -> Parameters:
        """The mean over batches of the squared gradient of a batch's mean, as in the CGLB code."""
        sums = self._zeros()
        for gradient, _ in self._batch_means(weights):
            for one, g in zip(sums, gradient, strict=True):
                one.addcmul_(g, g, value=1 / len(self._parts()))
        return sums

    def _parts(self) -> Sequence[Tensor]:
        parts: Sequence[Tensor] = self.nodes.split(self.batch_size or self.nodes.numel())
        return parts

    def _batches(self, *, often: bool) -> Iterator[tuple[Tensor, Parameters]]:
        """Values and parameters, batch by batch; `often`: what many passes share is made once."""
        start = parameters_of(self.model.encoder, self.model.head)
        live = tuple(p.detach().requires_grad_() for p in start)
        encoder = Encoder(self.model.encoder.architecture, live[:-2])
        head = Head(*live[-2:])
        with torch.enable_grad():
            for part in self._parts():
                batch = batch_of(encoder, self.graph, part)
                batch = encoder.prepared(batch) if often else batch
                yield self.value(head(encoder.forward(batch)), part), live

    def _batch_means(self, weights: Tensor) -> Iterator[tuple[Parameters, Tensor]]:
        """The gradient of each batch's weighted mean, and the sum of its weights."""
        for part, (values, live) in zip(self._parts(), self._batches(often=False), strict=True):
            mine = weights[part].to(values)
            total = mine.sum()
            yield torch.autograd.grad(values, live, mine / total), total

    def _zeros(self) -> Parameters:
        start = parameters_of(self.model.encoder, self.model.head)
        return tuple(torch.zeros_like(p) for p in start)


def check_draws(draws: int, least: int) -> None:
    """Reject a number of random passes that the estimator cannot work with."""
    if draws != 0 and draws < least:
        raise InputError(
            f"draws must be 0 (one exact pass per node) or at least {least}, not {draws}"
        )


def loss_gradients(
    backbone: Backbone, model: Model, task: Task, classes: tuple[int, ...]
) -> tuple[NodeGradients, Tensor]:
    """Gradients of the training nodes' cross-entropies, and what each node weighs in the loss."""
    nodes, columns = task.train.nonzero().flatten(), columns_of(task.graph, classes)

    def losses(logits: Tensor, part: Tensor) -> Tensor:
        return functional.cross_entropy(logits, columns[part], reduction="none")

    weights = torch.zeros(columns.numel(), device=columns.device)
    mine = columns[nodes]
    weights[nodes] = 1 / torch.bincount(mine)[mine] if backbone.class_weighted else 1.0
    return NodeGradients(model, task.graph, nodes, losses, backbone.batch_size), weights


def _gradient(values: Tensor, live: Parameters, weights: Tensor) -> Parameters:
    return torch.autograd.grad(values, live, weights, retain_graph=True)


def _one_by_one(values: Tensor) -> Iterator[Tensor]:
    for n in range(values.numel()):
        weights = torch.zeros_like(values)
        weights[n] = 1
        yield weights


def _signs(values: Tensor, draws: int, generator: torch.Generator) -> Iterator[Tensor]:
    # drawn on the CPU, so alike on any device
    for _ in range(draws):
        coins = torch.randint(2, (values.numel(),), generator=generator)
        yield (2 * coins - 1).to(values)


def _cauchy(values: Tensor, draws: int, generator: torch.Generator) -> Iterator[Tensor]:
    for _ in range(draws):
        numbers = torch.empty(values.numel(), dtype=torch.float64).cauchy_(generator=generator)
        yield numbers.to(values)
