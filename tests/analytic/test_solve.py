"""The pure function from a sum to weights."""

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


@pytest.mark.parametrize("gamma", [0.0, -1.0, float("nan")])
def test_gamma_must_be_positive(statistics: RidgeStatistics, gamma: float) -> None:
    with pytest.raises(InputError, match="gamma must be greater than 0"):
        solve(statistics, gamma)


@pytest.mark.parametrize("unseen", [1, 40, 299, 300])
def test_columns_never_seen_are_left_out_of_the_system(unseen: int) -> None:
    """Theirs is what the whole system says: zero."""
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(50, 300, dtype=torch.float64, generator=generator)
    never = torch.randperm(300, generator=generator)[:unseen]
    rows[:, never] = 0
    targets = torch.randn(50, 2, dtype=torch.float64, generator=generator)
    given = solve(RidgeStatistics.of(rows, targets), 0.3)
    assert torch.allclose(given, joint_ridge(rows, targets, 0.3), rtol=1e-9, atol=1e-12)
    assert not given[never].any()
    assert given.is_contiguous()
