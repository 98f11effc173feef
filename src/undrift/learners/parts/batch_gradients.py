"""Gradients of a mean over many nodes: what a loss wants of every parameter, once trained.

The importances of TWP, and those that the CGLB code computes for EWC and MAS, square the
gradient of a batch's mean. Single nodes cancel in it, so it vanishes where training has
converged; `node_gradients` has the sums over nodes that do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.parts.importance import Parameters, parameters_of
from undrift.learners.parts.model import Model
from undrift.learners.parts.node_gradients import NodeValue, batch_values

__all__ = ["loss_weights", "mean_gradient", "squared_batch_gradients"]


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


def mean_gradient(
    model: Model,
    graph: Graph,
    nodes: Tensor,
    value: NodeValue,
    *,
    weights: Tensor,
    batch_size: int | None = None,
) -> Parameters:
    """The gradient of `sum_n w_n value_n / sum_n w_n` over all `nodes`, without dropout.

    Batches only bound the memory: the result does not depend on their size.
    """
    total = weights[nodes].sum()
    sums = _zeros(model)
    parts = nodes.split(batch_size or nodes.numel())
    for gradient, weight in _batches(model, graph, parts, value, weights):
        for one, g in zip(sums, gradient, strict=True):
            one.add_(g * (weight / total))
    return sums


def squared_batch_gradients(
    model: Model,
    graph: Graph,
    nodes: Tensor,
    value: NodeValue,
    *,
    weights: Tensor,
    batch_size: int | None = None,
) -> Parameters:
    """The mean over batches of the squared gradient of each batch's weighted mean value.

    The nodes are taken in order, so it depends on the batches, as in the public code.
    """
    sums = _zeros(model)
    parts = nodes.split(batch_size or nodes.numel())
    for gradient, _ in _batches(model, graph, parts, value, weights):
        for one, g in zip(sums, gradient, strict=True):
            one.addcmul_(g, g, value=1 / len(parts))
    return sums


def _zeros(model: Model) -> Parameters:
    return tuple(torch.zeros_like(p) for p in parameters_of(model.encoder, model.head))


def _batches(
    model: Model, graph: Graph, parts: Sequence[Tensor], value: NodeValue, weights: Tensor
) -> Iterator[tuple[Parameters, Tensor]]:
    """The gradient of each batch's weighted mean, and the sum of its weights."""
    for part in parts:
        for values, live in batch_values(model, graph, part, value, None):
            mine = weights[part].to(values)
            total = mine.sum()
            yield torch.autograd.grad(values, live, mine / total), total
