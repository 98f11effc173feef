"""One tree of sums: every field adds, subtracts and follows the classes as it says."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from undrift.analytic.additive import Additive
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
    assert (found.classes, tuple(found.inner.means.shape)) == (0, (1, 0))
    assert (found + tree(1.0)).inner.means.tolist() == [[1.0]]
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
