"""Adding rows to a Gram matrix, in bounded memory, in the cheaper of two forms."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from undrift.analytic.buffers import square
from undrift.typing import Rows, SparseRows

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
        where = slice(start, min(start + step, n))
        yield where, rows[where]


def pieces(rows: Rows, budget_mb: float = BUDGET_MB) -> Iterator[tuple[slice, Rows]]:
    """Dense rows in chunks, of which a float64 copy is made; sparse rows all at once."""
    if isinstance(rows, Tensor):
        yield from chunks(rows, budget_mb)
    else:
        yield slice(0, rows.shape[0]), rows


def scaled(rows: Rows, weights: Tensor | None) -> Rows:
    """Rows in float64, each times the square root of its weight: the Gram then carries w."""
    exact = rows.double()
    return exact if weights is None else exact * weights.sqrt().unsqueeze(1)


def add_gram_(gram: Tensor, rows: Rows, budget_mb: float = BUDGET_MB) -> None:
    """`gram += rows^T rows`, rows in float64.

    Only the blocks on and under the diagonal are computed, then mirrored. Cost: n d^2 operations
    for dense rows, at most nnz d for sparse ones; memory: the budget, and half a Gram for sparse
    rows.
    """
    if not isinstance(rows, Tensor) and _is_sparse(rows) and rows.device.type == "cpu":
        counts = torch.bincount(rows.indices, minlength=rows.shape[1])
        _add_sparse(gram, rows, counts.argsort(descending=True, stable=True), budget_mb)
        return
    for _, part in chunks(rows, budget_mb):
        _add_dense(gram, part.to_dense())
    _mirror(gram)


def add_product_(total: Tensor, rows: Rows, columns: Tensor) -> None:
    """`total += rows^T columns`, all in float64."""
    if isinstance(rows, Tensor):
        total.addmm_(rows.T, columns)
    else:
        total += rows.t() @ columns


def _is_sparse(rows: Rows) -> bool:
    n, d = rows.shape
    return not isinstance(rows, Tensor) and rows.nnz < _SPARSE_BELOW * n * d


def _add_dense(gram: Tensor, rows: Tensor) -> None:
    d = gram.shape[0]
    block = max(_BLOCK, -(-d // 8))  # eight block columns: 9/16 of the work of the full product
    for j in range(0, d, block):
        gram[j:, j : j + block].addmm_(rows[:, j:].T, rows[:, j : j + block])


def _add_sparse(gram: Tensor, rows: SparseRows, order: Tensor, budget_mb: float) -> None:
    """Products of two columns read the entries of the rarer one.

    With columns in `order` of falling counts, a block is multiplied with itself and the rarer ones
    after it: a third of `nnz d / 2` operations for words of a text. The order of the rows stays, so
    the sum is the same to the last bit in any order of the columns.
    """
    n, d = rows.shape
    place = order.argsort()
    step = max(1, int(budget_mb * 2**20 / (8 * _BLOCK)))
    under = square(d, gram)  # on and under the diagonal; the rest is never touched
    for start in range(0, n, step):
        columns = rows[start : start + step].t()[order]
        for j in range(0, d, _BLOCK):
            # sparse until the last: the dense block is then written once, in its final order
            block = columns[j : j + _BLOCK].t().to_dense()
            columns[j:].times(block, out=under[j:, j : j + _BLOCK])
        lines, back = (gram.new_empty(min(_BLOCK, d), d) for _ in range(2))
        for j in range(0, d, _BLOCK):
            own = order[j : j + _BLOCK]
            _copy_lines(lines[: own.numel()], under, j)
            torch.gather(lines, 1, place.expand(lines.shape), out=back)
            gram.index_add_(0, own, back[: own.numel()])


def _copy_lines(lines: Tensor, under: Tensor, j: int) -> None:
    """Rows of a symmetric matrix from j on, given its blocks on and under the diagonal."""
    stop = j + lines.shape[0]
    lines[:, :stop] = under[j:stop, :stop]
    for i in range(stop, lines.shape[1], _BLOCK):
        lines[:, i : i + _BLOCK] = under[i : i + _BLOCK, j:stop].T


def _mirror(gram: Tensor) -> None:
    """Copy the lower triangle to the upper, block by block."""
    d, block = gram.shape[0], 1024
    for j in range(0, d, block):
        stop = min(j + block, d)
        corner = gram[j:stop, j:stop]
        corner.copy_(corner.tril() + corner.tril(-1).T)
        gram[j:stop, stop:] = gram[stop:, j:stop].T
