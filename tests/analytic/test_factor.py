"""Factors: from a sum, by update, with jitter; the choice between them is by counted cost."""

from __future__ import annotations

import pytest
import torch

from undrift.analytic.factor import factorise, update_is_cheaper
from undrift.errors import InputError


def system(n: int, d: int, seed: int = 0) -> torch.Tensor:
    x = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x.T @ x


def test_solves_the_system() -> None:
    gram = system(50, 20)
    right = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    factor = factorise(gram, 0.5)
    ridge = 0.5 * torch.eye(20, dtype=torch.float64)
    assert factor.jitter == 0
    assert torch.allclose((gram + ridge) @ factor.solve(right), right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [5, 300])
def test_some_columns_alone(d: int) -> None:
    gram = system(2 * d, d)
    columns = torch.arange(1, d, 2)
    before = gram.clone()
    lower = factorise(gram, 0.5, columns).lower.tril()
    wanted = gram[columns][:, columns] + 0.5 * torch.eye(d // 2, dtype=torch.float64)
    assert torch.allclose(lower @ lower.T, wanted, rtol=1e-12, atol=1e-12)
    assert torch.equal(gram, before)


@pytest.mark.parametrize("rows", [1, 5, 130, 300])
@pytest.mark.parametrize("width", [7, 128, 300])
def test_an_update_equals_a_fresh_factor(rows: int, width: int) -> None:
    gram = system(40, width)
    new = torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    updated = factorise(gram, 0.1).updated(new).lower.tril()
    fresh = factorise(gram + new.T @ new, 0.1).lower.tril()
    assert float((updated - fresh).norm() / fresh.norm()) < 1e-11


def test_fifty_updates_stay_exact() -> None:
    width = 150
    gram = system(200, width)
    factor = factorise(gram, 1e-3)
    for seed in range(50):
        new = torch.randn(
            4, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
        )
        factor = factor.updated(new)
        gram = gram + new.T @ new
    right = torch.ones(width, 1, dtype=torch.float64)
    direct = factorise(gram, 1e-3).solve(right)
    assert float((factor.solve(right) - direct).norm() / direct.norm()) < 1e-8


def test_an_update_leaves_its_source_alone() -> None:
    factor = factorise(system(30, 10), 1.0)
    kept, rows = factor.lower.clone(), torch.ones(2, 10, dtype=torch.float64)
    factor.updated(rows)
    assert torch.equal(factor.lower, kept)
    assert torch.equal(rows, torch.ones(2, 10, dtype=torch.float64))


def test_jitter_is_escalated_and_reported() -> None:
    gram = system(5, 40) - 1e-9 * torch.eye(40, dtype=torch.float64)  # slightly indefinite
    factor = factorise(gram, 1e-12)
    assert factor.jitter > 0
    assert factor.jitter < 1e-6
    assert bool(torch.isfinite(factor.lower.tril()).all())


def test_a_hopeless_system_says_what_to_do() -> None:
    with pytest.raises(InputError, match="raise gamma"):
        factorise(-torch.eye(4, dtype=torch.float64), 1e-3)


def test_the_choice_follows_the_counted_cost() -> None:
    assert update_is_cheaper(26, 8710)
    assert update_is_cheaper(500, 8710)
    assert not update_is_cheaper(3000, 8710)
    assert not update_is_cheaper(1, 128)
