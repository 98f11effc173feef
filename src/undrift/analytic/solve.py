"""From a sum to weights: a pure function."""

from __future__ import annotations

from torch import Tensor

from undrift.analytic.factor import Factor, factorise
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError

_WORTH_A_CUT = 1 / 64  # a share of columns never seen, and three times that of the operations


def solve(statistics: RidgeStatistics, gamma: float, *, relative: bool = False) -> Tensor:
    """`W = (R + gamma I)^-1 Q` (eqs. 7, 9, 11), in float64, by Cholesky.

    `relative=True` scales gamma by the mean diagonal of R, so that one value means the same
    for 100 rows and for a million. Cost: d^3 / 3 + 2 d^2 C operations, with d the columns that
    were ever seen: the others are a system of their own, which is diagonal.

    >>> import torch
    >>> s = RidgeStatistics.of(torch.eye(2), torch.eye(2))
    >>> solve(s, gamma=1.0)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    ridge = effective_ridge(statistics, gamma, relative=relative)
    right = statistics.moment
    seen = statistics.gram.diagonal().nonzero().flatten()
    if statistics.width - seen.numel() < _WORTH_A_CUT * statistics.width:
        return factorise(statistics.gram, ridge).solve(right).contiguous()
    right = right.contiguous()
    weights = right / ridge
    weights[seen] = factorise(statistics.gram, ridge, seen).solve(right[seen])
    return weights


def solve_with(factor: Factor, statistics: RidgeStatistics) -> Tensor:
    """The same with a factor that is already there."""
    # rows in order: a restored copy has that layout, and other layouts round differently
    return factor.solve(statistics.moment).contiguous()


def effective_ridge(statistics: RidgeStatistics, gamma: float, *, relative: bool = False) -> float:
    """What is added to the diagonal: gamma (the paper), or gamma times the mean diagonal."""
    if not gamma > 0:
        raise InputError(f"gamma must be greater than 0, not {gamma}")
    if not relative:
        return float(gamma)
    mean = float(statistics.gram.diagonal().mean())
    return float(gamma) * (mean if mean > 0 else 1.0)
