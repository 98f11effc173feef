"""Choosing gamma without one stored row: from sums of validation rows, or by leaving one out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.analytic.factor import Factor, factorise
from undrift.analytic.gram import chunks, scaled
from undrift.analytic.solve import effective_ridge, solve_with
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError
from undrift.typing import Rows

GAMMAS: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(-6, 5))
"""The ridges tried, relative to the mean diagonal: 0.001 to 100, two per decade."""

FIRST_GAMMA = 0.1 * 10**0.5
"""Where the very first search begins."""

_STEPS = 6  # of the space in which neighbours of a factor's ridge are tried
_SPAN = 2  # places of the grid to either side that one factor can judge: a decade


@dataclass(frozen=True, eq=False)
class Chosen:
    """A gamma and the exact ridge solution at it."""

    gamma: float
    weights: Tensor


def choose_by_validation(
    statistics: RidgeStatistics, validation: RidgeStatistics, start: float
) -> Chosen:
    """The gamma of `GAMMAS` with the least squared error on every validation row ever seen.

    The error of any W is `tr(W^T R_val W) - 2 tr(W^T Q_val) + energy`: sums suffice. The search
    begins at `start` (the last choice) and needs few factorisations: with one factor of
    `R + g I`, the solutions at other ridges lie almost in the span of `W, S W, S^2 W, ...`,
    `S = (R + g I)^-1`, so a decade to either side is judged in that small space, again until the
    best is where the factor is. The weights come from a Cholesky factor at the gamma returned.

    Cost: mostly one factorisation (d^3 / 3), and 4 d^2 C for each of 6 steps. Beside the two
    sums it holds the factor: 8 d^2 bytes.
    """
    if validation.count == 0:
        raise InputError("there are no validation rows to choose gamma by; give it as a number")

    def judge(place: int) -> tuple[dict[int, float], Tensor]:
        factor = factorise(statistics.gram, _ridge(statistics, place))
        weights = solve_with(factor, statistics)
        return _nearby_errors(factor, weights, statistics, validation, place), weights

    return _descend(judge, start)


def choose_by_leave_one_out(
    statistics: RidgeStatistics,
    rows: Rows,
    targets: Tensor,
    weights: Tensor | None,
    start: float,
) -> Chosen:
    """The gamma of `GAMMAS` with the least leave-one-out error on these rows, part of the sum.

    For tasks without validation rows: the rows of the current task are still there, older ones
    count through the sum. Walks from `start` to the nearest minimum, one factorisation and
    `n d^2` operations a step.
    """

    def judge(place: int) -> tuple[dict[int, float], Tensor]:
        errors = {}
        for near in range(max(place - 1, 0), min(place + 2, len(GAMMAS))):
            if near not in known:
                factor = factorise(statistics.gram, _ridge(statistics, near))
                known[near] = leave_one_out(factor, statistics, rows, targets, weights)
            errors[near] = known[near]
        factor = factorise(statistics.gram, _ridge(statistics, place))
        return errors, solve_with(factor, statistics)

    known: dict[int, float] = {}
    return _descend(judge, start)


def _descend(judge: Callable[[int], tuple[dict[int, float], Tensor]], start: float) -> Chosen:
    """Follow the least error from place to place of the grid until it stays."""
    place = min(range(len(GAMMAS)), key=lambda k: abs(torch.tensor(GAMMAS[k] / start).log()))
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
    """Validation errors at the places within a decade, exact at `place` itself.

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
        c = turned / (values + _ridge(statistics, k)).unsqueeze(1)
        error = (c * (reduced @ c)).sum() - 2 * (c * cross).sum()
        errors[k] = float(error) + validation.energy
    errors[place] = validation.squared_error(weights)
    return errors


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


def leave_one_out(
    factor: Factor,
    statistics: RidgeStatistics,
    rows: Rows,
    targets: Tensor,
    weights: Tensor | None,
) -> float:
    """`sum_i w_i |y_i - W_(-i)^T x_i|^2`, W_(-i) the solution without row i, at the factor's ridge.

    Closed form: the residual divided by `1 - w_i x_i^T (R + g I)^-1 x_i`. Cost: n d^2.
    """
    solution = solve_with(factor, statistics)
    total = 0.0
    for where, part in chunks(scaled(rows, weights)):
        x = part.to_dense()
        y = scaled(targets[where], None if weights is None else weights[where]).to_dense()
        half = torch.linalg.solve_triangular(factor.lower, x.T, upper=False)
        leverage = half.square().sum(dim=0).clamp(max=1 - 1e-12)
        residual = (y - x @ solution) / (1 - leverage).unsqueeze(1)
        total += float(residual.square().sum())
    return total
