"""Adding rows to a Gram matrix, in bounded memory, in the cheaper of two forms."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from undrift.sparse import Csr

__all__ = ["BUDGET_MB", "Rows", "add_gram_", "chunks", "scaled"]

Rows = Tensor | Csr
"""A matrix with one row per sample: dense, or sparse."""

BUDGET_MB = 256
"""The largest dense copy that accumulating rows may make, in MB."""

# A dense product does about seven times as many multiplications per second as a sparse one with
# a dense block (50 against 7 billion, float64, two cores; benchmarks/bench_gram.py), so the
# sparse form wins below this share of non-zeros.
_SPARSE_BELOW = 1 / 7
_BLOCK = 256  # columns: a block of 4,000 rows stays in the last-level cache


def chunks(rows: Rows, budget_mb: float = BUDGET_MB) -> Iterator[tuple[slice, Rows]]:
    """Row slices whose dense float64 copy fits the budget; at least one row each."""
    n, d = rows.shape
    step = max(1, int(budget_mb * 2**20 / (8 * max(d, 1))))
    for start in range(0, n, step):
        stop = min(start + step, n)
        part = rows.slice(start, stop) if isinstance(rows, Csr) else rows[start:stop]
        yield slice(start, stop), part


def scaled(rows: Rows, weights: Tensor | None) -> Rows:
    """Rows in float64, each times the square root of its weight: the Gram then carries w."""
    if isinstance(rows, Csr):
        values = rows.values.double()
        if weights is not None:
            per_entry = torch.repeat_interleave(weights.sqrt(), rows.indptr.diff().long())
            values = values * per_entry
        return Csr(rows.indptr, rows.indices, values, rows.shape)
    dense = rows.double()
    return dense if weights is None else dense * weights.sqrt().unsqueeze(1)


def add_gram_(gram: Tensor, rows: Rows, budget_mb: float = BUDGET_MB) -> None:
    """`gram += rows^T rows`, rows in float64.

    Only the blocks on and under the diagonal are computed, then mirrored: half the work of a
    plain product. Cost: n d^2 operations for dense rows, nnz d for sparse ones; memory: the
    budget.
    """
    if isinstance(rows, Csr) and rows.device.type == "cpu" and _is_sparse(rows):
        _add_sparse(gram, rows, budget_mb)
    else:
        for _, part in chunks(rows, budget_mb):
            _add_dense(gram, part.to_dense() if isinstance(part, Csr) else part)
    _mirror(gram)


def _is_sparse(rows: Csr) -> bool:
    return rows.nnz < _SPARSE_BELOW * rows.shape[0] * rows.shape[1]


def _add_dense(gram: Tensor, rows: Tensor) -> None:
    d = gram.shape[0]
    block = max(_BLOCK, -(-d // 8))  # eight block columns: 9/16 of the work of the full product
    for j in range(0, d, block):
        gram[j:, j : j + block].addmm_(rows[:, j:].T, rows[:, j : j + block])


def _add_sparse(gram: Tensor, rows: Csr, budget_mb: float) -> None:
    n, d = rows.shape
    step = max(1, int(budget_mb * 2**20 / (8 * _BLOCK)))
    for start in range(0, n, step):
        # the whole matrix has its transpose cached, which the moment needs too
        part = rows if n <= step else rows.slice(start, min(start + step, n))
        columns = part.transpose
        for j in range(0, d, _BLOCK):
            stop = min(j + _BLOCK, d)
            gram[j:, j:stop] += columns.slice(j, d) @ _dense_columns(columns.slice(j, stop))


def _dense_columns(columns: Csr) -> Tensor:
    """The transpose of these rows as a dense matrix, written in its final order."""
    width, n = columns.shape
    block = torch.zeros(n, width, dtype=columns.dtype)
    where = torch.repeat_interleave(torch.arange(width), columns.indptr.diff().long())
    block[columns.indices.long(), where] = columns.values
    return block


def _mirror(gram: Tensor) -> None:
    """Copy the lower triangle to the upper, block by block."""
    d, block = gram.shape[0], 1024
    for j in range(0, d, block):
        stop = min(j + block, d)
        corner = gram[j:stop, j:stop]
        corner.copy_(corner.tril() + corner.tril(-1).T)
        gram[j:stop, stop:] = gram[stop:, j:stop].T
