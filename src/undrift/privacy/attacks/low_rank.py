"""The span of a Gram matrix of few rows."""

from __future__ import annotations

import torch
from torch import Tensor

_ZERO = 1e-10  # of the largest eigenvalue: what rounding leaves of the others


def column_span(products: Tensor, most: int, seed: int = 0) -> Tensor:
    """Orthonormal columns `[d, r]` that span a matrix of rank r <= `most`. Cost: 2 d k `most`.

    >>> column_span(torch.tensor([[0.0, 0.0], [3.0, 6.0]]), 1).abs().flatten().tolist()
    [0.0, 1.0]
    """
    exact = products.double()
    if most + 8 < exact.shape[1]:
        generator = torch.Generator().manual_seed(seed)
        probes = torch.randn(exact.shape[1], most + 8, dtype=torch.float64, generator=generator)
        exact = exact @ probes
    vectors, values, _ = torch.linalg.svd(exact, full_matrices=False)
    spanned: Tensor = vectors[:, values > _ZERO * values[0]]
    return spanned


def low_rank(gram: Tensor, most: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Eigenvalues `[r]` that rise and vectors `[d, r]` of a Gram matrix of rank r <= `most`.

    Products with a few more random vectors than rows span it already, and the spectrum within them
    is exact. Cost: 2 d^2 `most`, where a whole spectrum costs 9 d^3.

    >>> values, vectors = low_rank(torch.diag(torch.tensor([0.0, 2.0, 5.0])), 2)
    >>> [round(float(x), 6) for x in values], tuple(vectors.shape)
    ([2.0, 5.0], (3, 2))
    """
    exact = gram.double()
    width = exact.shape[0]
    within = torch.eye(width, dtype=torch.float64)
    if most + 8 < width:
        generator = torch.Generator().manual_seed(seed)
        probes = torch.randn(width, most + 8, dtype=torch.float64, generator=generator)
        within = torch.linalg.qr(exact @ probes).Q
    values, vectors = torch.linalg.eigh(within.T @ exact @ within)
    there = values > _ZERO * values[-1].clamp(min=0)
    return values[there], within @ vectors[:, there]
