"""Slow, obvious twins of the propagation learner: loops over nodes, dense matrices, refitting."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.testing.reference_graphs import dense_operator
from undrift.testing.reference_ridge import joint_ridge


def adaptive_features(
    features: Tensor,
    adjacency: Tensor,
    hops: int,
    evidence_threshold: float,
    homophily: float = 1.0,
) -> Tensor:
    """The twin of `Propagated(mix="adaptive").rows`, node by node, in float64.

    Each node starts from its own row and takes another hop as long as the effective feature
    count within its reach is under `evidence_threshold`.
    """
    n = features.shape[0]
    x = torch.stack([_unit(row) for row in features.double()])
    operator = dense_operator(adjacency.double(), "symmetric")
    linked = [[j for j in range(n) if adjacency[i, j] != 0] for i in range(n)]
    own = [float(row.abs().sum() ** 2 / row.square().sum()) if row.any() else 0.0 for row in x]
    reached, hop, mixed = own, x, x.clone()
    for k in range(1, hops + 1):
        hop = operator @ hop
        for i in range(n):
            weight = max(0.0, 1 - reached[i] / evidence_threshold) * homophily**k
            if weight >= 1e-3:
                mixed[i] += weight * hop[i]
        reached = [reached[i] + sum(reached[j] for j in linked[i]) for i in range(n)]
    return torch.stack([_unit(row) for row in mixed])


def separate_features(features: Tensor, adjacency: Tensor, hops: int) -> Tensor:
    """The twin of `Propagated(mix="separate").rows`: own row, then means over neighbours."""
    n = features.shape[0]
    hop = [_unit(row) for row in features.double()]
    blocks = [hop]
    for _ in range(hops):
        means = []
        for i in range(n):
            linked = [hop[j] for j in range(n) if adjacency[i, j] != 0]
            means.append(sum(linked, torch.zeros_like(hop[i])) / max(len(linked), 1))
        hop = means
        blocks.append([2 * row for row in hop])
    return torch.stack([_unit(torch.cat([block[i] for block in blocks])) for i in range(n)])


def association_by_counting(ends: list[tuple[int, int]]) -> float:
    """The twin of `label_association`: chi squared of undirected edges' ends, cell by cell."""
    both = [*ends, *((b, a) for a, b in ends)]
    classes = sorted({a for a, _ in both})
    chi = 0.0
    for a in classes:
        for b in classes:
            expected = sum(x == a for x, _ in both) * sum(y == b for _, y in both) / len(both)
            chi += (both.count((a, b)) - expected) ** 2 / expected
    m, c = len(ends), len(classes)
    measured = (chi / len(both) - c * (c - 1) / (2 * m)) / (c - 1)
    return min(max(measured, 0.0) * m / (m + 20), 1.0)


def balanced_joint_ridge(rows: Tensor, targets: Tensor, gamma: float) -> Tensor:
    """Class-balanced ridge on all rows at once; gamma relative to the mean diagonal."""
    y = targets.double()
    weights = torch.stack([1 / y[:, row.argmax()].sum() for row in y])
    diagonal = (rows.double().square() * weights.unsqueeze(1)).sum(dim=0)
    return joint_ridge(rows, y, gamma * float(diagonal.mean()), weights)


def refitted_leave_one_out(
    rows: Tensor, targets: Tensor, weights: Tensor, ridge: float, held_out: range
) -> float:
    """The weighted leave-one-out error by solving anew without each of these rows."""
    x, y = rows.double(), targets.double()
    total = 0.0
    for i in held_out:
        rest = [j for j in range(x.shape[0]) if j != i]
        solution = joint_ridge(x[rest], y[rest], ridge, weights[rest])
        total += float(weights[i] * (y[i] - x[i] @ solution).square().sum())
    return total


def _unit(row: Tensor) -> Tensor:
    length = row.norm()
    return row / length if float(length) > 0 else row
