"""Sums add, subtract and follow the classes field by field, and say what rows they came from."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from tests.analytic.test_class_sums import summed
from undrift.analytic.additive import Additive, Parted, arranged
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.thin_sums import ThinSums
from undrift.errors import InputError


@dataclass(frozen=True, eq=False)
class Leaf(Additive):
    per_class: ClassVar[tuple[str, ...]] = ("means",)
    agreed: ClassVar[tuple[str, ...]] = ("seed",)

    means: Tensor
    total: float
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Tree(Additive):
    per_pair: ClassVar[tuple[str, ...]] = ("pairs",)

    leaves: dict[str, Leaf]
    inner: Leaf
    pairs: Tensor


def tree(*values: float, seed: int = 0) -> Tree:
    means = torch.tensor([values])
    pairs = torch.outer(means[0], means[0])
    return Tree({"a": Leaf(2 * means, 1.0, seed)}, Leaf(means, sum(values)), pairs)


def test_every_field_of_a_tree_adds_and_new_classes_are_zeros() -> None:
    both = tree(1.0) + tree(2.0, 5.0)
    assert both.inner.means.tolist() == [[3.0, 5.0]]
    assert both.leaves["a"].means.tolist() == [[6.0, 10.0]]
    assert (both.inner.total, both.leaves["a"].total) == (8.0, 2.0)
    assert both.pairs.tolist() == [[5.0, 10.0], [10.0, 25.0]]
    assert both.classes == 2


def test_a_difference_undoes_a_sum() -> None:
    left = tree(1.0, 4.0) + tree(2.0, 5.0) - tree(2.0, 5.0)
    assert left.inner.means.tolist() == [[1.0, 4.0]]
    assert left.pairs.tolist() == tree(1.0, 4.0).pairs.tolist()
    assert left.inner.total == 5.0


def test_classes_are_taken_in_every_part_and_in_both_dimensions_of_pairs() -> None:
    found = tree(1.0, 2.0, 3.0).select([2, -1, 0])
    assert found.inner.means.tolist() == [[3.0, 0.0, 1.0]]
    assert found.leaves["a"].means.tolist() == [[6.0, 0.0, 2.0]]
    assert found.pairs.tolist() == [[9.0, 0.0, 3.0], [0.0, 0.0, 0.0], [3.0, 0.0, 1.0]]


def test_emptied_has_the_columns_and_no_class() -> None:
    found = tree(1.0, 2.0).emptied()
    assert (found.classes, tuple(found.inner.means.shape), found.inner.total) == (0, (1, 0), 0.0)
    assert (found + tree(1.0)).inner.means.tolist() == [[1.0]]
    assert (found.below_zero(found), found.shaken(torch.Generator())) == (False, found)
    assert found.select([-1, -1]).inner.means.tolist() == [[0.0, 0.0]]
    assert found.select([-1, -1]).pairs.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_growing_copies_nothing_where_nothing_grows() -> None:
    one = tree(1.0, 2.0)
    assert one.grow(2) is one
    assert one.grow(3).inner.means.tolist() == [[1.0, 2.0, 0.0]]


def test_other_features_are_refused_with_both_values() -> None:
    with pytest.raises(InputError, match="0 and 7 as seed"):
        tree(1.0) + tree(1.0, seed=7)
    with pytest.raises(InputError, match="2 and 3 columns"):
        Leaf(torch.ones(2, 1), 0.0) + Leaf(torch.ones(3, 1), 0.0)
    with pytest.raises(InputError, match=r"\['a'\] and \['b'\] as parts"):
        tree(1.0) + replace(tree(1.0), leaves={"b": Leaf(torch.ones(1, 1), 0.0)})


def test_classes_are_arranged_and_those_without_a_column_have_no_rows() -> None:
    sums = tree(1.0, 2.0)
    assert arranged(sums, (7, 3), (7, 3)) is sums
    assert arranged(sums, (7, 3), (3, 5, 7)).inner.means.tolist() == [[2.0, 0.0, 1.0]]


ROWS = torch.tensor([[3.0, 4.0], [1.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
TARGETS = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Both(Parted):
    first: Any
    second: ClassSums


@pytest.mark.parametrize("name", [None, "a"])
def test_of_several_sums_the_first_answers_and_each_is_shaken(name: str | None) -> None:
    few, many = (ClassSums.of(ROWS[:n], TARGETS[:n]) for n in (1, 3))
    two, one = (Both({name: first} if name else first, many) for first in (many, few))
    assert two.counts is many.counts
    assert ((one - two).below_zero(one), (two - one).below_zero(two)) == (True, False)
    noises = [torch.Generator().manual_seed(0) for _ in range(2)]
    made = two.shaken(noises[0])
    for found in (made.first[name] if name else made.first, made.second):
        assert torch.equal(found.gram, many.shaken(noises[1]).gram)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("unit", [1e-3, 1.0])
def test_sums_tell_of_their_rows_what_the_rows_tell(rank: int, unit: float) -> None:
    sums = summed(unit * ROWS, TARGETS, rank)  # a class of one row, of two, and of none
    assert (sums.count, sums.total, sums.present, sums.width, sums.classes) == (3, 3.0, 2.0, 2, 3)
    assert sums.scored(None) is sums
    torch.testing.assert_close(sums.means / unit, torch.tensor([[3.0, 1, 0], [4, 1, 0]]).double())
    around = sums.squares_around / unit**2
    torch.testing.assert_close(around, torch.tensor([0.0, 2, 0]).double(), rtol=0, atol=1e-9)
    scatter = sums.scatter if rank else sums.scatter.sum(dim=0)
    torch.testing.assert_close(scatter / unit**2, around, rtol=0, atol=1e-9)
    assert sums.row_length * unit == pytest.approx((3 / 31) ** 0.5)
    none = summed(ROWS[:0], TARGETS[:0], rank)
    assert (none.count, none.total, none.present, none.row_length) == (0, 1.0, 0.0, 0.0)
    twenty = replace(sums, counts=torch.tensor([0.0, 20.0, 60.0]))
    assert twenty.shrunk(torch.full((3,), 3.0)).tolist() == [1.0, 2.0, 2.5]


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_each_way_of_being_below_zero_is_noticed_and_a_trifle_is_none(unit: float) -> None:
    rows = unit * torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double()
    before = ThinSums.of(rows, torch.ones(12, 1), rank=2)
    least, first = before.diagonal.min(), torch.eye(3, dtype=torch.float64)[0]
    for name, trifle, wrong in (
        ("counts", torch.tensor([-0.4]), torch.tensor([-1.0])),
        ("lengths", -1e-11 * before.lengths, -1e-7 * before.lengths),
        ("diagonal", -1e-11 * least * first, -1e-6 * least * first),
    ):
        for value, noticed in ((trifle, False), (wrong, True)):
            left = replace(before, **{"moment": 0 * before.moment, name: value})
            assert left.below_zero(before) is noticed, (name, value)
    assert not before.below_zero(before)
    nothing = before - before
    assert not nothing.below_zero(nothing)
    one = ThinSums.of(torch.tensor([[3.0], [0.0]]), torch.ones(2, 1), rank=1)
    left = one - ThinSums.of(torch.tensor([[-1.0]]), torch.ones(1, 1), rank=1)
    assert (left.lengths.item(), left.moment.item(), left.counts.item()) == (8.0, 4.0, 1.0)
    assert left.below_zero(one)


def test_a_class_that_comes_where_none_was_is_not_more_than_there_was() -> None:
    x, y = torch.full((3, 1), 0.1, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    came = ClassSums.of(x, y)
    assert came.scatter.item() < 0  # by rounding
    assert not came.below_zero(ClassSums.zero(1))
