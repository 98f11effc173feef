"""Sums on a GPU in a fixed order, so that the same numbers give the same bits.

cuSPARSE and `index_add_` add in whatever order threads end. Here one program, compiled by Triton,
adds the entries of a row of a sparse matrix in one order. What that costs: docs/experiments.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for a CPU comes without it
    triton = None

_ENTRIES = 32  # of a row, added at a time
_COLUMNS = 64  # of a program, at most


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _rows_of_product(  # type: ignore[no-untyped-def]  # noqa: PLR0917  # a kernel
        indptr, indices, values, dense, out, width, ENTRIES: tl.constexpr, COLUMNS: tl.constexpr
    ):
        row = tl.program_id(0).to(tl.int64)
        columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        there = columns < width
        start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
        total = tl.zeros((COLUMNS,), dtype=out.dtype.element_ty)
        for at in range(start, stop, ENTRIES):
            entries = at + tl.arange(0, ENTRIES)
            held = entries < stop
            column = tl.load(indices + entries, mask=held, other=0).to(tl.int64)
            value = tl.load(values + entries, mask=held, other=0.0)
            places = dense + column[:, None] * width + columns[None, :]
            read = tl.load(places, mask=held[:, None] & there[None, :], other=0.0)
            total += tl.sum(read * value[:, None], axis=0)
        tl.store(out + row * width + columns, total, mask=there)


def available() -> bool:
    """Whether a product in a fixed order can be had on a GPU here."""
    return triton is not None


def product(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """`A @ dense` on a GPU, for the matrix A of these compressed rows."""
    rows, width = indptr.shape[0] - 1, dense.shape[1]
    out = torch.empty(rows, width, dtype=dense.dtype, device=dense.device)
    if rows and width:
        columns = min(triton.next_power_of_2(width), _COLUMNS)
        grid = (rows, triton.cdiv(width, columns))
        sizes = {"ENTRIES": _ENTRIES, "COLUMNS": columns}
        with torch.cuda.device(dense.device):  # Triton takes the current one
            _rows_of_product[grid](indptr, indices, values, dense.contiguous(), out, width, **sizes)
    return out


@contextmanager
def of_torch() -> Iterator[None]:
    """Inside, torch's own sums are made in a fixed order."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
