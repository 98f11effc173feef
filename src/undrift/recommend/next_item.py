"""`NextItem` and `Ease`: one ridge regression over items, solved from sums over sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.learners.parameters import Positive, PositiveInt
from undrift.recommend.base import AnyHistories, Recommender
from undrift.recommend.interactions import Array, Histories, Interactions
from undrift.recommend.solve import Solver, System, finest, inverse
from undrift.recommend.sums import (
    SESSIONS,
    TOGETHER,
    UNIT,
    ItemSums,
    Pairs,
    cuts_of,
    sessions_by_pairs,
)
from undrift.sparse import Csr

_PAST, _NEXT = "past", "next"
_AT_ONCE = 2**24  # numbers of the blocks that rows are solved in


class _Solved(NamedTuple):
    """`score = (M^-1 q)' N`; `rows` are those of `B = M^-1 N` for these items."""

    system: System
    right: Csr  # N', a row per item that is scored
    items: Array
    rows: Tensor


def _ridge(sums: ItemSums, ridge: float, power: float) -> sp.dia_matrix:
    """`ridge D^power`, D the sessions per item over their mean."""
    counts = sums.counts.double().clamp(min=1e-300)
    return sp.diags((ridge * (counts / counts.mean()) ** power).numpy())


def _check_share(mix: float) -> None:
    if not 0 <= mix <= 1:
        raise InputError(f"mix is a share from 0 to 1, not {mix}")


@dataclass(kw_only=True, repr=False)
class NextItem(Recommender):
    """The next click of a session, by ridge regression on sums (SLIST's form).

    X is sessions by items, 0 or 1. For every cut of a session S holds the past items and T the
    future ones, with weight `exp(-distance / decay)`. Kept are X'X, S'S and S'T:

        B = (a X'X + (1-a) S'S + l D^p)^-1 (a X'X + (1-a) S'T)

    `mix` is a, `ridge` is l, D are the sessions per item over their mean, p is `ridge_power`. A
    history is `q = sum exp(-age / query_decay) e_item` over its last `last` clicks, and its scores
    are `q'B`. B is never formed: each query is one solution (`System`). 43,000 items take 75 MB of
    sums. They take a tenth of a second per query on one core, or seconds for a factor on a GPU.

    >>> from undrift.recommend import as_interactions
    >>> clicks = as_interactions((["s1", "s1", "s2", "s2"], ["tea", "cup", "tea", "pot"]))
    >>> shop = NextItem(ridge=1.0).observe(clicks)
    >>> [item for item, score in shop.recommend(["tea"], k=2, exclude="history")]
    ['cup', 'pot']
    >>> [item for item, score in shop.forget(clicks, ["s1"]).recommend(["tea"])]
    ['pot', 'tea']
    """

    name: ClassVar[str] = "next-item"
    display: ClassVar[str] = "NextItem"
    keeps: ClassVar[str] = "sums over pairs of items: together, past and next"
    paper: ClassVar[str] = "Choi et al., WWW 2021 (SLIST)"
    summing: ClassVar[tuple[str, ...]] = ("decay", "reach")

    mix: Annotated[float, _check_share] = 0.6
    ridge: Positive = 80.0
    ridge_power: float = 0.5
    decay: Positive = 0.7
    reach: PositiveInt = 64
    query_decay: Positive = 4.0
    last: PositiveInt = 20
    solver: Solver = "auto"
    tolerance: Positive = 1e-10

    def _pairs(self, batch: Interactions) -> dict[str, Pairs]:
        weights = np.rint(UNIT * np.exp(-np.arange(self.reach) / self.decay)).astype(np.int64)
        weights = weights[weights > 0] if batch.ordered else weights[:0]
        past, future = cuts_of(batch, weights)
        return super()._pairs(batch) | {
            _PAST: Pairs.of(past.T @ past, symmetric=True),
            _NEXT: Pairs.of(past.T @ future, symmetric=False),
            _PAST + SESSIONS: sessions_by_pairs(batch, len(weights) - 1, symmetric=True),
            _NEXT + SESSIONS: sessions_by_pairs(batch, 2 * len(weights) - 1, symmetric=False),
        }

    def _takes_sets(self) -> bool:
        return self.mix == 1.0  # then the order does not count

    def _solve(self, sums: ItemSums) -> _Solved:
        together = sums.pairs[TOGETHER].whole() * self.mix
        moved = (1.0 - self.mix) / UNIT**2
        left = together + sums.pairs[_PAST].whole() * moved
        left = left + _ridge(sums, self.ridge, self.ridge_power)
        # a guarded state has more on the diagonal of X'X than the sessions of the item
        more = self.mix * sums.counts.double().numpy() - together.diagonal()
        right = together + sp.diags(more) + sums.pairs[_NEXT].whole() * moved
        system = System(left, solver=self.solver, device=self.device, tolerance=self.tolerance)
        transposed = Csr.from_scipy(right.T.tocsr(), dtype=torch.float64)
        none = torch.zeros(0, len(more), dtype=torch.float64, device=self.device)
        return _Solved(system, transposed.to(self.device), np.zeros(0, np.int64), none)

    def _queries(self, histories: Histories) -> sp.csr_matrix:
        return histories.weighted(self._by_age(), len(self.items_))

    def expect(self, histories: AnyHistories) -> Self:
        """Solve once per item of these histories, where they are fewer: 8 bytes per two items."""
        solution, n = self.settle()._solution, len(self.items_)
        queries = self._queries(Histories.of(histories).at(self.items_))
        asked = np.unique(queries.indices).astype(np.int64)
        kind = finest(self.device, len(asked) * n, 0.4)
        if kind is None or len(asked) >= queries.shape[0]:
            return self
        rows = torch.empty(len(asked), n, dtype=kind, device=self.device)
        places = torch.from_numpy(asked).to(self.device)
        width = max(1, _AT_ONCE // n)
        for some, part in zip(places.split(width), rows.split(width), strict=True):
            unit = torch.zeros(n, len(some), dtype=torch.float64, device=self.device)
            unit[some, torch.arange(len(some), device=self.device)] = 1.0
            part[:] = (solution.right @ solution.system.solve(unit)).T
        self._solution = solution._replace(items=asked, rows=rows)
        return self

    def _scores(self, solution: _Solved, histories: Histories) -> Tensor:
        queries = self._queries(histories)
        some = queries[:, solution.items]
        if some.nnz == queries.nnz:
            return Csr.from_scipy(some, dtype=solution.rows.dtype).to(self.device) @ solution.rows
        dense = Csr.from_scipy(queries.T.tocsr(), dtype=torch.float64).to(self.device).to_dense()
        return (solution.right @ solution.system.solve(dense).contiguous()).T

    @property
    def residual_(self) -> float | None:
        """The largest relative residual of a solution so far; None before the first."""
        return None if self._solution is None else self._solution.system.residual


@dataclass(kw_only=True, repr=False)
class Ease(Recommender):
    """Items that go with a set of items: EASE, `B = I - P / diag(P)`, `P = (X'X + l I)^-1`.

    An item does not speak for itself, so items of the history are recommended only where others
    speak for them. The order of clicks does not count. Cost: a factor and an inverse of n items,
    n^3 operations and 8 n^2 bytes, on a GPU 16. More than 0.8 of the free memory is refused: then
    take `NextItem(mix=1.0)`. Its diagonal of P needs a solution per item, too many to do without.

    >>> from undrift.recommend import as_interactions
    >>> shop = Ease(ridge=1.0).observe(as_interactions(sp.csr_matrix([[1, 1, 0], [1, 1, 1]])))
    >>> [item for item, score in shop.recommend(["0"], k=2, exclude="history")]
    ['1', '2']
    """

    name: ClassVar[str] = "ease"
    display: ClassVar[str] = "Ease"
    keeps: ClassVar[str] = "sessions per pair of items"
    paper: ClassVar[str] = "Steck, WWW 2019"
    needs_order: ClassVar[bool] = False

    ridge: Positive = 100.0

    def _solve(self, sums: ItemSums) -> Tensor:
        """B, dense."""
        system = sums.pairs[TOGETHER].whole() + _ridge(sums, self.ridge, 0.0)
        found = inverse(sp.csr_matrix(system, dtype=np.float64), self.device)
        return found.div_(-found.diagonal().clone()).fill_diagonal_(0.0)

    def _scores(self, solution: Tensor, histories: Histories) -> Tensor:
        longest = int(np.diff(histories.starts).max(initial=0))
        queries = histories.weighted(np.ones(longest), len(self.items_))
        queries.sum_duplicates()
        queries.data[:] = 1.0  # a set
        return Csr.from_scipy(queries, dtype=torch.float64).to(self.device) @ solution

    def _weights(self, history: Sequence[str]) -> list[float]:
        """A set: an item counts once."""
        return [float(name not in history[:i]) for i, name in enumerate(history)]
