"""Gradients of a value per node (a log-likelihood, squared logits), added up over the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import batch_of
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parts.regularisation.penalty import Parameters, model_of, parameters_of
from undrift.learners.parts.training.backbone import Backbone, Model, columns_of
from undrift.streams.task import Task

NodeValue = Callable[[Tensor, Tensor], Tensor]
"""`value(logits, nodes)`: a number per node of a batch, from that node's row of logits."""


@dataclass(frozen=True, eq=False)
class NodeGradients:
    """Sums over `nodes` of the gradients g_n of their values by every parameter, without dropout.

    One backward pass gives `sum_n s_n g_n` for any numbers s_n, so a few passes with random s_n
    estimate sums over nodes of a size of g_n:

    - random signs: `E (sum_n s_n g_n)^2 = sum_n g_n^2`;
    - Cauchy numbers: `sum_n s_n g_n` is `sum_n |g_n|` times a Cauchy number; the geometric mean of
      k such sizes, times `cos(pi / 2k)^k`, has mean `sum_n |g_n|` (Li, Hastie and Church,
      "Nonlinear estimators and tail bounds for dimension reduction in l1", 2007).

    The deviation of an estimate is sqrt(2 / k) of it with signs and about 1.6 / sqrt(k) with Cauchy
    numbers: a quarter at 32 passes. A batch of no more nodes than that gets a pass per node,
    which is exact. Cost: per batch one forward pass and k backward passes; memory: one model and
    the activations of a batch.
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
            exact = _is_exact(values, draws)
            scale = 1.0 if exact else 1 / draws
            for weights in _one_by_one(values) if exact else _signs(values, draws, generator):
                for total, g in zip(sums, _gradient(values, live, weights), strict=True):
                    total.addcmul_(g, g, value=scale)
        return sums

    def sum_of_sizes(self, draws: int, generator: torch.Generator) -> Parameters:
        """`sum_n |g_n|` for every parameter, by Cauchy numbers; `draws=0` is exact."""
        sums = self._zeros()
        for values, live in self._batches(often=True):
            if _is_exact(values, draws):
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
        """The mean over batches of the squared gradient of each batch's weighted mean value.

        The form of the CGLB code: it depends on the batches and vanishes at convergence.
        """
        sums = self._zeros()
        for gradient, _ in self._batch_means(weights):
            for one, g in zip(sums, gradient, strict=True):
                one.addcmul_(g, g, value=1 / len(self._parts()))
        return sums

    def _parts(self) -> Sequence[Tensor]:
        parts: Sequence[Tensor] = self.nodes.split(self.batch_size or self.nodes.numel())
        return parts

    def _batches(self, *, often: bool) -> Iterator[tuple[Tensor, Parameters]]:
        """Batch by batch the values of the nodes, and the parameters to derive by.

        Where passes go back through a batch `often`, what they share is made once.
        """
        start = parameters_of(self.model.encoder, self.model.head)
        live = tuple(p.detach().requires_grad_() for p in start)
        copy = model_of(self.model, live)
        with torch.enable_grad():
            for part in self._parts():
                batch = batch_of(copy.encoder, self.graph, part)
                batch = copy.encoder.prepared(batch) if often else batch
                embeddings = copy.encoder.forward(batch)
                yield self.value(copy.head(embeddings), part), live

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
    """The gradients of the training nodes' cross-entropies, and each node's weight in the loss."""
    nodes, columns = task.train.nonzero().flatten(), columns_of(task.graph, classes)

    def losses(logits: Tensor, part: Tensor) -> Tensor:
        return functional.cross_entropy(logits, columns[part], reduction="none")

    gradients = NodeGradients(model, task.graph, nodes, losses, backbone.batch_size)
    return gradients, loss_weights(columns, nodes, class_weighted=backbone.class_weighted)


def loss_weights(columns: Tensor, nodes: Tensor, *, class_weighted: bool) -> Tensor:
    """What each node of the graph weighs in the training loss; 0 for those not in `nodes`.

    >>> columns, train = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 2])
    >>> loss_weights(columns, train, class_weighted=True).tolist()
    [0.5, 0.5, 1.0, 0.0]
    """
    weights = torch.zeros(columns.numel(), device=columns.device)
    mine = columns[nodes]
    weights[nodes] = 1 / torch.bincount(mine)[mine] if class_weighted else 1.0
    return weights


def _is_exact(values: Tensor, draws: int) -> bool:
    return draws == 0 or draws >= values.numel()


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
