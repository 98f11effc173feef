"""The pure function from a sum to weights."""

from __future__ import annotations

import pytest
import torch

from tests.harness.references import joint_ridge
from undrift.analytic.solve import effective_ridge, solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError


@pytest.fixture
def statistics() -> RidgeStatistics:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(40, 8, dtype=torch.float64, generator=generator)
    return RidgeStatistics.of(rows, torch.randn(40, 2, dtype=torch.float64, generator=generator))


def test_relative_gamma_is_scaled_by_the_mean_diagonal(statistics: RidgeStatistics) -> None:
    mean = float(statistics.gram.diagonal().mean())
    assert effective_ridge(statistics, 0.1, relative=True) == pytest.approx(0.1 * mean)
    same = solve(statistics, 0.1 * mean)
    assert torch.allclose(solve(statistics, 0.1, relative=True), same, rtol=1e-12)


def test_relative_gamma_means_the_same_for_more_rows(statistics: RidgeStatistics) -> None:
    tenfold = statistics
    for _ in range(9):
        tenfold = tenfold + statistics
    one, ten = (solve(s, 0.3, relative=True) for s in (statistics, tenfold))
    assert torch.allclose(one, ten, rtol=1e-10)


def test_a_prior_pulls_toward_itself(statistics: RidgeStatistics) -> None:
    prior = torch.full((8, 2), 3.0, dtype=torch.float64)
    assert torch.allclose(solve(statistics, 1e9, prior=prior), prior, atol=1e-5)
    rows = torch.randn(20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    fitted = RidgeStatistics.of(rows, rows @ prior)
    assert torch.allclose(solve(fitted, 5.0, prior=prior), prior)  # nothing to trade off
    shifted = joint_ridge(rows, torch.ones(20, 2) - rows @ prior, 0.7) + prior
    ones = RidgeStatistics.of(rows, torch.ones(20, 2))
    assert torch.allclose(solve(ones, 0.7, prior=prior), shifted, rtol=1e-9)


def test_a_prior_of_another_shape(statistics: RidgeStatistics) -> None:
    with pytest.raises(InputError, match="prior of shape"):
        solve(statistics, 1.0, prior=torch.zeros(3, 3))


@pytest.mark.parametrize("gamma", [0.0, -1.0, float("nan")])
def test_gamma_must_be_positive(statistics: RidgeStatistics, gamma: float) -> None:
    with pytest.raises(InputError, match="gamma must be greater than 0"):
        solve(statistics, gamma)


@pytest.mark.parametrize("unseen", [1, 40, 299, 300])
@pytest.mark.parametrize("pulled", [False, True])
def test_columns_never_seen_are_left_out_of_the_system(unseen: int, pulled: bool) -> None:
    """Theirs is what the whole system says: the prior, or zero."""
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(50, 300, dtype=torch.float64, generator=generator)
    never = torch.randperm(300, generator=generator)[:unseen]
    rows[:, never] = 0
    targets = torch.randn(50, 2, dtype=torch.float64, generator=generator)
    prior = torch.randn(300, 2, dtype=torch.float64, generator=generator) if pulled else None
    given = solve(RidgeStatistics.of(rows, targets), 0.3, prior=prior)
    toward = torch.zeros(300, 2, dtype=torch.float64) if prior is None else prior
    whole = joint_ridge(rows, targets - rows @ toward, 0.3) + toward
    assert torch.allclose(given, whole, rtol=1e-9, atol=1e-12)
    assert torch.allclose(given[never], toward[never], rtol=1e-15, atol=0)
    assert given.is_contiguous()
