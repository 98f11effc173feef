"""Three simple recommenders to compare with: popular items, the last item, similar items."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.learners.parameters import NotNegative, Positive, PositiveInt
from undrift.recommend.base import Recommender
from undrift.recommend.interactions import Array, Histories, Interactions
from undrift.recommend.sums import SESSIONS, TOGETHER, ItemSums, Pairs, cuts_of, sessions_by_pairs
from undrift.sparse import Csr

_NEXT = "next"


class _Linear(NamedTuple):
    """`score = W' q + b`: W' with a row per item that is scored, b one number per item."""

    right: Csr
    usual: Tensor


@dataclass(kw_only=True, repr=False)
class Popularity(Recommender):
    """The items of most sessions, whatever the history. Kept: sessions per item.

    >>> from undrift.recommend import as_interactions
    >>> shop = Popularity().observe(as_interactions((["s", "s", "t"], ["tea", "cup", "tea"])))
    >>> shop.recommend(["cup"])
    [('tea', 2.0), ('cup', 1.0)]
    """

    name: ClassVar[str] = "popularity"
    display: ClassVar[str] = "Popularity"
    keeps: ClassVar[str] = "sessions per item"
    needs_order: ClassVar[bool] = False

    def _pairs(self, batch: Interactions) -> dict[str, Pairs]:
        return {}

    def _solve(self, sums: ItemSums) -> Tensor:
        return sums.counts.double().to(self.device)

    def _scores(self, solution: Tensor, histories: Histories) -> Tensor:
        return solution.expand(len(histories), -1)


@dataclass(kw_only=True, repr=False)
class LastItem(Recommender):
    """What followed the last item most often; ties go by popularity.

    Kept: how often each item followed each other one and in how many sessions, and X'X. These
    guard rare pairs.

    >>> from undrift.recommend import as_interactions
    >>> shop = LastItem().observe(as_interactions((list("sstt"), ["tea", "cup", "tea", "pot"])))
    >>> [item for item, score in shop.recommend(["pot", "tea"])]
    ['cup', 'pot', 'tea']
    """

    name: ClassVar[str] = "last-item"
    display: ClassVar[str] = "Last item"
    keeps: ClassVar[str] = "counts of pairs of items, one after the other and together"

    def _pairs(self, batch: Interactions) -> dict[str, Pairs]:
        past, future = cuts_of(batch, np.array([1]))
        return super()._pairs(batch) | {
            _NEXT: Pairs.of(past.T @ future, symmetric=False),
            _NEXT + SESSIONS: sessions_by_pairs(batch, 1, symmetric=False),
        }

    def _solve(self, sums: ItemSums) -> _Linear:
        counts = sums.counts.double()
        usual = counts / (1 + counts.numpy().max(initial=0))
        return _linear(sums.pairs[_NEXT].whole(), usual, self.device)

    def _scores(self, solution: _Linear, histories: Histories) -> Tensor:
        return _scored(solution, histories, np.ones(1))


@dataclass(kw_only=True, repr=False)
class ItemKnn(Recommender):
    """Items that come in the same sessions as those of the history, by their cosine.

    `cos_ij = (X'X)_ij / sqrt((c_i + shrink) (c_j + shrink))`, c the sessions per item. A history
    weighs its last `last` clicks by `exp(-age / query_decay)`. Kept: X'X.

    >>> from undrift.recommend import as_interactions
    >>> shop = ItemKnn().observe(as_interactions((list("sstt"), ["tea", "cup", "tea", "pot"])))
    >>> [item for item, score in shop.recommend(["cup"], k=2)]
    ['cup', 'tea']
    """

    name: ClassVar[str] = "item-knn"
    display: ClassVar[str] = "Item-kNN"
    paper: ClassVar[str] = "Sarwar et al., WWW 2001"
    keeps: ClassVar[str] = "sessions per pair of items"
    needs_order: ClassVar[bool] = False

    shrink: NotNegative = 20.0
    query_decay: Positive = 4.0
    last: PositiveInt = 20

    def _solve(self, sums: ItemSums) -> _Linear:
        counts = sums.counts.double()
        whole = sp.csr_matrix(sums.pairs[TOGETHER].whole(), dtype=np.float64)
        whole.setdiag(counts.numpy())  # a guarded state has more there than sessions
        scale = sp.diags((counts + self.shrink).clamp(min=1e-300).rsqrt().numpy())
        return _linear(scale @ whole @ scale, torch.zeros_like(counts), self.device)

    def _scores(self, solution: _Linear, histories: Histories) -> Tensor:
        return _scored(solution, histories, self._by_age())


def _linear(matrix: sp.csr_matrix, usual: Tensor, device: str) -> _Linear:
    right = Csr.from_scipy(matrix.T.tocsr(), dtype=torch.float64)
    return _Linear(right.to(device), usual.to(device))


def _scored(solution: _Linear, histories: Histories, weights: Array) -> Tensor:
    queries = histories.weighted(weights, solution.usual.numel())
    asked = Csr.from_scipy(queries.T.tocsr(), dtype=torch.float64).to(str(solution.usual.device))
    return (solution.right @ asked.to_dense()).T + solution.usual
