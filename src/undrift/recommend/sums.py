"""`ItemSums`: what is kept of sessions, as whole numbers per item and per pair of items.

Weights are multiples of 2^-16. So all sums are whole numbers in some unit, and they are exact: any
order of adding and subtracting gives the same bits, and what was forgotten leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.errors import InputError
from undrift.recommend.interactions import Array, Interactions

UNIT = 2**16  # a weight of 1 as a whole number
TOGETHER = "together"  # the pairs that count sessions with both items: X'X, the diagonal too
SESSIONS = "_sessions"  # `next_sessions` counts the sessions behind each pair of `next`
_DENSE = 500  # items up to which every eigenvalue is looked for


@dataclass(frozen=True, eq=False)
class Pairs(Additive):
    """A sparse matrix of items by items, 12 bytes per entry; of a symmetric one the lower half."""

    agreed: ClassVar[tuple[str, ...]] = ("symmetric",)

    starts: Tensor
    columns: Tensor
    values: Tensor
    symmetric: bool

    @classmethod
    def of(cls, matrix: Any, *, symmetric: bool) -> Pairs:
        """Of a square matrix."""
        found = sp.csr_matrix(sp.tril(matrix) if symmetric else matrix)
        found.eliminate_zeros()
        found.sort_indices()
        starts = torch.from_numpy(found.indptr.astype(np.int64))
        columns = torch.from_numpy(found.indices.astype(np.int32))
        return cls(starts, columns, torch.from_numpy(found.data), symmetric)

    @property
    def classes(self) -> int:
        """How many items: the columns that `Additive` adds and orders by."""
        return self.starts.numel() - 1

    def half(self) -> sp.csr_matrix:
        """The matrix as it is kept, in the same memory."""
        parts = (self.values.numpy(), self.columns.numpy(), self.starts.numpy())
        return sp.csr_matrix(parts, shape=(self.classes, self.classes))

    def whole(self) -> sp.csr_matrix:
        """All of the matrix."""
        half = self.half()
        return half + sp.tril(half, -1).T.tocsr() if self.symmetric else half

    def select(self, columns: Sequence[int]) -> Self:
        """These items in this order; -1 is one without entries."""
        place = np.full(self.classes + 1, -1)
        place[[*columns]] = np.arange(len(columns))
        place[-1], half = -1, self.half().tocoo()
        row, column = place[half.row], place[half.col]
        kept = (row >= 0) & (column >= 0)
        if self.symmetric:
            row, column = np.maximum(row, column), np.minimum(row, column)
        shape = len(columns), len(columns)
        return self._as(sp.csr_matrix((half.data[kept], (row[kept], column[kept])), shape=shape))

    def grow(self, classes: int) -> Self:
        """With at least this many items."""
        more = max(0, classes - self.classes)
        return replace(self, starts=torch.cat([self.starts, self.starts[-1:].repeat(more)]))

    def _combined(self, other: Self, sign: int) -> Self:
        one, two = (each.grow(max(self.classes, other.classes)).half() for each in (self, other))
        return self._as(one + sign * two)

    def _as(self, matrix: Any) -> Self:
        return replace(self, **vars(Pairs.of(matrix, symmetric=self.symmetric)))


@dataclass(frozen=True, eq=False)
class ItemSums(Additive):
    """Sessions, sessions per item, and matrices over pairs of items by name."""

    per_class: ClassVar[tuple[str, ...]] = ("counts",)

    sessions: int
    counts: Tensor
    pairs: dict[str, Pairs]

    @classmethod
    def of(cls, batch: Interactions, pairs: dict[str, Pairs]) -> ItemSums:
        """Of a batch, with a column per item of it."""
        counts = sessions_by_items(batch).getnnz(axis=0).astype(np.int64)
        return cls(len(batch.sessions), torch.from_numpy(counts), pairs)

    def numbers(self) -> list[Tensor]:
        """All that is counted."""
        return [self.counts, *(each.values for each in self.pairs.values())]

    def overdrawn(self) -> bool:
        """Whether more was subtracted than there was."""
        return self.sessions < 0 or any(bool((part < 0).any()) for part in self.numbers())

    def check(self, items: int) -> None:
        """Refuse what no sums over so many items are: a state that was tampered with."""
        fits = all(part.dtype == torch.int64 for part in self.numbers())
        fits = fits and self.counts.shape == (items,)
        try:
            for pairs in self.pairs.values():
                pairs.half().check_format()  # of SciPy: every index is inside, and rows follow
                fits = fits and pairs.classes == items
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InputError(
                "the state is damaged: its pairs do not fit its items; restore it from a copy or "
                "learn again"
            )

    def scaled(self, by: float) -> ItemSums:
        """Every number times a factor, in float64."""
        pairs = {k: replace(p, values=p.values.double() * by) for k, p in self.pairs.items()}
        return replace(self, counts=self.counts.double() * by, pairs=pairs)

    def guarded(self, least: int) -> ItemSums:
        """Without what fewer than `least` sessions stand behind: items, and pairs of items.

        Every number of a pair that is left has so many sessions behind it: that of a pair in one
        order has them in this order. Of a diagonal the sum alone is kept, spread over items by
        their sessions: one of its numbers may stand on few. That of a symmetric matrix is
        stretched until it is positive definite.
        """
        enough = self.counts >= least
        counts, made = (self.counts * enough).numpy(), {}
        for name, pairs in self.pairs.items():
            half, behind = pairs.half(), self._behind(name).tocoo()
            often = (behind.data >= least) & (behind.row != behind.col)
            places = behind.row[often], behind.col[often]
            beside = half.multiply(sp.csr_matrix((np.ones(often.sum(), int), places), half.shape))
            diagonal = counts * (half.diagonal() @ enough.numpy() / max(1, counts.sum()))
            if pairs.symmetric:
                diagonal = np.ceil(diagonal * _stretch(beside + beside.T, diagonal))
            kept = beside + sp.diags(np.rint(diagonal).astype(np.int64), dtype=np.int64)
            made[name] = Pairs.of(kept, symmetric=pairs.symmetric)
        return replace(self, counts=self.counts * enough, pairs=made)

    def _behind(self, name: str) -> sp.csr_matrix:
        """How many sessions stand behind each number of a matrix of pairs."""
        own = name if name.endswith(SESSIONS) else name + SESSIONS
        return self.pairs[own if own in self.pairs else TOGETHER].half()


def counting(pairs: Iterable[str]) -> dict[str, str]:
    """The matrices that count sessions, and what a sentence calls what they count."""
    names = {TOGETHER: "pairs"}
    return {k: names.get(k, k.removesuffix(SESSIONS)) for k in pairs if k in names or SESSIONS in k}


def _stretch(beside: Any, diagonal: Array) -> float:
    """How many times a diagonal makes a symmetric matrix positive definite, at least once."""
    some = np.flatnonzero(diagonal)
    scale = sp.diags(diagonal[some] ** -0.5)
    matrix = scale @ beside.tocsr()[some][:, some] @ scale
    if len(some) <= _DENSE:
        lowest = np.linalg.eigvalsh(matrix.toarray()).min(initial=0.0)
    else:
        start = np.random.default_rng(0).standard_normal(len(some))
        options: Any = {"which": "SA", "tol": 1e-3, "v0": start, "return_eigenvectors": False}
        lowest = eigsh(matrix, k=1, **options)[0]
    return max(1.0, -1.01 * float(lowest))


def sessions_by_items(batch: Interactions) -> sp.csr_matrix:
    """X: 1 where a session has an item, however often."""
    shape = len(batch.sessions), len(batch.items)
    ones = np.ones(len(batch), np.int64)
    matrix = sp.csr_matrix((ones, (batch.session, batch.item)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def cuts_of(batch: Interactions, weights: Array) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """S and T: a row per cut of a session, with the weights of past and of future items."""
    last = len(batch.sessions) - 1
    backwards = replace(batch, session=last - batch.session[::-1], item=batch.item[::-1])
    past, future = (
        clicks.cases(most=len(weights))[0].weighted(weights, len(batch.items))
        for clicks in (batch, backwards)  # what is before a cut of the other is after it
    )
    return past, future[::-1]


def sessions_by_pairs(batch: Interactions, within: int, *, symmetric: bool) -> Pairs:
    """How many sessions have item j at most so many clicks after item i.

    `symmetric`: in any order, and before a last click. These are the sessions behind each number
    beside the diagonals of `S'T`, for `within` twice the weights but one, and of `S'S`, for the
    weights but one.
    """
    session, item, n = batch.session, batch.item, len(batch.items)
    if symmetric:
        session, item = (np.delete(part, batch.starts[1:] - 1) for part in (session, item))
    rows, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for distance in range(1, within + 1):
        at = np.flatnonzero(session[distance:] == session[:-distance])
        if not len(at):
            break
        one, other = item[at].astype(np.int64), item[at + distance].astype(np.int64)
        if symmetric:
            one, other = np.maximum(one, other), np.minimum(one, other)
        rows.append(session[at][one != other])
        codes.append((one * n + other)[one != other])
    pairs, place = np.unique(np.concatenate(codes), return_inverse=True)
    shape = len(batch.sessions), len(pairs)
    there = sp.csr_matrix((np.ones(len(place)), (np.concatenate(rows), place)), shape)
    found = there.getnnz(axis=0).astype(np.int64), (pairs // n, pairs % n)
    return Pairs.of(sp.csr_matrix(found, shape=(n, n)), symmetric=symmetric)
