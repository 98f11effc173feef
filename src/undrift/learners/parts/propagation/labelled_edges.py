"""What the edges between labelled nodes tell: whether neighbours are alike, or told by their kind.

Both measures need no more than how many edges join each two classes, so they can be made from a
graph in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from undrift.sparse import product_in_cache
from undrift.streams.task import Task

# what these numbers rest on: docs/methods/propagation.md
PRIOR_EDGES = 20.0
"""Weight of the prior in both measures: a few labelled edges prove nothing."""

_AT_ONCE = 32  # classes
_FULL_FROM = 0.25  # adjusted homophily from which the homophily weight is 1


def edges_between(task: Task, classes: Sequence[int]) -> Tensor:
    """`[a, b]`: edges between training nodes, to one of class a from one of class b; float64.

    `Y^T B Y` with the unweighted adjacency B and one-hot rows Y of the training nodes, some classes
    at a time. Cost: 2 nnz(B) C operations.
    """
    edges, nodes = task.graph.adjacency, task.train.nonzero().flatten()
    columns, order = torch.tensor(classes, device=edges.device).sort()
    ours = order[torch.searchsorted(columns, task.labels[nodes])]
    unweighted = edges.with_values(torch.ones_like(edges.values))
    table = torch.zeros(len(classes), len(classes), dtype=torch.float64, device=edges.device)
    for some in torch.arange(len(classes), device=edges.device).split(_AT_ONCE):
        sends = (ours.unsqueeze(1) == some).double()
        senders = sends.new_zeros(edges.shape[0], some.numel())
        senders[nodes] = sends
        received = product_in_cache(unweighted, senders)[nodes]
        table[:, some] = table[:, some].index_add(0, ours, received)
    return table


def homophily_of(edges: Tensor) -> float:
    """How far neighbours resemble a node, 0 to 1: the adjusted homophily, over 0.25.

    Of the m edges between training nodes (`edges_between`), h is the share within a class and h0
    that share by chance at the same degrees. `a = (h - h0) / (1 - h0)` (Platonov et al.,
    "Characterizing graph datasets for node classification", NeurIPS 2023) is shrunk towards 1 with
    the weight of 20 edges, divided by 0.25 and cut to 0..1. A single class gives 1.
    """
    every = float(edges.sum())
    m = every / 2  # an edge stands there in both directions
    if edges.shape[0] < 2 or m == 0:
        return 1.0
    chance = float((edges.sum(dim=1) / every).square().sum())
    if chance > 1 - 1e-9:
        return 1.0
    adjusted = (float(edges.diagonal().sum()) / every - chance) / (1 - chance)
    shrunk = (m * adjusted + PRIOR_EDGES) / (m + PRIOR_EDGES)
    return min(max(shrunk / _FULL_FROM, 0.0), 1.0)


def association_of(edges: Tensor, least_classes: int = 3) -> float:
    """How much a neighbour's class tells of a node's, 0 to 1, whether or not the two agree.

    Cramer's V squared over the m edges between training nodes (`edges_between`): with P_ab the
    share of edges that join classes a and b, and p its marginal,
    `(sum_ab P_ab^2 / (p_a p_b) - 1) / (C - 1)`, less its expectation under independence, `C / 2m`,
    and shrunk towards 0 with the weight of 20 edges. Classes that link only to the next one give
    1, classes that link to all others alike `1 / (C - 1)^2`. Two classes cannot tell the two cases
    apart: 0 under `least_classes`.
    """
    m = float(edges.sum()) / 2
    table = edges / max(2 * m, 1)
    share = table.sum(dim=1)
    table, share = table[share > 0][:, share > 0], share[share > 0]
    count = share.numel()
    if count < max(least_classes, 2):
        return 0.0
    above = float((table.square() / torch.outer(share, share)).sum()) - 1
    measured = (above - count * (count - 1) / (2 * m)) / (count - 1)
    return min(max(measured, 0.0) * m / (m + PRIOR_EDGES), 1.0)
