"""Gamma chosen from sums equals gamma chosen with every row at hand."""

import pytest
import torch
from torch import Tensor

from tests.harness.references import cross_validated
from undrift.analytic import selection
from undrift.analytic.selection import GAMMAS, Chosen, choose_by_cross_validation, solution_at
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
    given = solution_at(sums, chosen.gamma)
    assert torch.equal(given.weights, chosen.weights)
    assert given.freedom == chosen.freedom


@pytest.mark.parametrize("seed", range(8))
def test_the_walk_goes_down_to_the_nearest_minimum(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = RidgeStatistics.of(*problem(2, 4, 3, 1.0))
    errors = torch.rand(len(GAMMAS), generator=torch.Generator().manual_seed(seed)).tolist()
    asked = []

    def judged(_: object, gamma: float, rows: object) -> tuple[float, Chosen]:
        asked.append(GAMMAS.index(gamma))
        return errors[asked[-1]], Chosen(gamma, torch.zeros(3, 3), 0.0)

    monkeypatch.setattr(selection, "_judged", judged)
    place = GAMMAS.index(choose_by_cross_validation(sums).gamma)
    way = errors[5 : place + 1] if place > 5 else errors[place:6][::-1]
    assert way == sorted(way, reverse=True)
    low, high = max(min(place, 5) - 1, 0), min(max(place, 5) + 2, len(GAMMAS))
    assert errors[place] == min(errors[max(place - 1, 0) : place + 2])
    assert sorted(asked) == list(range(low, high))  # one step beyond the way, each once


def test_rows_that_are_given_tell_the_freedom_of_the_fit() -> None:
    sums = RidgeStatistics.of(*problem(3, 6, 4, 1.0))
    ridge = effective_ridge(sums, 0.5, relative=True)
    system = sums.gram + ridge * torch.eye(sums.width, dtype=torch.float64)
    rows = torch.randn(sums.width, 5, generator=torch.Generator().manual_seed(0)).double()
    scatter = rows @ rows.T
    wanted = float(torch.linalg.solve(system, scatter).trace())
    assert solution_at(sums, 0.5, scatter).freedom == pytest.approx(wanted)
    whole = float(torch.linalg.solve(system, sums.gram).trace())
    assert solution_at(sums, 0.5).freedom == pytest.approx(whole)
