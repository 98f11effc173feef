"""For EWC, MAS and TWP: gradients per node, and a pull of parameters to where tasks left them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import batch_of
from undrift.encoders.training import Loss, Model, cross_entropy, widened
from undrift.graphs import Graph
from undrift.learners.parts.backbone import columns_of
from undrift.learners.parts.model_learner import ModelLearned, TaskTraining

PerParameter = tuple[Tensor, ...]
"""One tensor per parameter: the encoder's weights, the head's weight, the head's bias."""

DRAWS = 32  # random passes per batch: an entry is right to about 25 %

NodeValue = Callable[[Tensor, Tensor], Tensor]
"""`value(logits, nodes)`: a number per node of a batch, from that node's row of logits."""


@dataclass(frozen=True, eq=False)
class Penalty:
    """`sum_s sum_p F_s (p - a_s)^2` over all tasks s, exact and of constant size.

        sum_s F_s (p - a_s)^2 = F (p - a)^2 + rest,   F = sum_s F_s,   a = sum_s F_s a_s / F

    `importance` F and `anchor` a are one model each. Columns of the head that came after a task
    have no importance for it.
    """

    importance: PerParameter
    anchor: PerParameter
    rest: float = 0.0

    def add(self, importance: PerParameter, anchor: PerParameter) -> Penalty:
        """The penalty with one task more, whose parameters may have more columns."""
        sums, anchors, rest = [], [], self.rest
        before = widened(self.importance, anchor), widened(self.anchor, anchor)
        for f_old, a_old, f, a in zip(*before, importance, anchor, strict=True):
            total = f_old + f
            share = torch.where(total > 0, f / total, 1.0)  # no importance at all: move along
            gap = a - a_old
            rest += float((f_old * share * gap.square()).sum())
            sums.append(total)
            anchors.append(a_old + share * gap)
        return Penalty(tuple(sums), tuple(anchors), rest)

    def __call__(self, parameters: PerParameter) -> Tensor:
        """Its value, with a gradient for the parameters."""
        total = parameters[0].new_tensor(self.rest)
        for f, a, p in zip(self.importance, self.anchor, parameters, strict=True):
            old = p if p.shape == a.shape else p[..., : a.shape[-1]]
            gap = old - a
            total = total + torch.dot((f * gap).flatten(), gap.flatten())
        return total

    def loss(self, strength: float) -> Loss:
        """Cross-entropy plus `strength` times the penalty."""
        return lambda step: cross_entropy(step) + strength * self(step.model.parameters)


@dataclass(frozen=True, eq=False)
class PenaltyLearned(ModelLearned):
    """What EWC and TWP keep: one model, and an importance and an anchor per parameter."""

    penalty: Penalty


def with_penalty(training: TaskTraining, model: Model, importance: PerParameter) -> PenaltyLearned:
    """What is kept after a task that needs each parameter so much: it pulls to its solution."""
    before: PenaltyLearned | None = training.before
    own = importance, model.parameters
    penalty = before.penalty.add(*own) if before else Penalty(*own)
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

    def sum_of_squares(self, generator: torch.Generator, draws: int = DRAWS) -> PerParameter:
        """`sum_n g_n^2` for every parameter, by random signs."""
        sums = self._zeros()
        for exact, passes in self._passes(generator, draws, cauchy=False):
            for gradient in passes:
                torch._foreach_addcmul_(sums, gradient, gradient, 1.0 if exact else 1 / draws)
        return sums

    def sum_of_sizes(self, generator: torch.Generator, draws: int = DRAWS) -> PerParameter:
        """`sum_n |g_n|` for every parameter, by Cauchy numbers."""
        sums = self._zeros()
        for exact, passes in self._passes(generator, draws, cauchy=True):
            found = sums if exact else self._zeros()
            for gradient in passes:
                sizes = [g.abs_() for g in gradient]
                torch._foreach_add_(found, sizes if exact else [s.log_() for s in sizes])
            if not exact:
                unbias = math.cos(math.pi / (2 * draws)) ** draws
                torch._foreach_add_(sums, [log.div_(draws).exp_() for log in found], alpha=unbias)
        return sums

    def mean(self, weights: Tensor) -> PerParameter:
        """`sum_n w_n g_n / sum_n w_n`, in which nodes cancel; the batch size does not matter."""
        total, sums = weights[self.nodes].sum(), self._zeros()
        for gradient, weight in self._batch_means(weights):
            torch._foreach_add_(sums, [g * (weight / total) for g in gradient])
        return sums

    def squared_batch_means(self, weights: Tensor) -> PerParameter:
        """The mean over batches of the squared gradient of a batch's mean, as in the CGLB code."""
        sums = self._zeros()
        for gradient, _ in self._batch_means(weights):
            torch._foreach_addcmul_(sums, gradient, gradient, 1 / len(self._parts()))
        return sums

    def _parts(self) -> Sequence[Tensor]:
        parts: Sequence[Tensor] = self.nodes.split(self.batch_size or self.nodes.numel())
        return parts

    def _passes(
        self, generator: torch.Generator, draws: int, *, cauchy: bool
    ) -> Iterator[tuple[bool, Iterator[PerParameter]]]:
        """By batch: whether it has a pass per node, and what its backward passes give."""

        def drawn() -> Tensor:  # on the CPU, so alike on any device
            if cauchy:
                return torch.empty(n, dtype=torch.float64).cauchy_(generator=generator)
            return 2 * torch.randint(2, (n,), generator=generator) - 1

        for values, live in self._batches(often=True):
            n = values.numel()
            exact = draws >= n
            some = torch.eye(n) if exact else (drawn() for _ in range(draws))
            numbers = (each.to(values) for each in some)
            yield exact, (torch.autograd.grad(values, live, s, retain_graph=True) for s in numbers)

    def _batches(self, *, often: bool) -> Iterator[tuple[Tensor, PerParameter]]:
        """Values and parameters, batch by batch; `often`: what many passes share is made once."""
        live = tuple(p.detach().requires_grad_() for p in self.model.parameters)
        model = self.model.with_parameters(live)
        with torch.enable_grad():
            for part in self._parts():
                batch = batch_of(model.encoder, self.graph, part)
                batch = model.encoder.prepared(batch) if often else batch
                yield self.value(model.head(model.encoder.forward(batch)), part), live

    def _batch_means(self, weights: Tensor) -> Iterator[tuple[PerParameter, Tensor]]:
        """The gradient of each batch's weighted mean, and the sum of its weights."""
        for part, (values, live) in zip(self._parts(), self._batches(often=False), strict=True):
            mine = weights[part].to(values)
            yield torch.autograd.grad(values, live, mine / mine.sum()), mine.sum()

    def _zeros(self) -> PerParameter:
        return tuple(torch.zeros_like(p) for p in self.model.parameters)


def loss_gradients(training: TaskTraining, model: Model) -> tuple[NodeGradients, Tensor]:
    """Gradients of the training nodes' cross-entropies, and what each node weighs in the loss."""
    task, backbone = training.task, training.learner.backbone
    nodes, columns = task.train.nonzero().flatten(), columns_of(task.graph, training.classes)

    def losses(logits: Tensor, part: Tensor) -> Tensor:
        return functional.cross_entropy(logits, columns[part], reduction="none")

    weights = torch.zeros(columns.numel(), device=columns.device)
    mine = columns[nodes]
    weights[nodes] = 1 / torch.bincount(mine)[mine] if backbone.class_weighted else 1.0
    return NodeGradients(model, task.graph, nodes, losses, backbone.batch_size), weights
