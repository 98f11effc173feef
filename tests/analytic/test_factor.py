"""Factors: from a sum, of some of its columns, with jitter."""

from __future__ import annotations

import pytest
import torch

from undrift.analytic.solve import factorise
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


def test_jitter_is_escalated_and_reported() -> None:
    gram = system(5, 40) - 1e-9 * torch.eye(40, dtype=torch.float64)  # slightly indefinite
    factor = factorise(gram, 1e-12)
    assert factor.jitter > 0
    assert factor.jitter < 1e-6
    assert bool(torch.isfinite(factor.lower.tril()).all())


def test_a_hopeless_system_says_what_to_do() -> None:
    with pytest.raises(InputError, match="raise gamma"):
        factorise(-torch.eye(4, dtype=torch.float64), 1e-3)
