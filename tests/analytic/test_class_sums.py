"""Plain sums: a group, balanced when they are solved, whatever the order and the batches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.references import balanced_joint_ridge
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.solve import solve
from undrift.analytic.statistics import one_hot
from undrift.errors import InputError

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


def test_classes_can_be_reordered_dropped_and_added() -> None:
    x, y = rows_of(1)
    sums = ClassSums.of(x, y)
    turned = sums.select([2, -1, 0])
    assert turned.counts.tolist() == [float(y[:, 2].sum()), 0.0, float(y[:, 0].sum())]
    torch.testing.assert_close(turned.moment[:, 0], sums.moment[:, 2])
    assert float(turned.moment[:, 1].abs().max()) == 0.0
    assert ClassSums.zero(6).select([-1, -1]).counts.tolist() == [0.0, 0.0]
    assert turned.balanced().energy == 2.0


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


def test_sums_of_other_columns_are_refused() -> None:
    with pytest.raises(InputError, match="6 and 4 columns"):
        ClassSums.zero(6) + ClassSums.zero(4)


def test_rounding_grows_with_the_numbers_and_is_not_more_than_there_was() -> None:
    x, y = rows_of(3)
    x = 1e5 * (x + 100.0)
    total = ClassSums.zero(6)
    for k in torch.randperm(24, generator=torch.Generator().manual_seed(0)).tolist():
        total = total + ClassSums.of(x[k : k + 1], y[k : k + 1])
    left = total - ClassSums.of(x, y)
    assert float(left.squares.min()) < 0  # by rounding
    assert not left.below_zero(total)


def test_one_row_cannot_be_further_from_zero_than_its_square() -> None:
    y = torch.ones(1, 1)
    two = ClassSums.of(torch.tensor([[3.0], [0.0]]), torch.ones(2, 1))
    left = two - ClassSums.of(torch.tensor([[-1.0]]), y)  # a row that was never added
    assert (left.squares.item(), left.moment.item(), left.counts.item()) == (8.0, 4.0, 1.0)
    assert left.below_zero(two)


def test_a_gram_under_zero_is_noticed_by_itself() -> None:
    x, y = rows_of(4)
    before = ClassSums.of(x, y)
    gram = before.gram.clone()
    gram[2, 2] = -0.01
    assert ClassSums(gram, before.moment, before.squares, before.counts).below_zero(before)


def test_the_mean_of_a_class_of_one_row_is_that_row() -> None:
    x, y = rows_of(5)
    one = ClassSums.of(x[:1], torch.tensor([[0.0, 1.0]]))
    both = ClassSums.of(x, torch.cat([y[:, :1] * 0 + 1, y[:, :1] * 0], dim=1)) + one
    torch.testing.assert_close(both.balanced().moment[:, 1], x[0])
    ours = solve(both.balanced(), 0.1, relative=True)
    targets = torch.zeros(25, 2, dtype=torch.float64)
    targets[:24, 0] = targets[24, 1] = 1.0
    slow = balanced_joint_ridge(torch.cat([x, x[:1]]), targets, 0.1)
    assert float((ours - slow).norm() / slow.norm()) < 1e-9
