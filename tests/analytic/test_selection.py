"""Gamma chosen from sums equals gamma chosen with every row at hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift.analytic.selection import GAMMAS, choose_by_cross_validation, choose_by_validation
from undrift.analytic.solve import effective_ridge, solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError
from undrift.testing.references import cross_validated


def problem(seed: int, n: int, d: int, noise: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training and validation rows and targets of a noisy linear map, columns of unlike size."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    truth, scale = normal(d, 3), torch.logspace(0, -2, d, dtype=torch.float64)
    x, v = normal(n, d) * scale, normal(n // 2, d) * scale
    return x, x @ truth + noise * normal(n, 3), v, v @ truth + noise * normal(n // 2, 3)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([12, 60]),
    d=st.sampled_from([4, 30, 80]),
    noise=st.sampled_from([0.03, 0.3, 3.0]),
)
def test_the_choice_is_a_minimum_of_the_true_misfit(
    seed: int, n: int, d: int, noise: float
) -> None:
    x, y, v, u = problem(seed, n, d, noise)
    sums, held = RidgeStatistics.of(x, y), RidgeStatistics.of(v, u)
    chosen = choose_by_validation(sums, held)
    weights = [solve(sums, gamma, relative=True) for gamma in GAMMAS]
    errors = [misfit(v @ (w - w.mean(dim=1, keepdim=True)), u) for w in weights]
    place = GAMMAS.index(chosen.gamma)
    near = errors[max(place - 1, 0) : place + 2]
    assert errors[place] <= min(near) + 1e-3 * float(u.square().sum())
    torch.testing.assert_close(chosen.weights, weights[place], rtol=1e-12, atol=0)


def misfit(scores: Tensor, targets: Tensor) -> float:
    """The squared error at the best scale of the scores, found by least squares."""
    scale = torch.linalg.lstsq(scores.flatten().unsqueeze(1), targets.flatten().unsqueeze(1))
    best = max(float(scale.solution), 0.0)
    return float((targets - best * scores).square().sum())


@pytest.mark.parametrize("noise", [0.03, 3.0, 30.0])
def test_cross_validation_finds_its_minimum(noise: float) -> None:
    x, y, _, _ = problem(2, 40, 30, noise)
    sums = RidgeStatistics.of(x, y)
    chosen = choose_by_cross_validation(sums)
    ridges = (effective_ridge(sums, gamma, relative=True) for gamma in GAMMAS)
    errors = [cross_validated(x, y, ridge) for ridge in ridges]
    assert chosen.gamma == GAMMAS[errors.index(min(errors))]
    assert torch.equal(chosen.weights, solve(sums, chosen.gamma, relative=True))


def test_no_validation_rows_is_said() -> None:
    sums = RidgeStatistics.of(torch.eye(2), torch.eye(2))
    with pytest.raises(InputError, match="no validation rows"):
        choose_by_validation(sums, RidgeStatistics.zero(2, 2))
