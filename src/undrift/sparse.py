"""One sparse matrix, and one small algebra for rows that are dense or sparse.

A `Csr` is immutable and speaks torch's language: `rows[nodes]`, `rows @ weights`, `rows.t()` and
the like mean the same for a tensor and a `Csr`, so nobody asks which it is. Products run on MKL
through torch (CPU) or in a fixed order (CUDA). Sparse times sparse, cutting, turning and adding
loops run on SciPy, also for a matrix on a GPU: there they are made once, and products often.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field
from typing import Any, TypeVar, overload

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift import fixed_order
from undrift.errors import InputError
from undrift.typing import Rows

T = TypeVar("T")
U = TypeVar("U")

_AT_ONCE = {"cpu": 2**20, "cuda": 2**28}  # entries, where a pass makes a copy of them
_TABLE_FROM = 64  # a table of all columns pays where one in so many is asked for
_WIDENED_AT_ONCE = 2**23  # entries that are held in another type for a product
_BYTES_IN_CACHE = 10 * 2**20  # of the dense matrix that entries are multiplied with
_FEWEST = 4  # columns at a time
_CUT_AT_ONCE = 2**22  # entries; scipy sorts the columns asked for each time
_WORTH_KEEPING = 0.75  # capacity that is filled to this share is kept as it is


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
    transposed: Csr | None = field(default=None, init=False, repr=False)  # by `with_transpose`
    _torch: Tensor = field(init=False, repr=False)
    checked: InitVar[bool] = True

    def __post_init__(self, checked: bool) -> None:
        if checked:
            self._check_sizes()
        if checked and self.nnz:
            self._check_columns()
        with warnings.catch_warnings():  # torch calls its CSR layout beta, once per process
            warnings.simplefilter("ignore", UserWarning)
            parts = (self.indptr, self.indices, self.values, self.shape)
            matrix = torch.sparse_csr_tensor(*parts, check_invariants=False)
        object.__setattr__(self, "_torch", matrix)

    @classmethod
    def trusted(
        cls, indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]
    ) -> Csr:
        """A matrix that is not checked, for parts that were before."""
        return cls(indptr, indices, values, shape, checked=False)

    def _check_sizes(self) -> None:
        rows, columns = self.shape
        sizes = [tuple(part.shape) for part in (self.indptr, self.indices, self.values)]
        flat = self.indices.dim() == 1 and sizes[1] == sizes[2]
        if min(rows, columns) < 0 or sizes[0] != (rows + 1,) or not flat:
            needs = f"{rows + 1} row pointers and as many columns as values"
            problem = f"needs {needs}, not {sizes[0]}, {sizes[1]} and {sizes[2]}"
            raise InputError(f"a CSR matrix of shape {self.shape} {problem}")
        kinds = self.indptr.dtype, self.indices.dtype
        if kinds[0] not in (torch.int32, torch.int64) or kinds[0] != kinds[1]:
            problem = f"not {kinds[0]} and {kinds[1]}"
            raise InputError(
                f"row pointers and columns must both be int32 or both int64, {problem}"
            )
        if self.symmetric and rows != columns:
            raise InputError(f"a {rows} x {columns} matrix is not square, so not symmetric")
        first, last = int(self.indptr[0]), int(self.indptr[-1])
        if first != 0 or last != self.nnz or bool((self.indptr[1:] < self.indptr[:-1]).any()):
            must = f"run from 0 to {self.nnz} and never decrease"
            raise InputError(f"row pointers must {must}; these run from {first} to {last}")

    def _check_columns(self) -> None:
        low, high = int(self.indices.min()), int(self.indices.max())
        if low < 0 or high >= self.shape[1]:
            wrong = low if low < 0 else high
            raise InputError(f"column index {wrong} is outside a matrix of {self.shape[1]} columns")
        rising = self.indices[1:] > self.indices[:-1]
        starts = self.indptr[1:-1]
        starts = starts[(starts > 0) & (starts < self.nnz)].long()
        rising[starts - 1] = True  # from one row to the next, columns may fall
        if not bool(rising.all()):
            way = "build the matrix with Csr.from_scipy, which sorts them and adds up duplicates"
            raise InputError(f"the columns of a row must rise without repeats; {way}")

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

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Csr:
        """The same matrix elsewhere or in another type; itself when nothing changes."""
        values = self.values.to(device=device, dtype=dtype)
        if values is self.values:
            return self
        parts = (self.indptr.to(device), self.indices.to(device), values)
        return Csr(*parts, self.shape, self.symmetric, checked=False)

    def double(self) -> Csr:
        """The same matrix in float64."""
        return self.to(dtype=torch.float64)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """As a dense tensor; the caller answers for the memory."""
        dense = torch.zeros(self.shape, dtype=dtype or self.dtype, device=self.device)
        dense[self.row_of_entry(), self.indices.long()] = self.values.to(dense.dtype)
        return dense

    def __getitem__(self, rows: slice | Tensor) -> Csr:
        """The rows at these indices or under this mask; or a range, which is a view."""
        if isinstance(rows, Tensor):
            index = row_index(rows.to(self.device), self.shape[0])
            if self.device.type == "cpu":
                return _shared(self.to_scipy()[index.numpy()])
            lengths, entries = self._entries(index)
            return self._built(lengths, self.indices[entries], self.values[entries], self.shape[1])
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise InputError(f"rows {rows} are no range; give them as a list of numbers")
        pointers = self.indptr[start : max(start, stop) + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        indices, values = self.indices[first:last], self.values[first:last]
        shape = (pointers.numel() - 1, self.shape[1])
        return Csr.trusted(pointers - first, indices, values, shape)

    def __mul__(self, column: Tensor) -> Csr:
        """Each row times its number in a column `[rows, 1]`."""
        return self.scaled(column.flatten())

    def abs(self) -> Csr:
        """The absolute value of every entry."""
        return self.with_values(self.values.abs())

    def square(self) -> Csr:
        """The square of every entry."""
        return self.with_values(self.values.square())

    def sum(self, dim: int) -> Tensor:
        """Sums over the columns of a row (1) or the rows of a column (0)."""
        if dim == 1:
            ones = torch.ones(self.shape[1], 1, dtype=self.dtype, device=self.device)
            return (self @ ones).flatten()
        # on the CPU: a GPU adds in any order, and the same seed must give the same bits
        columns, values = self.indices.long().cpu(), self.values.cpu()
        sums = torch.bincount(columns, weights=values, minlength=self.shape[1])
        return sums.to(self.values)

    def t(self) -> Csr:
        """The transpose, in one pass over the entries; a symmetric matrix is its own."""
        if self.symmetric or self.transposed is not None:
            return self.transposed or self
        if self.device.type == "cpu":  # scipy counts, and need not sort
            return Csr.from_scipy(self.to_scipy().T, dtype=self.dtype)
        return self._sorted_by_column()

    def _sorted_by_column(self) -> Csr:
        order = torch.sort(self.indices, stable=True).indices
        counts = torch.bincount(self.indices, minlength=self.shape[1])
        rows = self.row_of_entry().to(self.indices.dtype)[order]
        return self._built(counts, rows, self.values[order], self.shape[0])

    @overload
    def __matmul__(self, other: Tensor) -> Tensor: ...
    @overload
    def __matmul__(self, other: Csr) -> Csr: ...
    def __matmul__(self, other: Rows) -> Rows:
        """The product, with a gradient for a dense right side; sparse times sparse is sparse."""
        if self.shape[1] != other.shape[0]:
            problem = f"a {self.shape[0]} x {self.shape[1]} sparse matrix with one of"
            raise InputError(f"cannot multiply {problem} {other.shape[0]} rows")
        if isinstance(other, Csr):
            product = self.to_scipy() @ other.to_scipy()
            product.sort_indices()
            return Csr.from_scipy(product, dtype=self.dtype).to(self.device)
        if self.dtype != other.dtype:
            problem = f"a sparse matrix of {self.dtype} with a dense one of {other.dtype}"
            raise InputError(f"cannot multiply {problem}; convert one with .to(dtype=...)")
        if torch.is_grad_enabled() and other.requires_grad:
            with_gradient: Tensor = _Product.apply(self, other)  # type: ignore[no-untyped-call]
            return with_gradient
        return _product(self, other)

    def times(self, dense: Tensor, out: Tensor) -> Tensor:
        """The product with a dense matrix, written to `out`: it may be columns of a wider one."""
        return torch.addmm(out, self._torch, dense, beta=0, out=out)

    def with_transpose(self) -> Csr:
        """The same matrix with its transpose kept, which every backward pass needs."""
        if self.symmetric or self.transposed is not None:
            return self
        made = self.promised(symmetric=False)
        object.__setattr__(made, "transposed", self.t())
        return made

    def scaled(self, rows: Tensor, columns: Tensor | None = None) -> Csr:
        """Every entry times its row's number, then times its column's, if there are any."""
        values = self.values * torch.repeat_interleave(rows, self.indptr.diff().long())
        if columns is not None:
            values *= columns.index_select(0, self.indices)
        return self.with_values(values)

    def promised(self, *, symmetric: bool) -> Csr:
        """The same matrix, of which the caller knows that it is symmetric, or does not."""
        parts = (self.indptr, self.indices, self.values, self.shape)
        return Csr(*parts, symmetric, checked=False)

    def row_of_entry(self) -> Tensor:
        """The row of each stored entry."""
        index = torch.arange(self.shape[0], device=self.device)
        return torch.repeat_interleave(index, self.indptr.diff().long())

    def entries_in(self, rows: Tensor) -> int:
        """How many entries there are in these rows (indices)."""
        return int((self.indptr[rows + 1] - self.indptr[rows]).sum())

    def columns_of(self, rows: Tensor) -> Tensor:
        """The columns of all entries in these rows (indices), one row after the other."""
        return self.indices[self._entries(rows)[1]].long()

    def block(self, index: Tensor) -> Csr:
        """The rows and columns at these indices, which rise. Cost: the entries of those rows."""
        count = int(index.numel())
        if self.device.type == "cpu":
            matrix, chosen = self.to_scipy(), index.numpy()
            each = [some.numpy() for some in index.split(self._rows_at_once(_CUT_AT_ONCE))]
            cut = _side_by_side(lambda some: matrix[some][:, chosen], each)
            parts: Iterable[Csr] = map(_shared, cut)
        else:
            parts = self._cut(index)
        block = self._below(parts, (count, count), self.entries_in(index))
        return block.promised(symmetric=self.symmetric)

    def _cut(self, index: Tensor) -> Iterator[Csr]:
        """The parts of a block, some rows at a time, on any device."""
        table = self._table(index)
        for rows in index.split(self._rows_at_once()):
            lengths, entries = self._entries(rows)
            places = self._places(index, self.indices[entries], table)
            kept = places >= 0
            before = torch.cat([kept.new_zeros(1), kept]).cumsum(0)
            ends = lengths.cumsum(0)
            counts = before[ends] - before[ends - lengths]
            yield self._built(counts, places[kept], self.values[entries[kept]], index.numel())

    def over(self, columns: Tensor) -> Csr:
        """With these columns only, which rise and hold every entry."""
        places = self._places(columns, self.indices)
        shape = self.shape[0], int(columns.numel())
        return Csr.trusted(self.indptr, places, self.values, shape)

    def at_rows(self, rows: Tensor, count: int) -> Csr:
        """A matrix of `count` rows with this one's at these places, which rise; others empty."""
        lengths = torch.zeros(count, dtype=torch.int64, device=self.device)
        lengths[rows] = self.indptr.diff().long()
        return self._built(lengths, self.indices, self.values, self.shape[1])

    def _places(self, index: Tensor, columns: Tensor, table: Tensor | None = None) -> Tensor:
        """Where each column stands in a rising index, -1 where it does not."""
        table = self._table(index) if table is None else table
        if table is not None:
            return table[columns]
        columns = columns.long()
        places = torch.searchsorted(index, columns)
        there = index[places.clamp(max=max(0, index.numel() - 1))] == columns
        return torch.where(there, places, -1).to(self.indices.dtype)

    def _table(self, index: Tensor) -> Tensor | None:
        """The place of every column in an index; None where few are asked for: search then."""
        if index.numel() * _TABLE_FROM < self.shape[1]:
            return None
        kind = self.indices.dtype
        table = torch.full((self.shape[1],), -1, dtype=kind, device=self.device)
        table[index] = torch.arange(index.numel(), dtype=kind, device=self.device)
        return table

    def _built(self, lengths: Tensor, indices: Tensor, values: Tensor, width: int) -> Csr:
        """A matrix of parts of this one, given the length of each row."""
        pointers = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        kind = self.indices.dtype if indices.numel() < 2**31 else torch.int64
        shape = int(lengths.numel()), width
        return Csr.trusted(pointers.to(kind), indices.to(kind), values, shape)

    def with_loops(self, at: Tensor) -> Csr:
        """`A + I` of the rows of a square matrix that stand `at` these places."""
        if self.device.type != "cpu":
            return self._with_ones(at)
        each = np.arange(self.shape[0] + 1, dtype=np.int32)
        ones = np.ones(self.shape[0], dtype=self.values.numpy().dtype)
        loops = sp.csr_matrix((ones, at.numpy().astype(np.int32), each), shape=self.shape)
        return _shared(self.to_scipy() + loops)

    def _with_ones(self, at: Tensor) -> Csr:
        """With 1 added to one column of each row, on any device. Cost: a sort."""
        width = self.shape[1]
        own = self.row_of_entry() * width + self.indices
        loops = torch.arange(self.shape[0], device=self.device) * width + at
        places, where = torch.cat([own, loops]).unique(return_inverse=True)
        values = self.values.new_zeros(places.numel())
        values[where[: self.nnz]] = self.values
        values[where[self.nnz :]] += 1
        lengths = (places // width).bincount(minlength=self.shape[0])
        return self._built(lengths, places % width, values, width)

    def cleared(self, index: Tensor) -> Csr:
        """Without the entries in these rows and columns. Cost: a copy of the entries."""
        gone = torch.zeros(max(self.shape), dtype=torch.bool, device=self.device)
        gone[index] = True
        own = self._entries(index)[1]
        if self.symmetric:  # then its columns are in the rows of those in its rows
            others = self._entries(self.indices[own].long().unique())[1]
            theirs = others[gone[self.indices[others]]]
        else:
            theirs = gone[self.indices].nonzero().flatten()
        cut = torch.cat([own, theirs]).unique()
        kept = torch.ones(self.nnz, dtype=torch.bool, device=self.device)
        kept[cut] = False
        pointers = self.indptr - torch.searchsorted(cut, self.indptr).to(self.indptr.dtype)
        parts = (pointers, self.indices[kept], self.values[kept])
        return Csr(*parts, self.shape, self.symmetric, checked=False)

    def row_sums(self, rows: Tensor | None = None) -> Tensor:
        """The sums of all rows, or of these, in float64; a row's does not depend on the others."""
        some = self if rows is None else self[rows]
        return some._row_sums_of(lambda part: part.values.double())

    def sums_over_columns(self, vector: Tensor) -> Tensor:
        """For every row, the sum of `vector` at its columns, whatever the entries are."""
        return self._row_sums_of(lambda part: vector[part.indices])

    def _row_sums_of(self, entries: Callable[[Csr], Tensor]) -> Tensor:
        """The sums over each row of what `entries` makes of the entries of some rows."""
        sums = [entries(self[:0])]
        for rows in self.ranges():
            part = self[rows]
            lengths = part.indptr.diff().long()
            sums.append(torch.segment_reduce(entries(part), "sum", lengths=lengths))
        return torch.cat(sums)

    def by_rows(
        self, made: Callable[[Csr, Tensor], Csr], rows: Tensor | None = None, *, more: int = 0
    ) -> Csr:
        """What is made of all or these rows, each of which may get `more` entries."""
        every = torch.arange(self.shape[0], device=self.device)
        index = every if rows is None else rows
        capacity = (self.nnz if rows is None else self.entries_in(rows)) + more * index.numel()
        each = index.split(self._rows_at_once())
        ranges = self.ranges() if rows is None else each
        parts = (made(self[taken], some) for taken, some in zip(ranges, each, strict=False))
        return self._below(parts, (int(index.numel()), self.shape[1]), capacity)

    def _below(self, parts: Iterable[Csr], shape: tuple[int, int], capacity: int) -> Csr:
        """These parts, one below the other; of this shape, and with at most `capacity` entries."""
        lengths = torch.zeros(shape[0], dtype=torch.int64, device=self.device)
        indices, values = self.indices.new_empty(capacity), self.values.new_empty(capacity)
        start = done = 0
        for part in parts:
            stop = start + part.nnz
            indices[start:stop], values[start:stop] = part.indices, part.values
            lengths[done : done + part.shape[0]] = part.indptr.diff().long()
            start, done = stop, done + part.shape[0]
        indices, values = indices[:start], values[:start]
        if start < capacity * _WORTH_KEEPING:
            indices, values = indices.clone(), values.clone()
        return self._built(lengths, indices, values, shape[1])

    def ranges(self, at_once: int | None = None) -> Iterator[slice]:
        """All rows, some at a time, where a pass over the matrix copies what it reads."""
        step = self._rows_at_once(at_once)
        for start in range(0, self.shape[0], step):
            yield slice(start, min(start + step, self.shape[0]))

    def _rows_at_once(self, at_once: int | None = None) -> int:
        entries = at_once or _AT_ONCE[self.device.type]
        return max(1, self.shape[0] * entries // max(1, self.nnz))

    def _entries(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """How many entries each of these rows has, and where they are stored."""
        starts = self.indptr[rows].long()
        lengths = self.indptr[rows + 1].long() - starts
        ends = lengths.cumsum(0)
        shift = torch.repeat_interleave(starts - ends + lengths, lengths)
        return lengths, shift + torch.arange(shift.numel(), device=self.device)

    def folded(self, columns: Tensor, signs: Tensor, width: int) -> Csr:
        """Column j, times `signs[j]`, added to column `columns[j]` of `width`."""
        each = np.arange(self.shape[1] + 1)
        parts = (signs.cpu().numpy(), columns.cpu().numpy(), each)
        fold = sp.csr_matrix(parts, shape=(self.shape[1], width))
        return self @ Csr.from_scipy(fold, dtype=self.dtype).to(self.device)

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """`left[i] . right[j]` of every stored entry [i, j], in their order."""
        if not self.nnz:
            return left.new_zeros(0)
        sampled = torch.sparse.sampled_addmm(self._torch, left, right.T, beta=0.0)
        found: Tensor = sampled.values()
        return found

    def with_values(self, values: Tensor) -> Csr:
        """The same entries with other values."""
        return Csr.trusted(self.indptr, self.indices, values, self.shape)


def _side_by_side(call: Callable[[T], U], each: Sequence[T]) -> Iterator[U]:
    """`map` in as many threads as torch has, so many at a time: scipy lets other threads run."""
    threads = torch.get_num_threads()
    if threads == 1 or len(each) == 1:
        yield from map(call, each)
        return
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(each), threads):
            yield from pool.map(call, each[start : start + threads])


def _shared(matrix: sp.csr_matrix) -> Csr:
    """A matrix that scipy made of one that was checked, and that nobody else has."""
    pointers, columns, values = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
    return Csr.trusted(pointers, columns, values, matrix.shape)


def _product(csr: Csr, dense: Tensor) -> Tensor:
    """The bare product. Torch's own fills its result with zeros twice before it is written."""
    if dense.dim() == 2 and csr.device.type == "cuda" and fixed_order.available():
        return fixed_order.product(csr.indptr, csr.indices, csr.values, dense)
    if dense.dim() != 2 or csr.device.type != "cpu":
        return csr._torch @ dense
    return csr.times(dense, out=torch.empty(csr.shape[0], dense.shape[1], dtype=dense.dtype))


class _Product(torch.autograd.Function):
    """`Y = A X`; the gradient of X is `A^T G`."""

    @staticmethod
    def forward(ctx: Any, csr: Csr, dense: Tensor) -> Tensor:
        ctx.csr = csr
        return _product(csr, dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, ctx.csr.t() @ grads[0].contiguous()


def product_in_cache(matrix: Csr, dense: Tensor) -> Tensor:
    """The product in the type of the dense matrix, without a copy of a large sparse one in it.

    On the CPU, so few columns at a time that they stay in its cache. A row does not depend on
    which others there are.
    """
    on_cpu, blocks = matrix.device.type == "cpu", [dense]
    at_once = _WIDENED_AT_ONCE if on_cpu else _AT_ONCE["cuda"]
    if on_cpu:
        fitting = _BYTES_IN_CACHE / dense.element_size() / max(dense.shape[0], 1)
        few = 2 ** int(math.log2(max(fitting, _FEWEST)))
        if dense.shape[1] > few:
            blocks = [block.contiguous() for block in dense.split(few, dim=1)]
    if matrix.nnz <= at_once and len(blocks) == 1:
        return matrix.to(dtype=dense.dtype) @ dense
    products = [dense.new_empty(matrix.shape[0], block.shape[1]) for block in blocks]
    for rows in matrix.ranges(at_once):
        some = matrix[rows].to(dtype=dense.dtype)
        for block, product in zip(blocks, products, strict=True):
            product[rows] = some @ block
    return torch.cat(products, dim=1) if len(products) > 1 else products[0]


def plus(a: Rows, b: Rows) -> Rows:
    """The sum of two matrices; sparse where both are."""
    if isinstance(a, Csr) and isinstance(b, Csr):
        return Csr.from_scipy(a.to_scipy() + b.to_scipy(), dtype=a.dtype).to(a.device)
    return a.to_dense() + b.to_dense()


def dense_columns(rows: Rows, columns: slice) -> Tensor:
    """A range of columns as a dense tensor. Cost: a pass over the entries of a sparse matrix."""
    if not isinstance(rows, Csr):
        return rows[:, columns].contiguous()
    there = (rows.indices >= columns.start) & (rows.indices < columns.stop)
    shape = rows.shape[0], columns.stop - columns.start
    dense = torch.zeros(shape, dtype=rows.dtype, device=rows.device)
    places = rows.indices[there].long() - columns.start
    dense[rows.row_of_entry()[there], places] = rows.values[there]
    return dense


def beside(parts: Sequence[Rows]) -> Rows:
    """Columns side by side; sparse where every part is."""
    sparse = [part for part in parts if isinstance(part, Csr)]
    if len(sparse) < len(parts):
        return torch.cat([part.to_dense() for part in parts], dim=1)
    joined = sp.hstack([part.to_scipy() for part in sparse], format="csr")
    return Csr.from_scipy(joined, dtype=sparse[0].dtype).to(sparse[0].device)


def stacked(parts: Sequence[Rows]) -> Rows:
    """Rows one below the other; sparse where one part is."""
    if not any(isinstance(part, Csr) for part in parts):
        return torch.cat([part.to_dense() for part in parts])
    rows = sp.vstack([as_scipy(part) for part in parts])
    return Csr.from_scipy(rows, dtype=parts[0].dtype).to(parts[0].device)


def as_scipy(rows: Rows) -> sp.csr_matrix:
    """Dense or sparse rows as a SciPy matrix."""
    return rows.to_scipy() if isinstance(rows, Csr) else sp.csr_matrix(rows.cpu().numpy())


def row_index(rows: Tensor, count: int, what: str = "row") -> Tensor:
    """Indices of rows, or the places under a boolean mask, as int64; none outside `count`."""
    if rows.dtype == torch.bool:
        if rows.shape != (count,):
            raise InputError(f"a {what} mask needs {count} entries, not {tuple(rows.shape)}")
        return rows.nonzero().flatten()
    whole = not (rows.is_floating_point() or rows.is_complex())
    if rows.dim() != 1 or (rows.numel() and not whole):  # an empty list has no type of its own
        must = "a list of whole numbers or a boolean mask"
        raise InputError(f"give {what}s as {must}, not as {tuple(rows.shape)} of {rows.dtype}")
    index = rows.long()
    outside = index[(index < 0) | (index >= count)]
    if outside.numel():
        problem = f"the {count} {what}s are numbered from 0"
        raise InputError(f"{what} {int(outside[0])} is not there: {problem}")
    return index
