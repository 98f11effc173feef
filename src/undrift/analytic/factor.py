"""A Cholesky factor of a ridge system: made from a sum, or updated by a few rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.analytic.cholesky import cholesky_, cholesky_solve
from undrift.analytic.room import square
from undrift.errors import InputError
from undrift.typing import Rows

_BLOCK = 128  # columns per step of an update
_UPDATE_PENALTY = 1.6  # an update runs at about 1/1.6 of the rate of a factorisation


@dataclass(frozen=True, eq=False)
class Factor:
    """`L` with `L L^T = gram + (ridge + jitter) I`; only the lower triangle is meaningful."""

    lower: Tensor
    ridge: float
    jitter: float

    def solve(self, right: Tensor) -> Tensor:
        """`(L L^T)^-1 right` by two triangular solves; cost 2 d^2 columns operations."""
        return cholesky_solve(self.lower, right.to(self.lower))

    def updated(self, rows: Rows) -> Factor:
        """The factor of `L L^T + rows^T rows`; rows in float64, weights already in them.

        Block by block a QR decomposition of `[L_jj^T; V_j]` gives the new diagonal block, and
        its orthogonal factor turns the rest of the block row: orthogonal steps only, so the
        rounding of many updates adds up slowly instead of growing. Cost: 2 (n + 128) d^2.
        """
        d = self.lower.shape[0]
        # rows in order: a restored factor has that layout, and other layouts round differently
        lower = self.lower.contiguous().tril()
        v = rows.to_dense(torch.float64).clone()
        for j in range(0, d, _BLOCK):
            stop = min(j + _BLOCK, d)
            b = stop - j
            top = lower[j:stop, j:stop].tril().T
            reflectors, tau = torch.geqrf(torch.cat([top, v[:, j:stop]]))
            triangle = reflectors[:b].triu()
            signs = torch.where(triangle.diagonal() < 0, -1.0, 1.0).to(triangle)
            lower[j:stop, j:stop] = (signs.unsqueeze(1) * triangle).T
            if stop == d:
                break
            rest = torch.cat([lower[stop:, j:stop].T, v[:, stop:]])
            turned = torch.ormqr(reflectors, tau, rest, left=True, transpose=True)
            lower[stop:, j:stop] = (signs.unsqueeze(1) * turned[:b]).T
            v[:, stop:] = turned[b:]
        return Factor(lower, self.ridge, self.jitter)


def factorise(gram: Tensor, ridge: float, columns: Tensor | None = None) -> Factor:
    """Cholesky of `gram + ridge I`, with more and more jitter if rounding makes it indefinite.

    With `columns` of those rows and columns alone. The jitter starts at the rounding error of the
    mean diagonal and grows tenfold per try. Cost: d^3 / 3 operations and one copy of the Gram
    matrix.
    """
    d = gram.shape[0] if columns is None else columns.numel()
    scale = float(gram.diagonal().mean()) + ridge if d else 1.0
    for attempt in range(9):
        jitter = 0.0 if attempt == 0 else scale * 1e-15 * 10.0**attempt
        # mT: LAPACK works in column order, and the transpose of a symmetric matrix is itself
        system = _copy(gram, columns).mT
        system.diagonal().add_(ridge + jitter)
        if cholesky_(system):
            return Factor(system, ridge, jitter)
    raise InputError(
        f"the ridge system of {d} columns is not positive definite even with a jitter of "
        f"{jitter:.1e}; raise gamma, or check that nothing was subtracted that was never added"
    )


def _copy(gram: Tensor, columns: Tensor | None) -> Tensor:
    room = square(gram.shape[0], gram)
    if columns is None:
        return room.copy_(gram)
    d = columns.numel()
    copy = room.flatten()[: d * d].view(d, d)
    for start in range(0, d, _BLOCK):
        rows = gram[columns[start : start + _BLOCK]]
        torch.gather(rows, 1, columns.expand(rows.shape[0], d), out=copy[start : start + _BLOCK])
    return copy


def update_is_cheaper(rows: int, width: int) -> bool:
    """Whether updating a factor by this many rows costs less than factorising anew.

    >>> update_is_cheaper(26, 8710), update_is_cheaper(3000, 6805)
    (True, False)
    """
    return _UPDATE_PENALTY * 2 * (rows + _BLOCK) * width**2 < width**3 / 3
