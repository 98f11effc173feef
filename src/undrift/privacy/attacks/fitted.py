"""Membership of all at once: which of the candidate rows add up to a sum of products."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt

import torch
from torch import Tensor

from undrift.privacy.attacks.membership import Metric

_EXPLICIT = 5000  # candidates up to which the kernel is formed, 8 N^2 bytes
_STEPS = 100  # of conjugate gradients, at most
_ENOUGH = 1e-4  # of the right side, that they may leave
_SMOOTH = 1e-3  # of the mean diagonal, the ridge of the metric


def fitted(
    metric: Metric,
    count: int,
    rows: Tensor,
    *,
    ridge: float = 0.01,
    explicit: bool | None = None,
) -> Tensor:
    """`[N]`: by how much more than on average each candidate is in a Gram matrix.

        min_m |R - sum_i m_i z_i z_i^T|^2 + lambda |m - n / N|^2

    in the metric in which R is nearly the identity. R has d (d + 1) / 2 different numbers and m
    has N: with every row known, N candidates can be told apart in sqrt(2 N) columns, and no width
    of use is safe. Rows that the attacker does not hold count as noise of the same kind.

    >>> rows = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    >>> found = fitted(Metric(rows[:20].T @ rows[:20]), 20, rows)
    >>> bool(found[:20].min() > found[20:].max())
    True
    """
    z = metric.whitened(rows, _SMOOTH)
    whitened = metric.whitened(metric.whitened(metric.gram.cpu(), _SMOOTH).T, _SMOOTH)
    return fitted_products(z, z, whitened, count, ridge=ridge, explicit=explicit)


def fitted_products(
    left: Tensor,
    right: Tensor,
    total: Tensor,
    count: int,
    *,
    ridge: float,
    explicit: bool | None = None,
) -> Tensor:
    """The m of `total = sum_i m_i l_i r_i^T`, less its mean n / N, by ridge regression.

    In the kernel `K_ij = (l_i . l_j) (r_i . r_j)` it is `(K + lambda I) (m - n / N) = b`, solved by
    conjugate gradients. `ridge`: lambda over the mean of K's diagonal. Cost: N^2 d + steps N^2; for
    many candidates 4 steps N k^2 with `k = min(d, 2 sqrt(2 N))` random combinations of the columns,
    which are as good.
    """
    number = left.shape[0]
    small = number <= _EXPLICIT if explicit is None else explicit
    if not small:
        columns = ceil(2 * sqrt(2 * number))
        a, b = _combined(left.shape[1], columns), _combined(right.shape[1], columns)
        left, right, total = left @ a, right @ b, a.T @ total @ b
    rest = total - count / max(number, 1) * (left.T @ right)  # beside the mean candidate
    diagonal = left.square().sum(dim=1) * right.square().sum(dim=1)
    kernel = (left @ left.T).mul_(right @ right.T) if small else None

    def against(matrix: Tensor) -> Tensor:
        return ((left @ matrix) * right).sum(dim=1)

    def times(m: Tensor) -> Tensor:
        product: Tensor = (
            against((left * m.unsqueeze(1)).T @ right) if kernel is None else kernel @ m
        )
        return product + ridge * diagonal.mean() * m

    return _conjugate_gradients(times, against(rest))


def _combined(width: int, columns: int) -> Tensor:
    """`[d, k]`: so many random combinations of the columns; the columns where they are fewer."""
    if columns >= width:
        return torch.eye(width, dtype=torch.float64)
    generator = torch.Generator().manual_seed(width)
    return torch.randn(width, columns, dtype=torch.float64, generator=generator)


def _conjugate_gradients(times: Callable[[Tensor], Tensor], right: Tensor) -> Tensor:
    """The solution of a positive definite system, or what so many steps come to."""
    x = torch.zeros_like(right)
    left, way = right.clone(), right.clone()
    before = first = float(left @ left)
    for _ in range(_STEPS):
        if before <= _ENOUGH**2 * first:
            break
        product = times(way)
        step = before / float(way @ product)
        x += step * way
        left -= step * product
        now = float(left @ left)
        way = left + now / before * way
        before = now
    return x
