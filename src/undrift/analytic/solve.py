"""From a sum to weights: a pure function."""

from __future__ import annotations

from torch import Tensor

from undrift.analytic.factor import Factor, factorise
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError


def solve(
    statistics: RidgeStatistics,
    gamma: float,
    *,
    relative: bool = False,
    prior: Tensor | None = None,
) -> Tensor:
    """`W = (R + gamma I)^-1 Q` (eqs. 7, 9, 11), in float64, by Cholesky.

    `relative=True` scales gamma by the mean diagonal of R, so that one value means the same
    for 100 rows and for a million. `prior` pulls W toward that matrix instead of zero:
    `(R + gamma I)^-1 (Q + gamma W0)`. Cost: d^3 / 3 + 2 d^2 C operations.

    >>> import torch
    >>> s = RidgeStatistics.of(torch.eye(2), torch.eye(2))
    >>> solve(s, gamma=1.0)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    factor = factorise(statistics.gram, effective_ridge(statistics, gamma, relative=relative))
    return solve_with(factor, statistics, prior=prior)


def solve_with(
    factor: Factor, statistics: RidgeStatistics, *, prior: Tensor | None = None
) -> Tensor:
    """The same with a factor that is already there."""
    right = statistics.moment
    if prior is not None:
        if prior.shape != right.shape:
            raise InputError(
                f"a prior of shape {tuple(prior.shape)} does not fit weights of shape "
                f"{tuple(right.shape)}"
            )
        right = right + factor.ridge * prior.to(right)
    # rows in order: a restored copy has that layout, and other layouts round differently
    return factor.solve(right).contiguous()


def effective_ridge(statistics: RidgeStatistics, gamma: float, *, relative: bool = False) -> float:
    """What is added to the diagonal: gamma (the paper), or gamma times the mean diagonal."""
    if not gamma > 0:
        raise InputError(f"gamma must be greater than 0, not {gamma}")
    if not relative:
        return float(gamma)
    mean = float(statistics.gram.diagonal().mean())
    return float(gamma) * (mean if mean > 0 else 1.0)
