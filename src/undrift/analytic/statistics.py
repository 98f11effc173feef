"""`RidgeStatistics`: what a learner remembers is a sum; rows are added to it in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from undrift import ranks
from undrift.analytic.additive import Additive
from undrift.analytic.buffers import square
from undrift.errors import InputError
from undrift.typing import Rows, SparseRows

BUDGET_MB = 256
"""The largest dense copy that accumulating rows may make, in MB."""

# A dense product does about seven times as many multiplications per second as a sparse one with
# a dense block (50 against 7 billion, float64, two cores; benchmarks/bench_gram.py).
_SPARSE_BELOW = 1 / 7  # non-zeros, as a share of all cells
_BLOCK = 256  # columns: a block of 4,000 rows stays in the last-level cache
_MIRRORED = 1024  # columns that are copied at a time


@dataclass(frozen=True, eq=False)
class RidgeStatistics(Additive):
    """`gram = sum w x x^T`, `moment = sum w x y^T`, `count`, `energy = sum w |y|^2`, in float64.

    The R and Q of eqs. 7, 9 and 11. A commutative group: `a + b`, `a - b`, `zero`. Columns of
    the moment that one side does not have yet count as zero, so classes may grow at any time.
    Sums, not inverses: sums add exactly across tasks, an updated inverse collects rounding.

    Memory: 8 (d^2 + d C) bytes, whatever the number of rows.

    >>> x, y = torch.eye(2), torch.tensor([[1.0], [2.0]])
    >>> both = RidgeStatistics.of(x[:1], y[:1]) + RidgeStatistics.of(x[1:], y[1:])
    >>> both.moment.flatten().tolist(), both.count
    ([1.0, 2.0], 2)
    """

    per_class: ClassVar[tuple[str, ...]] = ("moment",)
    stored_as_half: ClassVar[tuple[str, ...]] = ("gram",)

    gram: Tensor
    moment: Tensor
    count: int
    energy: float

    @classmethod
    def zero(cls, width: int, outputs: int = 0, device: str = "cpu") -> RidgeStatistics:
        """The sum of no rows."""
        zeros = partial(torch.zeros, width, dtype=torch.float64, device=device)
        return cls(zeros(width), zeros(outputs), 0, 0.0)

    @classmethod
    def of(cls, rows: Rows, targets: Tensor, weights: Tensor | None = None) -> RidgeStatistics:
        """The sum over these rows."""
        return cls.zero(rows.shape[1], device=str(rows.device)).add(rows, targets, weights)

    def add(self, rows: Rows, targets: Tensor, weights: Tensor | None = None) -> RidgeStatistics:
        """Add rows to the sum: the same as `self + of(rows, ...)` with one Gram less.

        `targets` may have more columns than were seen: new classes are new columns.
        """
        self._check_rows(rows, targets, weights)
        copy = square(self.width, self.gram).copy_(self.gram) if self.count else None
        gram = torch.zeros_like(self.gram) if copy is None else copy
        # each row times the root of its weight: the Gram then carries w
        roots = None if weights is None else weights.sqrt().unsqueeze(1)
        y = targets.double() if roots is None else targets.double() * roots
        moment = y.new_zeros(self.width, y.shape[1])
        count, energy = self.count + rows.shape[0], self.energy + float(y.square().sum())
        shared = ranks.world() > 1  # then each rank sums a share of the rows
        more = torch.zeros_like(gram) if shared else gram
        if shared:
            own = ranks.share(rows.shape[0])
            rows, y, roots = rows[own], y[own], None if roots is None else roots[own]
        for where, part in pieces(rows, BUDGET_MB):
            x = part.double() if roots is None else part.double() * roots[where]
            add_gram_(more, x, BUDGET_MB)
            add_product_(moment, x, y[where])
        if shared:
            ranks.add_(more, moment)
            gram.add_(more)
        wide = self.grow(moment.shape[1]).moment
        moment = wide + pad(moment, (0, wide.shape[1] - moment.shape[1]))
        return RidgeStatistics(gram, moment, count, energy)

    def _check_rows(self, rows: Rows, targets: Tensor, weights: Tensor | None) -> None:
        n, d = rows.shape
        if d != self.width:
            raise InputError(
                f"rows have {d} columns but {self.width} were accumulated before; give the same "
                "columns in the same order"
            )
        if targets.dim() != 2 or targets.shape[0] != n:
            raise InputError(
                f"{n} rows need targets of shape [{n}, outputs], not {tuple(targets.shape)}"
            )
        values = rows if isinstance(rows, Tensor) else rows.values
        if not (_finite(values) and _finite(targets)):
            raise InputError(
                "rows or targets contain NaN or infinity; nothing was added, clean them and try "
                "again"
            )
        if weights is not None and (weights.shape != (n,) or not bool((weights >= 0).all())):
            raise InputError(f"row weights must be {n} numbers that are at least 0")

    @property
    def width(self) -> int:
        """Columns of a row: d."""
        return int(self.gram.shape[0])

    def squared_error(self, weights: Tensor) -> float:
        """`sum w |y - W^T x|^2` of any W over every row ever added, without one of them.

        tr(W^T R W) - 2 tr(W^T Q) + energy; cost d^2 C operations.
        """
        w = weights.to(self.gram)
        quadratic = (w * (self.gram @ w)).sum()
        return float(quadratic - 2 * (w * self.grow(w.shape[1]).moment).sum()) + self.energy


def one_hot(labels: Tensor, classes: tuple[int, ...]) -> Tensor:
    """Y of eq. 8: row i has a one in the column of `labels[i]`; float64.

    >>> one_hot(torch.tensor([7, 3]), (3, 7)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    hits = labels.unsqueeze(1) == torch.tensor(classes, device=labels.device)
    if not bool(hits.any(dim=1).all()):
        strange = int(labels[~hits.any(dim=1)][0])
        raise InputError(f"label {strange} is not one of the classes {list(classes)}")
    return hits.double()


def _finite(values: Tensor) -> bool:
    """Whether no number is NaN or infinite: then their sum is not, unless it overflows."""
    return bool(torch.isfinite(values.sum())) or bool(torch.isfinite(values).all())


def chunks(rows: Rows, budget_mb: float = BUDGET_MB) -> Iterator[tuple[slice, Rows]]:
    """Row slices whose dense float64 copy fits the budget; at least one row each."""
    n, d = rows.shape
    step = max(1, int(budget_mb * 2**20 / (8 * max(d, 1))))
    for start in range(0, n, step):
        where = slice(start, min(start + step, n))
        yield where, rows[where]


def pieces(rows: Rows, budget_mb: float = BUDGET_MB) -> Iterator[tuple[slice, Rows]]:
    """Dense rows in chunks, of which a float64 copy is made; sparse rows all at once."""
    whole = [(slice(0, rows.shape[0]), rows)]
    yield from chunks(rows, budget_mb) if isinstance(rows, Tensor) else whole


def add_gram_(gram: Tensor, rows: Rows, budget_mb: float = BUDGET_MB) -> None:
    """`gram += rows^T rows`, rows in float64.

    Only the blocks on and under the diagonal are computed, then mirrored. Cost: n d^2 operations
    for dense rows, at most nnz d for sparse ones; memory: the budget, and half a Gram for sparse
    rows.
    """
    (n, d), on_cpu = rows.shape, rows.device.type == "cpu"
    if not isinstance(rows, Tensor) and rows.nnz < _SPARSE_BELOW * n * d and on_cpu:
        counts = torch.bincount(rows.indices, minlength=d)
        _add_sparse(gram, rows, counts.argsort(descending=True, stable=True), budget_mb)
        return
    block = max(_BLOCK, -(-d // 8))  # eight block columns: 9/16 of the work of the full product
    for _, part in chunks(rows, budget_mb):
        x = part.to_dense()
        for j in range(0, d, block):
            gram[j:, j : j + block].addmm_(x[:, j:].T, x[:, j : j + block])
    for j in range(0, d, _MIRRORED):  # the lower triangle to the upper
        stop = min(j + _MIRRORED, d)
        corner = gram[j:stop, j:stop]
        corner.copy_(corner.tril() + corner.tril(-1).T)
        gram[j:stop, stop:] = gram[stop:, j:stop].T


def add_product_(total: Tensor, rows: Rows, columns: Tensor) -> None:
    """`total += rows^T columns`, all in float64."""
    if isinstance(rows, Tensor):
        total.addmm_(rows.T, columns)
    else:
        total += rows.t() @ columns


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
            stop = j + own.numel()
            lines[: own.numel(), :stop] = under[j:stop, :stop]
            for i in range(stop, d, _BLOCK):
                lines[: own.numel(), i : i + _BLOCK] = under[i : i + _BLOCK, j:stop].T
            torch.gather(lines, 1, place.expand(lines.shape), out=back)
            gram.index_add_(0, own, back[: own.numel()])
