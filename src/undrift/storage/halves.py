"""Symmetric matrices on disk: the half on and under the diagonal, row after row."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_BLOCK = 1024


def half_of(matrix: Tensor) -> Tensor:
    """The entries on and under the diagonal; the matrix itself if it is not symmetric.

    >>> half_of(torch.tensor([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    if not _symmetric(matrix):
        return matrix
    rows = [matrix[i, : i + 1] for i in range(matrix.shape[0])]
    return torch.cat(rows) if rows else matrix.new_zeros(0)


def size_of_half(matrix: Tensor) -> Tensor:
    """A tensor without memory that has the size of `half_of` a sum, which is symmetric."""
    d = matrix.shape[0]
    return torch.empty(d * (d + 1) // 2, dtype=matrix.dtype, device="meta")


def whole_of(half: Tensor) -> Tensor | None:
    """The matrix, bit by bit; what is not a half comes back; None if it is one of nothing."""
    if half.dim() != 1:
        return half
    d = (math.isqrt(8 * half.numel() + 1) - 1) // 2
    if d * (d + 1) // 2 != half.numel():
        return None
    whole = half.new_empty(d, d)
    for i in range(d):
        whole[i, : i + 1] = half[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
    for j in range(0, d, _BLOCK):
        stop = min(j + _BLOCK, d)
        corner = whole[j:stop, j:stop]
        upper = tuple(torch.triu_indices(stop - j, stop - j, 1, device=half.device))
        corner[upper] = corner.T[upper]
        whole[j:stop, stop:] = whole[stop:, j:stop].T
    return whole


def _symmetric(matrix: Tensor) -> bool:
    """Block by block, as the transpose of a large matrix is slow to read."""
    d = matrix.shape[0]
    if matrix.dim() != 2 or d != matrix.shape[1]:
        return False
    for i in range(0, d, _BLOCK):
        for j in range(0, i + 1, _BLOCK):
            one = matrix[i : i + _BLOCK, j : j + _BLOCK]
            if not torch.equal(one, matrix[j : j + _BLOCK, i : i + _BLOCK].T):
                return False
    return True
