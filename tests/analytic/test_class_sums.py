"""Plain sums: a group, balanced when they are solved, whatever the order and the batches."""

from dataclasses import fields
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.references import balanced_joint_ridge
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import of_rows
from undrift.analytic.selection import choose_by_cross_validation
from undrift.analytic.solve import solve
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums


def rows_of(seed: int, n: int = 48, d: int = 12) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (n,), generator=draw)
    labels[:3] = torch.arange(3)
    x = torch.randn(n, d, generator=draw, dtype=torch.float64)
    return x * (1 + labels.unsqueeze(1)) + labels.unsqueeze(1), one_hot(labels, (0, 1, 2))


def summed(rows: Tensor, targets: Tensor, rank: int) -> Any:
    return ThinSums.of(rows, targets, rank=rank) if rank else ClassSums.of(rows, targets)


@pytest.mark.parametrize("rank", [0, 4])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), order=st.permutations(range(4)), gone=st.integers(0, 3))
def test_sums_depend_on_the_rows_in_them_and_on_nothing_else(
    rank: int, seed: int, order: list[int], gone: int
) -> None:
    x, y = rows_of(seed)
    batches = [slice(12 * k, 12 * k + 12) for k in range(4)]
    total = ThinSums.zero(12, rank=rank) if rank else ClassSums.zero(12)
    for k in order:
        total = total + summed(x[batches[k]], y[batches[k]], rank)
    kept = torch.ones(48, dtype=torch.bool)
    kept[batches[gone]] = False
    left = total - summed(x[batches[gone]], y[batches[gone]], rank)
    slow = summed(x[kept], y[kept], rank)
    whole = summed(x, y, rank)
    assert whole.rounding == pytest.approx(of_rows(48, whole.trace), rel=1e-12)
    for one, other in ((total, whole), (left, slow)):
        for f in fields(one):
            if isinstance(getattr(one, f.name), Tensor):
                mine, theirs = getattr(one, f.name), getattr(other, f.name)
                torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)
    ours, theirs = (
        choose_by_cross_validation(s.balanced(), s.at_mean_weight()) for s in (left, slow)
    )
    assert ours.gamma == theirs.gamma
    torch.testing.assert_close(ours.weights, theirs.weights, rtol=1e-8, atol=1e-9)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), n=st.integers(3, 24), gamma=st.sampled_from([0.01, 0.3, 3.0]))
def test_balance_from_sums_is_ridge_on_stretched_rows(seed: int, n: int, gamma: float) -> None:
    x, y = rows_of(seed, n, 6)
    if n % 2:  # a column that is constant within classes
        x[:, 2] = y.argmax(dim=1).double()
    ours = solve(ClassSums.of(x, y).balanced(), gamma, relative=True)
    slow = balanced_joint_ridge(x, y, gamma)
    assert float((ours - slow).norm() / slow.norm()) < 1e-9


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_variance_is_kept_unless_it_is_what_rounding_leaves_of_squares(unit: float) -> None:
    squares = unit * torch.ones(3, dtype=torch.float64)  # of 1000 rows, a mean square of `unit`
    sums = ClassSums(1000 * squares.diag(), *(torch.zeros(3, 1),) * 2, torch.tensor([1000.0]))
    kept, left, below = 1e-11 * unit, 1e-13 * unit, -1e-11 * unit
    found = sums.without_rounding(torch.tensor([kept, left, below], dtype=torch.float64))
    assert found.tolist() == [kept, 0.0, 0.0]
