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
from undrift.analytic.selection import choose_by_cross_validation
from undrift.analytic.solve import solve
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums


def rows_of(seed: int, n: int = 24, d: int = 6) -> tuple[Tensor, Tensor]:
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
    x, y = rows_of(seed, 48, 12)
    batches = [slice(12 * k, 12 * k + 12) for k in range(4)]
    total = ThinSums.zero(12, rank=rank) if rank else ClassSums.zero(12)
    for k in order:
        total = total + summed(x[batches[k]], y[batches[k]], rank)
    kept = torch.ones(48, dtype=torch.bool)
    kept[batches[gone]] = False
    left = total - summed(x[batches[gone]], y[batches[gone]], rank)
    slow = summed(x[kept], y[kept], rank)
    for one, other in ((total, summed(x, y, rank)), (left, slow)):
        for f in fields(one):
            if isinstance(getattr(one, f.name), Tensor):
                mine, theirs = getattr(one, f.name), getattr(other, f.name)
                torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)
    ours, theirs = (
        choose_by_cross_validation(s.balanced(), s.at_mean_weight()) for s in (left, slow)
    )
    assert ours.gamma == theirs.gamma
    torch.testing.assert_close(ours.weights, theirs.weights, rtol=1e-8, atol=1e-9)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), gamma=st.sampled_from([0.01, 0.3, 3.0]))
def test_balance_from_sums_is_ridge_on_stretched_rows(seed: int, gamma: float) -> None:
    x, y = rows_of(seed)
    ours = solve(ClassSums.of(x, y).balanced(), gamma, relative=True)
    slow = balanced_joint_ridge(x, y, gamma)
    assert float((ours - slow).norm() / slow.norm()) < 1e-9


def test_a_column_that_is_constant_within_classes() -> None:
    x, y = rows_of(0)
    x[:, 2] = y.argmax(dim=1).double()
    ours = solve(ClassSums.of(x, y).balanced(), 0.1, relative=True)
    slow = balanced_joint_ridge(x, y, 0.1)
    assert float((ours - slow).norm() / slow.norm()) < 1e-9


@pytest.mark.parametrize("rank", [0, 4])
def test_one_row_of_a_class_has_no_scatter(rank: int) -> None:
    x, y = rows_of(1, n=3)  # a row of each class
    torch.testing.assert_close(summed(x, y, rank).squares_around, x.new_zeros(3))
    if not rank:
        torch.testing.assert_close(ClassSums.of(x, y).scatter, x.new_zeros(6, 3))


def test_a_class_that_comes_where_none_was_is_not_more_than_there_was() -> None:
    x, y = torch.full((3, 1), 0.1, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    came = ClassSums.of(x, y)
    spread = came.squares - came.moment.square() / 3
    assert spread.item() < 0  # by rounding
    assert not came.below_zero(ClassSums.zero(1))


def test_rounding_grows_with_the_numbers_and_is_not_more_than_there_was() -> None:
    x, y = rows_of(3)
    x = 1e5 * (x + 100.0)
    total = ClassSums.zero(6)
    for k in torch.randperm(24, generator=torch.Generator().manual_seed(0)).tolist():
        total = total + ClassSums.of(x[k : k + 1], y[k : k + 1])
    left = total - ClassSums.of(x, y)
    assert float(left.squares.min()) < 0  # by rounding
    assert not left.below_zero(total)
