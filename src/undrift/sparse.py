"""One sparse matrix and its products: the only place that touches `torch.sparse`.

A `Csr` is immutable, caches its transpose (a symmetric matrix is its own) and multiplies dense
matrices with a correct gradient. Products run on MKL (CPU) or cuSPARSE (CUDA) through torch;
structure (slicing, sparse times sparse) runs on scipy, which needs no compiled add-on.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.errors import InputError

__all__ = ["Csr", "matmul", "row_index", "sparse_product"]

_INDEX_TYPES = (torch.int32, torch.int64)


@dataclass(frozen=True, eq=False)
class Csr:
    """A matrix in compressed sparse rows: `values[indptr[i]:indptr[i+1]]` is row i.

    Memory: 8 bytes per stored entry (int32 column, float32 value) and 4 per row; indices widen
    to int64 only past 2**31 entries. The columns of a row rise strictly, so an entry is stored
    once. `symmetric=True` is a promise that spares the transpose.

    >>> a = Csr.from_scipy(sp.csr_matrix([[0.0, 2.0], [0.0, 1.0]]))
    >>> (a @ torch.tensor([[1.0], [10.0]])).tolist()
    [[20.0], [10.0]]
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, int]
    symmetric: bool = False

    def __post_init__(self) -> None:
        self._check_sizes()
        if int(self.indptr[0]) != 0 or int(self.indptr[-1]) != self.indices.numel():
            raise InputError(
                f"row pointers must run from 0 to {self.indices.numel()}, not from "
                f"{int(self.indptr[0])} to {int(self.indptr[-1])}"
            )
        if bool((self.indptr[1:] < self.indptr[:-1]).any()):
            raise InputError("row pointers must not decrease")
        if self.indices.numel():
            self._check_columns()

    def _check_sizes(self) -> None:
        rows, columns = self.shape
        flat = self.indices.dim() == 1 and self.indices.shape == self.values.shape
        if min(rows, columns) < 0 or self.indptr.shape != (rows + 1,) or not flat:
            raise InputError(
                f"a CSR matrix of shape {self.shape} needs {rows + 1} row pointers and as many "
                f"columns as values, not {tuple(self.indptr.shape)}, "
                f"{tuple(self.indices.shape)} and {tuple(self.values.shape)}"
            )
        if self.indptr.dtype not in _INDEX_TYPES or self.indptr.dtype != self.indices.dtype:
            raise InputError(
                f"row pointers and columns must both be int32 or both int64, not "
                f"{self.indptr.dtype} and {self.indices.dtype}"
            )
        if self.symmetric and rows != columns:
            raise InputError(f"a {rows} x {columns} matrix is not square, so not symmetric")

    def _check_columns(self) -> None:
        low, high = int(self.indices.min()), int(self.indices.max())
        if low < 0 or high >= self.shape[1]:
            raise InputError(
                f"column index {low if low < 0 else high} is outside a matrix of "
                f"{self.shape[1]} columns"
            )
        rising = self.indices[1:] > self.indices[:-1]
        starts = self.indptr[1:-1]
        starts = starts[(starts > 0) & (starts < self.nnz)].long()
        rising[starts - 1] = True  # from one row to the next, columns may fall
        if not bool(rising.all()):
            raise InputError(
                "the columns of a row must rise without repeats; build the matrix with "
                "Csr.from_scipy, which sorts them and adds up duplicates"
            )

    @classmethod
    def from_scipy(
        cls, matrix: Any, *, dtype: torch.dtype = torch.float32, symmetric: bool = False
    ) -> Csr:
        """From any scipy sparse matrix, as a copy; duplicates are added up, columns sorted."""
        csr = sp.csr_matrix(matrix)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        index = np.int32 if max(csr.nnz, *csr.shape) < 2**31 else np.int64
        return cls(
            torch.from_numpy(csr.indptr.astype(index)),
            torch.from_numpy(csr.indices.astype(index)),
            torch.tensor(csr.data, dtype=dtype),  # a copy: later changes of `matrix` stay out
            (int(csr.shape[0]), int(csr.shape[1])),
            symmetric,
        )

    def to_scipy(self) -> sp.csr_matrix:
        """As a scipy matrix that shares this one's memory (CPU), or a copy of it (CUDA)."""
        parts = (self.values.cpu().numpy(), self.indices.cpu().numpy(), self.indptr.cpu().numpy())
        matrix = sp.csr_matrix(parts, shape=self.shape, copy=False)
        matrix.has_sorted_indices = True  # holds by construction; spares a check per use
        return matrix

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.values.numel())

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the values live."""
        return self.values.device

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return int(self.indptr.nbytes + self.indices.nbytes + self.values.nbytes)

    @cached_property
    def transpose(self) -> Csr:
        """The transpose, built once; a symmetric matrix returns itself."""
        if self.symmetric:
            return self
        moved = Csr.from_scipy(self.to_scipy().T, dtype=self.dtype)
        return moved.to(self.device)

    @cached_property
    def _torch(self) -> Tensor:
        with warnings.catch_warnings():  # torch calls its CSR layout beta, once per process
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(
                self.indptr, self.indices, self.values, self.shape, check_invariants=False
            )

    def __matmul__(self, dense: Tensor) -> Tensor:
        """The product with a dense matrix, with a gradient for the dense side."""
        return matmul(self, dense)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Csr:
        """The same matrix elsewhere or in another type; itself when nothing changes."""
        values = self.values.to(device=device, dtype=dtype)
        if values is self.values:
            return self
        return Csr(
            self.indptr.to(device), self.indices.to(device), values, self.shape, self.symmetric
        )

    def select(self, rows: Tensor) -> Csr:
        """The rows at these indices (or under this boolean mask), in that order."""
        index = row_index(rows, self.shape[0])
        picked = self.to_scipy()[index.cpu().numpy()]
        return Csr.from_scipy(picked, dtype=self.dtype).to(self.device)

    def slice(self, start: int, stop: int) -> Csr:
        """Rows `start` to `stop`; columns and values are views, nothing is copied."""
        if not 0 <= start <= stop <= self.shape[0]:
            raise InputError(f"rows {start} to {stop} are not within {self.shape[0]} rows")
        pointers = self.indptr[start : stop + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        return Csr(
            pointers - first,
            self.indices[first:last],
            self.values[first:last],
            (pointers.numel() - 1, self.shape[1]),
        )

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """As a dense tensor; the caller answers for the memory."""
        rows = torch.repeat_interleave(
            torch.arange(self.shape[0], device=self.device), self.indptr.diff().long()
        )
        dense = torch.zeros(self.shape, dtype=dtype or self.dtype, device=self.device)
        dense[rows, self.indices.long()] = self.values.to(dense.dtype)
        return dense


class _Product(torch.autograd.Function):
    """`Y = A X`; the gradient of X is `A^T G`, with the transpose built once per matrix."""

    @staticmethod
    def forward(ctx: Any, csr: Csr, dense: Tensor) -> Tensor:
        ctx.csr = csr
        return csr._torch @ dense

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, matmul(ctx.csr.transpose, grads[0].contiguous())


def matmul(csr: Csr, dense: Tensor) -> Tensor:
    """`csr @ dense` with a gradient for `dense`. Cost: 2 nnz columns operations."""
    if csr.shape[1] != dense.shape[0]:
        raise InputError(
            f"cannot multiply a {csr.shape[0]} x {csr.shape[1]} sparse matrix with one of "
            f"{dense.shape[0]} rows"
        )
    if csr.dtype != dense.dtype:
        raise InputError(
            f"cannot multiply a sparse matrix of {csr.dtype} with a dense one of {dense.dtype}; "
            "convert one with .to(dtype=...)"
        )
    if torch.is_grad_enabled() and dense.requires_grad:
        product: Tensor = _Product.apply(csr, dense)  # type: ignore[no-untyped-call]
        return product
    return csr._torch @ dense


def sparse_product(left: Csr, right: Csr) -> Csr:
    """Sparse times sparse, on the CPU: done once per task (`A X`), never in a training step."""
    if left.shape[1] != right.shape[0]:
        raise InputError(
            f"cannot multiply a {left.shape[0]} x {left.shape[1]} sparse matrix with one of "
            f"{right.shape[0]} rows"
        )
    product = left.to_scipy() @ right.to_scipy()
    product.sort_indices()
    return Csr.from_scipy(product, dtype=left.dtype).to(left.device)


def row_index(rows: Tensor, count: int, what: str = "row") -> Tensor:
    """Indices of rows, or the places under a boolean mask, as int64; none outside `count`.

    >>> row_index(torch.tensor([False, True, True]), 3).tolist()
    [1, 2]
    """
    if rows.dtype == torch.bool:
        if rows.shape != (count,):
            raise InputError(f"a {what} mask needs {count} entries, not {tuple(rows.shape)}")
        return rows.nonzero().flatten()
    whole = not (rows.is_floating_point() or rows.is_complex())
    if rows.dim() != 1 or (rows.numel() and not whole):  # an empty list has no type of its own
        raise InputError(
            f"give {what}s as a list of whole numbers or a boolean mask, not as "
            f"{tuple(rows.shape)} of {rows.dtype}"
        )
    index = rows.long()
    outside = index[(index < 0) | (index >= count)]
    if outside.numel():
        raise InputError(
            f"{what} {int(outside[0])} is not there: the {count} {what}s are numbered from 0"
        )
    return index
