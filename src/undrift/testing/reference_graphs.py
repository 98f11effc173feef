"""Slow, obvious twins of the graph code: dense matrices, explicit loops, sets of nodes.

The fast paths (`undrift.graphs`) must equal these on small graphs. Nothing here is shared with
them: no sparse format, no vectorised degree, no clever order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


def dense_operator(adjacency: Tensor, kind: str, *, self_loops: bool = True) -> Tensor:
    """The twin of `normalise`, entry by entry, in float64.

    `adjacency[i, j]` is the weight of what j sends to i. With `I` the self-loops and degrees
    into a receiver and out of a sender: `symmetric` divides an entry by the root of both,
    `row` by the degree into the receiver, `sum` by nothing. Cost: n^2 steps of Python.

    >>> dense_operator(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "row").tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    n = adjacency.shape[0]
    weights = [[float(adjacency[i, j]) for j in range(n)] for i in range(n)]
    if self_loops:
        for i in range(n):
            weights[i][i] += 1.0
    into = [sum(weights[i][j] for j in range(n)) for i in range(n)]
    out = [sum(weights[i][j] for i in range(n)) for j in range(n)]
    operator = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            if weights[i][j] == 0.0:
                continue  # nothing is sent: a degree of zero is never divided by
            if kind == "symmetric":
                operator[i, j] = weights[i][j] / (into[i] ** 0.5 * out[j] ** 0.5)
            elif kind == "row":
                operator[i, j] = weights[i][j] / into[i]
            elif kind == "sum":
                operator[i, j] = weights[i][j]
            else:
                raise ValueError(f"no twin for normalisation {kind!r}")
    return operator


def dense_receptive_field(adjacency: Tensor, nodes: Iterable[int], hops: int) -> set[int]:
    """Every node whose features reach `nodes` within `hops` steps, the nodes themselves too.

    >>> path = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 1, 0]])  # 0 -> 1 -> 2
    >>> dense_receptive_field(path, [2], 1), dense_receptive_field(path, [2], 2)
    ({1, 2}, {0, 1, 2})
    """
    reached = {int(node) for node in nodes}
    for _ in range(hops):
        for receiver in tuple(reached):
            for sender in range(adjacency.shape[1]):
                if float(adjacency[receiver, sender]) != 0.0:
                    reached.add(sender)
    return reached


def k_hop_forward(
    operators: Sequence[Tensor], features: Tensor, weights: Sequence[Tensor]
) -> Tensor:
    """`h = relu(A_k h W_k)` for k = 1..K, over all nodes, with dense matrices throughout.

    The twin of a forward pass over the hops of `receptive_field`: its rows for some nodes, and
    the gradient that a loss on these rows gives the weights, must come out the same.
    """
    h = features
    for operator, weight in zip(operators, weights, strict=True):
        h = torch.relu(operator @ h @ weight)
    return h
