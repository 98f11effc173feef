"""Gamma chosen from sums equals gamma chosen with every row at hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.harness.references import cross_validated
from undrift.analytic.selection import GAMMAS, choose_by_cross_validation, solution_at
from undrift.analytic.solve import effective_ridge, solve
from undrift.analytic.statistics import RidgeStatistics


def problem(seed: int, n: int, d: int, noise: float) -> tuple[Tensor, Tensor]:
    """Rows and targets of a noisy linear map, columns of unlike size."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    truth, scale = normal(d, 3), torch.logspace(0, -2, d, dtype=torch.float64)
    x = normal(n, d) * scale
    return x, x @ truth + noise * normal(n, 3)


@pytest.mark.parametrize("noise", [0.03, 3.0, 30.0])
def test_cross_validation_finds_its_minimum(noise: float) -> None:
    x, y = problem(2, 40, 30, noise)
    sums = RidgeStatistics.of(x, y)
    chosen = choose_by_cross_validation(sums)
    ridges = (effective_ridge(sums, gamma, relative=True) for gamma in GAMMAS)
    errors = [cross_validated(x, y, ridge) for ridge in ridges]
    assert chosen.gamma == GAMMAS[errors.index(min(errors))]
    assert torch.equal(chosen.weights, solve(sums, chosen.gamma, relative=True))
    hat = x @ torch.linalg.solve(
        x.T @ x + effective_ridge(sums, chosen.gamma, relative=True) * torch.eye(30), x.T
    )
    assert chosen.freedom == pytest.approx(float(hat.trace()))


def test_a_given_gamma_has_the_same_solution() -> None:
    x, y = problem(2, 40, 30, 3.0)
    sums = RidgeStatistics.of(x, y)
    chosen = choose_by_cross_validation(sums)
    given = solution_at(sums, chosen.gamma)
    assert torch.equal(given.weights, chosen.weights)
    assert given.freedom == chosen.freedom
