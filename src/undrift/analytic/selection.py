"""Choosing gamma without one stored row: from the sums of the training rows alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.analytic.solve import Thin, ThinStatistics, effective_ridge, factorise
from undrift.analytic.statistics import RidgeStatistics

GAMMAS: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(-6, 5))
"""The ridges tried, relative to the mean diagonal: 0.001 to 100, two per decade."""

FIRST_GAMMA = GAMMAS[5]
"""Where every search begins: 0.316."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """A gamma, the exact ridge solution at it, and the degrees of freedom that it uses."""

    gamma: float
    weights: Tensor
    freedom: float


def choose_by_cross_validation(
    statistics: RidgeStatistics | ThinStatistics, rows: Tensor | Thin | None = None
) -> Chosen:
    """The gamma of `GAMMAS` with the least generalised cross-validation error; needs no other row.

    `|y - W^T x|^2 / (1 - f / n)^2` summed over the n rows, with the degrees of freedom `f = tr (R
    + g I)^-1 R` (Golub, Heath and Wahba, 1979). Where R is made from a sum (`ClassSums.balanced`),
    `rows` is the sum that stands for it in f. Walks from one place to the nearest minimum. Cost of
    each of mostly three steps: 2 d^3 / 3; with `rows` 2 d^3; of `ThinStatistics` with k directions
    2 d k^2.
    """
    judged: dict[int, tuple[float, Chosen]] = {}
    place = GAMMAS.index(FIRST_GAMMA)
    while True:
        near = range(max(place - 1, 0), min(place + 2, len(GAMMAS)))
        for k in near:
            if k not in judged:
                judged[k] = _judged(statistics, GAMMAS[k], rows)
        best = min(near, key=lambda k: (judged[k][0], k))
        if best == place:
            return judged[place][1]
        place = best


def solution_at(
    statistics: RidgeStatistics | ThinStatistics, gamma: float, rows: Tensor | Thin | None = None
) -> Chosen:
    """The same with a gamma that is given, relative to the mean diagonal."""
    return _judged(statistics, gamma, rows)[1]


def _judged(
    statistics: RidgeStatistics | ThinStatistics, gamma: float, rows: Tensor | Thin | None
) -> tuple[float, Chosen]:
    if isinstance(statistics, ThinStatistics):
        mean = float(statistics.matrix.diag.mean())
        thin = rows if isinstance(rows, Thin) else None
        weights, freedom = statistics.solution(gamma * (mean if mean > 0 else 1.0), thin)
        used = statistics.freedom_of_rows(freedom)
    else:
        ridge = effective_ridge(statistics, gamma, relative=True)
        factor = factorise(statistics.gram, ridge)
        # rows in order: a restored copy has that layout, and other layouts round differently
        weights = factor.solve(statistics.moment).contiguous()
        d = statistics.width
        eye = torch.eye(d, dtype=torch.float64, device=statistics.gram.device)
        half = torch.linalg.solve_triangular(factor.lower, eye, upper=False)
        if isinstance(rows, Tensor):
            used = freedom = float(((half @ rows) * half).sum())
        else:
            used = freedom = d - ridge * float(half.square().sum())
    left = max(1 - used / max(statistics.count, 1), 1e-6)
    return statistics.squared_error(weights) / left**2, Chosen(gamma, weights, freedom)
