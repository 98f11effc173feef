"""Membership: whether one row is in a Gram matrix, from that row alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_ZERO = 1e-10  # of the largest eigenvalue: what rounding leaves of the others


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvectors of a Gram matrix, those of value zero apart. Cost to make: 9 d^3."""

    values: Tensor
    inside: Tensor
    outside: Tensor

    @classmethod
    def of(cls, gram: Tensor) -> Spectrum:
        """The spectrum of `R`; sums in float32 have more rounding, and fewer values that count."""
        values, vectors = torch.linalg.eigh(gram.double())
        least = max(_ZERO, torch.finfo(gram.dtype).eps * gram.shape[0]) * values[-1]
        there = values > least
        return cls(values[there], vectors[:, there], vectors[:, ~there])

    def leverage(self, rows: Tensor) -> Tensor:
        """`z^T R^+ z`: at most 1 for a member, and 1 only where no other row helps to make it."""
        return ((rows.double() @ self.inside).square() / self.values).sum(dim=1)

    def residual(self, rows: Tensor) -> Tensor:
        """`|z - P z|^2 / |z|^2`, the share of a row outside the span of R: 0 for a member."""
        squares = rows.double().square().sum(dim=1).clamp(min=torch.finfo(torch.float64).tiny)
        return (rows.double() @ self.outside).square().sum(dim=1) / squares
