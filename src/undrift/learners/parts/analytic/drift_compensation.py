"""What can be done about encoders that move after a classifier's sums were made."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder, aggregate, linear, whole_graph
from undrift.graphs import Graph
from undrift.merging.ham import Ham, regression
from undrift.merging.merger import Adapted
from undrift.typing import Once, Rows, unshared


def drift_map(
    before: Tensor, after: Tensor, gamma: float, *, still: RidgeStatistics | None = None
) -> Tensor:
    """P that carries embeddings of the last encoder to those of this one, fitted on a task.

    `P = I + (B^T B + gamma I)^-1 B^T (A - B)` for embeddings B `before` and A `after`: ridge
    regression with the identity as prior, so directions without a row do not move. gamma is
    relative to the mean diagonal. `still`: sums of old rows that count as rows that did not move.
    """
    moved = RidgeStatistics.of(before, after - before)
    if still is not None:
        moved = replace(moved, gram=moved.gram + still.gram)
    eye = torch.eye(moved.width, dtype=torch.float64, device=moved.gram.device)
    return eye + solve(moved, gamma, relative=True)


def mapped(bank: RidgeBank, by: Tensor) -> RidgeBank:
    """The bank of the rows x P: `R <- P^T R P`, `Q <- P^T Q`; exact for a linear map."""
    return RidgeBank(through(bank.statistics, by), bank.gamma, bank.relative, bank.solver)


def through(statistics: RidgeStatistics, weight: Tensor) -> RidgeStatistics:
    """The sums over the rows x W from the sums over the rows x: no later W makes them stale."""
    w = weight.to(statistics.gram)
    return replace(statistics, gram=w.T @ statistics.gram @ w, moment=w.T @ statistics.moment)


def entering_last(encoder: Encoder, graph: Graph, nodes: Tensor) -> Rows:
    """H_hat of the last layer at these nodes: its weights are in none of it."""
    operator = encoder.architecture.operator(graph).to(dtype=encoder.weights[0].dtype)
    with torch.no_grad():
        below, weight = _below_last(encoder, graph), encoder.weights[-1]
        return aggregate(encoder.layers[-1], operator, below, nodes, weight)


def leaving_last(encoder: Encoder, graph: Graph, once: Once = unshared) -> Tensor:
    """`H_hat W` of the last layer at every node, in float64; shared side by side."""

    def make() -> Tensor:
        exact = encoder.double()
        layer = exact.layers[-1]
        hops = whole_graph(exact, graph).hops
        with torch.no_grad():
            below = _below_last(exact, graph)
            last = hops[len(hops) - layer.hops :]
            return linear(layer, last, below, exact.weights[-1])

    return once(make, "leaving last", encoder, graph)


def _below_last(encoder: Encoder, graph: Graph) -> Rows:
    """The outputs of all layers but the last, with their activations, at every node."""
    return encoder.forward_to(len(encoder.weights) - 1, whole_graph(encoder, graph))


Inputs = Literal["own", "merged"]
"""What a layer's rows are: the outputs of the task's own lower layers, or of the merged ones."""


def merge_layers(
    memory: Ham,
    adapted: Adapted,
    *,
    inputs: Inputs,
    toward: Encoder | None,
) -> tuple[Ham, Encoder]:
    """The memory with this task's encoder, and the merged encoder.

    With `inputs="merged"` the rows of layer k are H_hat under the merged layers below it, and
    the targets stay the task's own outputs: layer k also undoes what merging did below. `toward`
    is the ridge prior, `(R + gamma I)^-1 (Q + gamma W)`. With `own` and without it this is HAM.
    """
    own = adapted.encoder
    merged: list[Tensor] = []
    banks = []
    for k, (bank, weight) in enumerate(zip(memory.banks, own.weights, strict=True)):
        rows, targets = regression(adapted.trace()[k], weight, adapted.once)
        if inputs == "merged" and k > 0:
            rows = _under(own, tuple(merged), adapted)[k].to(dtype=targets.dtype)
        grown = bank.add(rows, targets, adapted.row_weights, adapted.once)
        prior = None if toward is None else toward.weights[k].double()
        banks.append(grown)
        merged.append(grown.solve(prior=prior))
    return Ham(tuple(banks)), own.with_weights(tuple(merged))


def _under(own: Encoder, lower: tuple[Tensor, ...], adapted: Adapted) -> tuple[Rows, ...]:
    """The trace with these lower layers in the place of the task's own."""
    mixed = own.with_weights((*lower, *own.weights[len(lower) :]))
    return mixed.trace(adapted.graph, adapted.nodes)
