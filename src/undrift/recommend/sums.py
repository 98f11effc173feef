"""`ItemSums`: what is kept of sessions, as whole numbers per item and per pair of items.

Weights are multiples of 2^-16. So all sums are whole numbers in some unit, and they are exact: any
order of adding and subtracting gives the same bits, and what was forgotten leaves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.errors import InputError
from undrift.recommend.interactions import Array, Interactions

UNIT = 2**16
"""A weight of 1 as a whole number."""

TOGETHER = "together"
"""The name of the pairs that count sessions with both items: X'X, the diagonal too."""


@dataclass(frozen=True, eq=False)
class Pairs(Additive):
    """A sparse matrix of items by items; of a symmetric one the lower half.

    Cost: 12 bytes per entry, 8 per item. A sum of two costs a pass over both.

    >>> one = Pairs.of(sp.csr_matrix([[1, 2], [2, 5]]), symmetric=True)
    >>> (one + one - one.select([1, 0])).whole().toarray().tolist()
    [[-3, 2], [2, 9]]
    """

    told: ClassVar[tuple[str, ...]] = ("symmetric",)

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
        chosen = np.asarray(columns, np.int64)
        place = np.full(self.classes, -1)
        place[chosen[chosen >= 0]] = np.flatnonzero(chosen >= 0)
        entries = self.half().tocoo()
        row, column = place[entries.row], place[entries.col]
        there = (row >= 0) & (column >= 0)
        row, column = row[there], column[there]
        if self.symmetric:
            row, column = np.maximum(row, column), np.minimum(row, column)
        shape = len(chosen), len(chosen)
        return self._as(sp.csr_matrix((entries.data[there], (row, column)), shape=shape))

    def grow(self, classes: int) -> Self:
        """With at least this many items."""
        more = max(0, classes - self.classes)
        return replace(self, starts=torch.cat([self.starts, self.starts[-1:].repeat(more)]))

    def where(self, kept: Array) -> Self:
        """Of the entries, as `half` has them, those under a mask."""
        matrix = self.half().copy()
        matrix.data = np.where(kept, matrix.data, 0)
        return self._as(matrix)

    def scaled(self, by: float) -> Self:
        """Every entry times a number."""
        return replace(self, values=self.values.double() * by)

    def check(self, items: int) -> None:
        """Refuse what no matrix of so many items is: a state that was tampered with."""
        starts, columns = self.starts, self.columns
        fits = starts.dim() == columns.dim() == self.values.dim() == 1 and self.classes == items
        fits = fits and columns.shape == self.values.shape and int(starts[0]) == 0
        fits = fits and int(starts[-1]) == columns.numel() and bool((starts.diff() >= 0).all())
        inside = (columns >= 0) & (columns < items)
        types = torch.int64, torch.int32, torch.int64
        if not (
            fits
            and bool(inside.all())
            and (starts.dtype, columns.dtype, self.values.dtype) == types
        ):
            raise InputError(
                "the state is damaged: its pairs do not fit its items; restore it from a copy or "
                "learn again"
            )

    def _combined(self, other: Self, sign: int) -> Self:
        grown = max(self.classes, other.classes)
        return self._as(self.grow(grown).half() + sign * other.grow(grown).half())

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
        counts = np.asarray(sessions_by_items(batch).sum(axis=0)).ravel()
        return cls(len(batch.sessions), torch.from_numpy(counts), pairs)

    def below_zero(self) -> bool:
        """Whether more was subtracted than there was."""
        parts = (self.counts, *(each.values for each in self.pairs.values()))
        return self.sessions < 0 or any(bool((part < 0).any()) for part in parts)

    def scaled(self, by: float) -> ItemSums:
        """Every number times a factor, in float64."""
        pairs = {name: each.scaled(by) for name, each in self.pairs.items()}
        return replace(self, counts=self.counts.double() * by, pairs=pairs)

    def guarded(self, least: int) -> ItemSums:
        """Without what fewer than `least` sessions stand behind: items, and pairs of items.

        A pair is counted in whichever order it came. What is lost of a symmetric matrix beside its
        diagonal is pooled on it, item by item: so it stays positive definite.
        """
        together = self.pairs.get(TOGETHER)
        if least <= 1 or together is None:
            return replace(self, counts=self.counts * (self.counts >= least))
        often = together.whole()
        often.setdiag(self.counts.numpy())
        often.data = (often.data >= least).astype(np.int64)
        often.eliminate_zeros()
        made = {}
        for name, pairs in self.pairs.items():
            half = pairs.half()
            kept = half.multiply(often).tocsr()
            if pairs.symmetric:
                lost = sp.tril(half - kept, -1)
                pooled = np.asarray(lost.sum(axis=0)).ravel() + np.asarray(lost.sum(axis=1)).ravel()
                kept = kept + sp.diags(pooled * (self.counts.numpy() >= least), dtype=np.int64)
            made[name] = Pairs.of(kept, symmetric=pairs.symmetric)
        return replace(self, counts=self.counts * (self.counts >= least), pairs=made)


def sessions_by_items(batch: Interactions) -> sp.csr_matrix:
    """X: 1 where a session has an item, however often."""
    shape = len(batch.sessions), len(batch.items)
    ones = np.ones(len(batch), np.int64)
    matrix = sp.csr_matrix((ones, (batch.session, batch.item)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def weights_of(decay: float, most: int) -> Array:
    """`exp(-distance / decay)` in multiples of 1 / UNIT, from distance 0 until it is nothing."""
    found: Array = np.rint(UNIT * np.exp(-np.arange(most) / decay)).astype(np.int64)
    heavy: Array = found[found > 0]
    return heavy


def cuts_of(batch: Interactions, weights: Array) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """S and T: a row per cut of a session, with the weights of past and of future items.

    The item next to the cut is at distance 0. An item that comes twice has the sum of its weights.
    """
    at = np.arange(len(batch)) - batch.starts[batch.session]
    left = batch.starts[1:][batch.session] - 1 - np.arange(len(batch))
    cuts = np.flatnonzero(at > 0)  # the place of the first click after each cut
    sides = []
    for step, room in ((-1, at), (1, left + 1)):
        rows, items, values = [], [], []
        for distance, weight in enumerate(weights):
            there = np.flatnonzero(room[cuts] > distance)
            if not len(there):
                break
            first = cuts[there] - 1 if step < 0 else cuts[there]
            rows.append(there)
            items.append(batch.item[first + step * distance])
            values.append(np.full(len(there), weight))
        none = [np.zeros(0, np.int64)]
        entries = (
            np.concatenate(values or none),
            tuple(np.concatenate(each or none) for each in (rows, items)),
        )
        sides.append(sp.csr_matrix(entries, shape=(len(cuts), len(batch.items))))
    return sides[0], sides[1]
