"""`NextItem` and `Ease`: one ridge regression over items, solved from sums over sessions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.datasets.columns import as_text
from undrift.errors import InputError
from undrift.learners.parameters import check_positive
from undrift.recommend.base import Recommender
from undrift.recommend.interactions import Histories, Interactions
from undrift.recommend.solve import Solver, System
from undrift.recommend.sums import (
    TOGETHER,
    UNIT,
    ItemSums,
    Pairs,
    cuts_of,
    sessions_by_items,
    weights_of,
)
from undrift.sparse import Csr

_PAST, _NEXT = "past", "next"


class _Solved(NamedTuple):
    """`score = (M^-1 q)' N`."""

    system: System
    right: Csr  # N', a row per item that is scored


def _together(batch: Interactions) -> Pairs:
    matrix = sessions_by_items(batch)
    return Pairs.of(matrix.T @ matrix, symmetric=True)


def _ridge(sums: ItemSums, ridge: float, power: float) -> sp.dia_matrix:
    """`ridge D^power`, D the sessions per item over their mean."""
    counts = sums.counts.double().clamp(min=1e-300).numpy()
    return sp.diags(ridge * (counts / counts.mean()) ** power)


@dataclass(kw_only=True, repr=False)
class NextItem(Recommender):
    """The next click of a session, by ridge regression on sums (SLIST's form).

    X is sessions by items, 0 or 1. For every cut of a session S holds the past items and T the
    future ones, with weight `exp(-distance / decay)`. Kept are X'X, S'S and S'T:

        B = (a X'X + (1-a) S'S + l D^p)^-1 (a X'X + (1-a) S'T)

    `mix` is a, `ridge` is l, D are the sessions per item over their mean, p is `ridge_power`. A
    history is `q = sum exp(-age / query_decay) e_item` over its last `last` clicks, and its scores
    are `q'B`. B is never formed: each query is one solution (`System`). 43,000 items take 50 MB of
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
    paper: ClassVar[str] = "Choi et al., WWW 2021 (SLIST)"
    summing: ClassVar[tuple[str, ...]] = ("decay", "reach")

    mix: float = 0.6
    ridge: float = 80.0
    ridge_power: float = 0.5
    decay: float = 0.7
    reach: int = 64
    query_decay: float = 4.0
    last: int = 20
    solver: Solver = "auto"
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        _check_settings(self)

    def _pairs(self, batch: Interactions) -> dict[str, Pairs]:
        past, future = cuts_of(batch, weights_of(self.decay, self.reach))
        return {
            TOGETHER: _together(batch),
            _PAST: Pairs.of(past.T @ past, symmetric=True),
            _NEXT: Pairs.of(past.T @ future, symmetric=False),
        }

    def _solve(self, sums: ItemSums) -> _Solved:
        _check_settings(self)
        together = sums.pairs[TOGETHER].whole() * self.mix
        moved = (1.0 - self.mix) / UNIT**2
        left = together + sums.pairs[_PAST].whole() * moved
        left = left + _ridge(sums, self.ridge, self.ridge_power)
        # a guarded state has more on the diagonal of X'X than the sessions of the item
        more = self.mix * sums.counts.double().numpy() - together.diagonal()
        right = together + sp.diags(more) + sums.pairs[_NEXT].whole() * moved
        system = System(left, solver=self.solver, device=self.device, tolerance=self.tolerance)
        told = Csr.from_scipy(right.T.tocsr(), dtype=torch.float64)
        return _Solved(system, told.to(self.device))

    def _queries(self, histories: Histories) -> sp.csr_matrix:
        weights = np.exp(-np.arange(self.last) / self.query_decay)
        return histories.weighted(weights, most=self.last, columns=len(self.items_))

    def _scores(self, solution: _Solved, histories: Histories) -> Tensor:
        queries = self._queries(histories)
        asked = np.unique(queries.indices)
        if len(asked) >= len(histories):
            found = solution.system.solve(torch.from_numpy(queries.toarray().T))
        else:  # fewer items than histories: solve for each item once
            units = torch.zeros(len(self.items_), len(asked), dtype=torch.float64)
            units[torch.from_numpy(asked).long(), torch.arange(len(asked))] = 1.0
            mixed = torch.from_numpy(queries[:, asked].toarray().T)
            found = solution.system.solve(units) @ mixed.to(self.device)
        return (solution.right @ found.contiguous()).T

    @property
    def residual_(self) -> float | None:
        """The largest relative residual of a solution so far; None before the first."""
        return None if self._solution is None else self._solution.system.residual

    def explain(self, history: list[str], item: str) -> list[tuple[str, float]]:
        """What each click of the history adds to the score of an item, oldest first.

        They add up to the score. Clicks before the last `last` and unknown items add 0. Cost: one
        solution, `q' z` with `z = M^-1 N e_item`.

        >>> from undrift.recommend import as_interactions
        >>> shop = NextItem().observe(as_interactions((["s", "s"], ["tea", "cup"])))
        >>> [(name, round(score, 3)) for name, score in shop.explain(["pen", "tea"], "cup")]
        [('pen', 0.0), ('tea', 0.012)]
        """
        solution = self.settle()._solution
        column = {name: i for i, name in enumerate(self.items_)}
        if as_text(item) not in column:
            raise InputError(f"item {item!r} is not known; items_ lists those that are")
        place = column[as_text(item)]
        right = solution.right[torch.tensor([place], device=self.device)].to_dense().T
        found = solution.system.solve(right).flatten().tolist()
        told, age = [], 0
        for name in reversed([as_text(each) for each in history]):
            share = 0.0
            if name in column:
                near = age < self.last
                share = float(np.exp(-age / self.query_decay)) * found[column[name]] * near
                age += 1
            told.append((name, share))
        return told[::-1]


@dataclass(kw_only=True, repr=False)
class Ease(Recommender):
    """Items that go with a set of items: EASE, `B = I - P / diag(P)`, `P = (X'X + l I)^-1`.

    An item does not speak for itself, so items of the history are recommended only where others
    speak for them. The order of clicks does not count. Cost: a factor and an inverse of n items,
    n^3 operations and 16 n^2 bytes; beyond that take `NextItem(mix=1.0)`.

    >>> from undrift.recommend import as_interactions
    >>> shop = Ease(ridge=1.0).observe(as_interactions(sp.csr_matrix([[1, 1, 0], [1, 1, 1]])))
    >>> [item for item, score in shop.recommend(["0"], k=2, exclude="history")]
    ['1', '2']
    """

    name: ClassVar[str] = "ease"
    display: ClassVar[str] = "Ease"
    paper: ClassVar[str] = "Steck, WWW 2019"
    needs_order: ClassVar[bool] = False

    ridge: float = 100.0

    def __post_init__(self) -> None:
        _check_settings(self)

    def _pairs(self, batch: Interactions) -> dict[str, Pairs]:
        return {TOGETHER: _together(batch)}

    def _solve(self, sums: ItemSums) -> Tensor:
        """B, dense."""
        _check_settings(self)
        system = sums.pairs[TOGETHER].whole() + _ridge(sums, self.ridge, 0.0)
        lower = System(system, solver="cholesky", device=self.device).factor()
        inverse = torch.cholesky_inverse(lower.contiguous())
        weights = -inverse / inverse.diagonal()
        weights.fill_diagonal_(0.0)
        return weights

    def _scores(self, solution: Tensor, histories: Histories) -> Tensor:
        most = int(np.diff(histories.starts).max(initial=0))
        queries = histories.weighted(np.ones(most), most=most, columns=len(self.items_))
        queries.sum_duplicates()
        queries.data[:] = 1.0  # a set
        return Csr.from_scipy(queries, dtype=torch.float64).to(self.device) @ solution.double()


def _check_settings(learner: Any) -> None:
    told = {f.name for f in fields(learner)}
    positive = {"ridge", "decay", "reach", "query_decay", "last", "tolerance"} & told
    check_positive(**{name: getattr(learner, name) for name in positive})
    mix = getattr(learner, "mix", 1.0)
    if not 0 <= mix <= 1:
        raise InputError(f"mix is a share from 0 to 1, not {mix}")
