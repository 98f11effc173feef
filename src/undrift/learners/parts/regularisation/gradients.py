"""What single nodes want of every parameter, added up without a pass per node.

Importances are sums over nodes of a size of g_n, the gradient of node n's own value (its
log-likelihood, its squared logits) with respect to every parameter. One backward pass gives
`sum_n s_n g_n` for any numbers s_n, so a few passes with random s_n estimate such sums:

- random signs:     E (sum_n s_n g_n)^2 = sum_n g_n^2   (the cross terms have mean zero)
- Cauchy numbers:   sum_n s_n g_n is (sum_n |g_n|) times a Cauchy number, since the Cauchy law
                    is stable; the geometric mean of k such sizes, times cos(pi / 2k)^k, has
                    mean sum_n |g_n| (Li, Hastie and Church 2007, "Nonlinear estimators and tail
                    bounds for dimension reduction in l1")

The deviation of an estimate is sqrt(2 / k) of it with signs and about 1.6 / sqrt(k) with Cauchy
numbers: a quarter at 32 passes. Batches that have no more nodes than that get a pass per node,
which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from undrift.encoders.encoder import batch_of
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parts.regularisation.penalty import Parameters, model_of, parameters_of
from undrift.learners.parts.training.backbone import Model

__all__ = [
    "NodeValue",
    "batch_values",
    "check_draws",
    "loss_weights",
    "mean_gradient",
    "squared_batch_gradients",
    "sum_of_sizes",
    "sum_of_squares",
]

NodeValue = Callable[[Tensor, Tensor], Tensor]
"""`value(logits, nodes)`: a number per node of a batch, from that node's row of logits."""


def check_draws(draws: int, least: int) -> None:
    """Reject a number of random passes that the estimator cannot work with."""
    if draws != 0 and draws < least:
        raise InputError(
            f"draws must be 0 (one exact pass per node) or at least {least}, not {draws}"
        )


def batch_values(
    model: Model, graph: Graph, nodes: Tensor, value: NodeValue, batch_size: int | None
) -> Iterator[tuple[Tensor, Parameters]]:
    """Batch by batch the values of `nodes`, without dropout, and the parameters to derive by."""
    live = tuple(p.detach().requires_grad_() for p in parameters_of(model.encoder, model.head))
    copy = model_of(model, live)
    with torch.enable_grad():
        for part in nodes.split(batch_size or nodes.numel()):
            embeddings = copy.encoder.forward(batch_of(copy.encoder, graph, part))
            yield value(copy.head(embeddings), part), live


def sum_of_squares(
    model: Model,
    graph: Graph,
    nodes: Tensor,
    value: NodeValue,
    *,
    draws: int,
    generator: torch.Generator,
    batch_size: int | None = None,
) -> Parameters:
    """`sum_n g_n^2` for every parameter, by random signs; `draws=0` is exact.

    Cost: per batch one forward pass and `draws` backward passes, or one per node if there are
    fewer nodes; memory: one model and the activations of a batch.
    """
    sums = _zeros(model)
    for values, live in batch_values(model, graph, nodes, value, batch_size):
        exact = _is_exact(values, draws)
        scale = 1.0 if exact else 1 / draws
        for weights in _one_by_one(values) if exact else _signs(values, draws, generator):
            for total, g in zip(sums, _gradient(values, live, weights), strict=True):
                total.addcmul_(g, g, value=scale)
    return sums


def sum_of_sizes(
    model: Model,
    graph: Graph,
    nodes: Tensor,
    value: NodeValue,
    *,
    draws: int,
    generator: torch.Generator,
    batch_size: int | None = None,
) -> Parameters:
    """`sum_n |g_n|` for every parameter, by Cauchy numbers; `draws=0` is exact.

    Cost as for `sum_of_squares`. The estimate keeps one running sum of logarithms, so it needs
    no more memory for more draws. A parameter that no node moves has exactly zero.
    """
    sums = _zeros(model)
    for values, live in batch_values(model, graph, nodes, value, batch_size):
        if _is_exact(values, draws):
            for weights in _one_by_one(values):
                for total, g in zip(sums, _gradient(values, live, weights), strict=True):
                    total.add_(g.abs())
            continue
        logs = _zeros(model)
        for weights in _cauchy(values, draws, generator):
            for total, g in zip(logs, _gradient(values, live, weights), strict=True):
                total.add_(g.abs_().log_())
        unbias = math.cos(math.pi / (2 * draws)) ** draws
        for total, log in zip(sums, logs, strict=True):
            total.add_(log.div_(draws).exp_(), alpha=unbias)
    return sums


def _zeros(model: Model) -> Parameters:
    return tuple(torch.zeros_like(p) for p in parameters_of(model.encoder, model.head))


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


def _batches(
    model: Model, graph: Graph, parts: Sequence[Tensor], value: NodeValue, weights: Tensor
) -> Iterator[tuple[Parameters, Tensor]]:
    """The gradient of each batch's weighted mean, and the sum of its weights."""
    for part in parts:
        for values, live in batch_values(model, graph, part, value, None):
            mine = weights[part].to(values)
            total = mine.sum()
            yield torch.autograd.grad(values, live, mine / total), total
