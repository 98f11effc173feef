"""Plain sums: a group, balanced when they are solved, whatever the order and the batches."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.references import balanced_joint_ridge
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.solve import solve
from undrift.analytic.statistics import one_hot

NAMES = ("gram", "moment", "squares", "counts")


def rows_of(seed: int, n: int = 24, d: int = 6) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (n,), generator=draw)
    labels[:3] = torch.arange(3)
    x = torch.randn(n, d, generator=draw, dtype=torch.float64)
    return x * (1 + labels.unsqueeze(1)) + labels.unsqueeze(1), one_hot(labels, (0, 1, 2))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), order=st.permutations(range(4)), gone=st.integers(0, 3))
def test_sums_depend_on_the_rows_in_them_and_on_nothing_else(
    seed: int, order: list[int], gone: int
) -> None:
    x, y = rows_of(seed)
    batches = [slice(6 * k, 6 * k + 6) for k in range(4)]
    total = ClassSums.zero(6)
    for k in order:
        total = total + ClassSums.of(x[batches[k]], y[batches[k]])
    kept = torch.ones(24, dtype=torch.bool)
    kept[batches[gone]] = False
    left = total - ClassSums.of(x[batches[gone]], y[batches[gone]])
    for ours, slow in ((total, ClassSums.of(x, y)), (left, ClassSums.of(x[kept], y[kept]))):
        for name in NAMES:
            torch.testing.assert_close(
                getattr(ours, name), getattr(slow, name), rtol=1e-9, atol=1e-11
            )


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


def test_more_than_there_was_is_noticed() -> None:
    x, y = rows_of(2)
    sums = ClassSums.of(x, y)
    half = ClassSums.of(x[:12], y[:12])
    assert not (sums - half).below_zero(sums)
    assert not (sums - sums).below_zero(sums)
    assert (half - sums).below_zero(half)
    others = ClassSums.of(10 * x[:12], y[:12])  # as many of each class, but never added
    assert (sums - others).below_zero(sums)


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
