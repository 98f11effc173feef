"""Adding rows to a Gram matrix, in bounded memory, in the cheaper of two forms."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from undrift.typing import Rows

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

    Only the blocks on and under the diagonal are computed, then mirrored: half the work of a
    plain product. Cost: n d^2 operations for dense rows, nnz d for sparse ones; memory: the
    budget.
    """
    if _is_sparse(rows) and rows.device.type == "cpu":
        _add_sparse(gram, rows, budget_mb)
    else:
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


def _add_sparse(gram: Tensor, rows: Rows, budget_mb: float) -> None:
    n, d = rows.shape
    step = max(1, int(budget_mb * 2**20 / (8 * _BLOCK)))
    for start in range(0, n, step):
        columns = rows[start : start + step].t()
        for j in range(0, d, _BLOCK):
            # sparse until the last: the dense block is then written once, in its final order
            block = columns[j : j + _BLOCK].t().to_dense()
            gram[j:, j : j + _BLOCK] += columns[j:] @ block


def _mirror(gram: Tensor) -> None:
    """Copy the lower triangle to the upper, block by block."""
    d, block = gram.shape[0], 1024
    for j in range(0, d, block):
        stop = min(j + block, d)
        corner = gram[j:stop, j:stop]
        corner.copy_(corner.tril() + corner.tril(-1).T)
        gram[j:stop, stop:] = gram[stop:, j:stop].T
