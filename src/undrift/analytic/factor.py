"""A Cholesky factor of a ridge system, made from a sum."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.analytic.buffers import square
from undrift.analytic.cholesky import cholesky_, cholesky_solve
from undrift.errors import InputError

_BLOCK = 128  # rows per step of a copy


@dataclass(frozen=True, eq=False)
class Factor:
    """`L` with `L L^T = gram + (ridge + jitter) I`; only the lower triangle is meaningful."""

    lower: Tensor
    ridge: float
    jitter: float

    def solve(self, right: Tensor) -> Tensor:
        """`(L L^T)^-1 right` by two triangular solves; cost 2 d^2 columns operations."""
        return cholesky_solve(self.lower, right.to(self.lower))


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
