"""Choosing gamma without one stored row: from sums of validation rows, or of training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.analytic.factor import Factor, factorise
from undrift.analytic.solve import effective_ridge, solve_with
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError

GAMMAS: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(-6, 5))
"""The ridges tried, relative to the mean diagonal: 0.001 to 100, two per decade."""

FIRST_GAMMA = GAMMAS[5]
"""Where every search begins: 0.316."""

_STEPS = 6  # of the space in which neighbours of a factor's ridge are tried
_SPAN = 2  # places of the grid to either side that one factor can judge: a decade


@dataclass(frozen=True, eq=False)
class Chosen:
    """A gamma and the exact ridge solution at it."""

    gamma: float
    weights: Tensor


def choose_by_validation(statistics: RidgeStatistics, validation: RidgeStatistics) -> Chosen:
    """The gamma of `GAMMAS` whose scores fit every validation row ever seen best, up to scale.

    `min_a sum |y - a W^T x|^2` with W centred over its columns: neither the scale of the scores
    nor what all classes have in common moves a prediction, so neither is judged. It is least
    where `(sum y W^T x)^2 / sum |W^T x|^2` is largest, and sums suffice for that. The search needs
    few factorisations: with one factor of `R + g I`, the solutions at other ridges lie almost in
    the span of `W, S W, S^2 W, ...`, `S = (R + g I)^-1`, so a decade to either side is judged in
    that small space, again until the best is where the factor is. It always begins at one place,
    so that the choice is a function of the sums. The weights come from a Cholesky factor at the
    gamma returned.

    Cost: mostly one or two factorisations (d^3 / 3), and 4 d^2 C for each of 6 steps. Beside the
    two sums it holds the factor: 8 d^2 bytes.
    """
    if validation.count == 0:
        raise InputError("there are no validation rows to choose gamma by; give it as a number")

    def judge(place: int) -> tuple[dict[int, float], Tensor]:
        factor = factorise(statistics.gram, _ridge(statistics, place))
        weights = solve_with(factor, statistics)
        return _nearby_errors(factor, weights, statistics, validation, place), weights

    return _descend(judge)


def choose_by_cross_validation(statistics: RidgeStatistics) -> Chosen:
    """The gamma of `GAMMAS` with the least generalised cross-validation error; needs no other row.

    `|y - W^T x|^2 / (1 - tr H / n)^2` summed over the n rows of the sum, with
    `tr H = tr (R + g I)^-1 R` (Golub, Heath and Wahba, Technometrics 1979). Walks from one place
    to the nearest minimum, one factorisation and one triangular inverse a step: 2 d^3 / 3.
    """

    def judge(place: int) -> tuple[dict[int, float], Tensor]:
        for near in range(max(place - 1, 0), min(place + 2, len(GAMMAS))):
            if near not in known:
                known[near] = _cross_validation(statistics, _ridge(statistics, near))
        around = {k: known[k][0] for k in known if abs(k - place) <= 1}
        return around, known[place][1]

    known: dict[int, tuple[float, Tensor]] = {}
    return _descend(judge)


def _cross_validation(statistics: RidgeStatistics, ridge: float) -> tuple[float, Tensor]:
    factor = factorise(statistics.gram, ridge)
    weights = solve_with(factor, statistics)
    d = statistics.width
    eye = torch.eye(d, dtype=torch.float64, device=statistics.gram.device)
    half = torch.linalg.solve_triangular(factor.lower, eye, upper=False)
    freedom = d - ridge * float(half.square().sum())
    left = max(1 - freedom / max(statistics.count, 1), 1e-6)
    return statistics.squared_error(weights) / left**2, weights


def _descend(judge: Callable[[int], tuple[dict[int, float], Tensor]]) -> Chosen:
    """Follow the least error from place to place of the grid until it stays."""
    place = GAMMAS.index(FIRST_GAMMA)
    visited: dict[int, tuple[float, Tensor]] = {}
    while True:
        errors, solution = judge(place)
        visited[place] = errors[place], solution
        best = min(errors, key=lambda k: (errors[k], k))
        if best in visited:  # here, or where it came from: near ties must not go round in circles
            best = min(visited, key=lambda k: (visited[k][0], k))
            return Chosen(GAMMAS[best], visited[best][1])
        place = best


def _ridge(statistics: RidgeStatistics, place: int) -> float:
    return effective_ridge(statistics, GAMMAS[place], relative=True)


def _nearby_errors(
    factor: Factor,
    weights: Tensor,
    statistics: RidgeStatistics,
    validation: RidgeStatistics,
    place: int,
) -> dict[int, float]:
    """The misfit (`choose_by_validation`) at the places within a decade, exact at `place` itself.

    Galerkin in an orthonormal basis V of the block Krylov space of S: the system
    `(V^T R V + g I) c = V^T Q` has as many rows as V columns.
    """
    basis = _krylov(factor, weights)
    small = basis.T @ (statistics.gram @ basis)
    right = basis.T @ statistics.moment
    values, vectors = torch.linalg.eigh((small + small.T) / 2)
    turned = vectors.T @ right
    reduced = vectors.T @ (basis.T @ (validation.gram @ basis)) @ vectors
    cross = vectors.T @ (basis.T @ validation.grow(statistics.outputs).moment)
    errors = {}
    for k in range(max(place - _SPAN, 0), min(place + _SPAN + 1, len(GAMMAS))):
        c = _centred(turned / (values + _ridge(statistics, k)).unsqueeze(1))
        errors[k] = _misfit(float((c * cross).sum()), float((c * (reduced @ c)).sum()))
    w = _centred(weights)
    agreement = float((w * validation.grow(statistics.outputs).moment).sum())
    errors[place] = _misfit(agreement, float((w * (validation.gram @ w)).sum()))
    return errors


def _centred(weights: Tensor) -> Tensor:
    """Weights without what all classes have in common; those of a single class stay."""
    return weights - weights.mean(dim=1, keepdim=True) if weights.shape[1] > 1 else weights


def _misfit(agreement: float, size: float) -> float:
    """`min_a size a^2 - 2 agreement a`; a is not negative."""
    return -(max(agreement, 0.0) ** 2) / size if size > 0 else 0.0


def _krylov(factor: Factor, weights: Tensor) -> Tensor:
    """An orthonormal basis of `W, S W, ..., S^(steps-1) W`."""
    blocks = [torch.linalg.qr(weights)[0]]
    for _ in range(_STEPS - 1):
        turned = factor.solve(blocks[-1])
        blocks.append(torch.linalg.qr(turned)[0])
    basis = torch.cat(blocks, dim=1)
    # twice is enough: the blocks lean on each other, and one pass leaves rounding behind
    u, s, _ = torch.linalg.svd(basis, full_matrices=False)
    kept: Tensor = u[:, s > 1e-9 * s[0]]
    return kept
