"""Gamma chosen from sums equals gamma chosen with every row at hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift.analytic.factor import factorise
from undrift.analytic.selection import (
    GAMMAS,
    choose_by_leave_one_out,
    choose_by_validation,
    leave_one_out,
)
from undrift.analytic.solve import effective_ridge, solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError
from undrift.testing.references import refitted_leave_one_out


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
    start=st.sampled_from(GAMMAS),
)
def test_the_choice_is_a_minimum_of_the_true_validation_error(
    seed: int, n: int, d: int, noise: float, start: float
) -> None:
    x, y, v, u = problem(seed, n, d, noise)
    sums, held = RidgeStatistics.of(x, y), RidgeStatistics.of(v, u)
    chosen = choose_by_validation(sums, held, start)
    weights = [solve(sums, gamma, relative=True) for gamma in GAMMAS]
    errors = [float((u - v @ w).square().sum()) for w in weights]
    place = GAMMAS.index(chosen.gamma)
    near = errors[max(place - 1, 0) : place + 2]
    assert errors[place] <= min(near) * (1 + 1e-3)
    torch.testing.assert_close(chosen.weights, weights[place], rtol=1e-12, atol=0)


def test_the_choice_does_not_depend_on_where_the_search_begins() -> None:
    x, y, v, u = problem(3, 80, 40, 1.0)
    sums, held = RidgeStatistics.of(x, y), RidgeStatistics.of(v, u)
    found = {choose_by_validation(sums, held, start).gamma for start in (*GAMMAS, 0.2)}
    assert len(found) == 1


def test_leave_one_out_equals_refitting() -> None:
    x, y, _, _ = problem(1, 14, 6, 0.5)
    weights = torch.linspace(0.2, 1.5, 14, dtype=torch.float64)
    sums = RidgeStatistics.of(x, y, weights)
    ridge = effective_ridge(sums, 0.3, relative=True)
    ours = leave_one_out(factorise(sums.gram, ridge), sums, x[9:], y[9:], weights[9:])
    slow = refitted_leave_one_out(x, y, weights, ridge, range(9, 14))
    assert ours == pytest.approx(slow, rel=1e-9)


def test_leave_one_out_finds_its_minimum() -> None:
    x, y, _, _ = problem(2, 40, 30, 2.0)
    sums = RidgeStatistics.of(x, y)
    chosen = choose_by_leave_one_out(sums, x, y, None, start=1e-3)
    ridges = (effective_ridge(sums, gamma, relative=True) for gamma in GAMMAS)
    errors = [leave_one_out(factorise(sums.gram, r), sums, x, y, None) for r in ridges]
    assert chosen.gamma == GAMMAS[errors.index(min(errors))]
    assert torch.equal(chosen.weights, solve(sums, chosen.gamma, relative=True))


def test_no_validation_rows_is_said() -> None:
    sums = RidgeStatistics.of(torch.eye(2), torch.eye(2))
    with pytest.raises(InputError, match="no validation rows"):
        choose_by_validation(sums, RidgeStatistics.zero(2, 2), 0.1)
