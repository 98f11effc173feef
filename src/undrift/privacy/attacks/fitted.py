"""Membership of all at once: which of the candidate rows add up to a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt

import torch
from torch import Tensor

from undrift.privacy.attacks.membership import Spectrum

_EXPLICIT = 5000  # candidates up to which the kernel is formed, 8 N^2 bytes
_STEPS = 100  # of conjugate gradients, at most
_ENOUGH = 1e-4  # of the right side, that they may leave
_SMOOTH = 1e-3  # of the mean eigenvalue, in the whitening


def fitted(
    spectrum: Spectrum,
    count: int,
    rows: Tensor,
    *,
    ridge: float = 0.01,
    explicit: bool | None = None,
) -> Tensor:
    """`[N]`: by how much more than on average each candidate is in the sum; about 0 and 1 apart.

        min_m |R - sum_i m_i z_i z_i^T|^2 + lambda |m - n / N|^2

    in the metric in which R is nearly the identity. R has d (d + 1) / 2 different numbers and m
    has N: with every row known, N candidates can be told apart in sqrt(2 N) columns, and no width
    of use is safe. Rows that the attacker does not hold count as noise of the same kind. In the
    kernel `K_ij = (z_i . z_j)^2` of whitened rows it is `(K + lambda I) (m - n / N) = b`, solved
    by conjugate gradients. Cost: N^2 d + steps N^2; for many candidates 4 steps N k^2 with
    `k = min(d, 2 sqrt(2 N))` random combinations of the columns, which are as good.

    >>> rows = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    >>> found = fitted(Spectrum.of(rows[:20].T @ rows[:20]), 20, rows)
    >>> bool(found[:20].min() > found[20:].max())
    True
    """
    values = spectrum.values
    level = values + _SMOOTH * values.mean().clamp(min=torch.finfo(values.dtype).tiny)
    z = rows.double() @ (spectrum.vectors / level.sqrt())
    share = count / max(rows.shape[0], 1)
    whitened = torch.diag(values / level)
    small = rows.shape[0] <= _EXPLICIT if explicit is None else explicit
    columns = ceil(2 * sqrt(2 * rows.shape[0]))
    if not small and columns < z.shape[1]:
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(z.shape[1], columns, dtype=torch.float64, generator=generator)
        z, whitened = z @ drawn, drawn.T @ whitened @ drawn
    left = whitened - share * (z.T @ z)  # of R, beside the mean candidate
    right = _against(z, left)
    squares = z.square().sum(dim=1).square()  # the kernel's diagonal
    kernel = (z @ z.T).square_() if small else None

    def times(m: Tensor) -> Tensor:
        product: Tensor = _against(z, (z * m.unsqueeze(1)).T @ z) if kernel is None else kernel @ m
        return product + ridge * squares.mean() * m

    return _conjugate_gradients(times, right)


def _against(z: Tensor, matrix: Tensor) -> Tensor:
    """`z_i^T M z_i` of every row."""
    return ((z @ matrix) * z).sum(dim=1)


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
