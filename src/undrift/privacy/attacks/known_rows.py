"""What known rows leave of a sum: dense rows have no sparse form, but a rotation to fix."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.privacy.attacks.low_rank import low_rank


def rows_beside_known(gram: Tensor, total: Tensor, known: Tensor, unknown: int) -> Tensor:
    """`[k, d]`: a guess at the k rows of a sum that the attacker does not hold.

        L = R - sum_known z z^T,  s = q - sum_known z,  L - s s^T / k = V D V^T
        Z = s / k + T D^1/2 V^T,  T^T T = I, T^T 1 = 0

    R and q fix the unknown rows up to a rotation of k - 1 dimensions, T. One row is left as it is,
    two are found exactly (T is a sign, which swaps them); of more the rotation is a guess, and each
    row that becomes known takes one dimension off it. `total`: the sum of all rows, a class's
    column of Q where all are of one class. Works on any features. Cost: 2 k d^2.

    >>> rows = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8]])
    >>> found = rows_beside_known(rows.T @ rows, rows.sum(dim=0), rows[:1], 2)
    >>> sorted(abs(round(float(x), 3)) for x in found.flatten())
    [0.0, 0.0, 0.0, 0.6, 0.8, 1.0]
    """
    exact = known.double()
    mean = (total.double() - exact.sum(dim=0)) / max(unknown, 1)
    if unknown == 1:
        return mean.unsqueeze(0)
    left = gram.double() - exact.T @ exact - unknown * torch.outer(mean, mean)
    values, vectors = low_rank(left, unknown - 1)
    parts = (vectors * values.sqrt())[:, 1 - unknown :]
    found: Tensor = mean + _centred(unknown)[:, : parts.shape[1]] @ parts.T
    return found


def _centred(count: int) -> Tensor:
    """`[k, k - 1]`: orthonormal columns that add up to zero each (Helmert's)."""
    table = torch.zeros(count, count - 1, dtype=torch.float64)
    for j in range(1, count):
        table[:j, j - 1], table[j, j - 1] = 1.0, -float(j)
        table[:, j - 1] /= (j * (j + 1)) ** 0.5
    return table
