from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.errors import InputError
from undrift.streams.split import split_counts, split_nodes

sizes = st.lists(st.integers(5, 40), min_size=1, max_size=5)
seeds = st.integers(0, 2**40)
quick = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def fractions(draw):
    parts = [draw(st.integers(1, 98)) for _ in range(3)]
    return tuple(part / sum(parts) for part in parts)


def labels_of(counts, unknown=3):
    """Class ids 0, 3, 6, ... with these counts and some unknown labels, mixed."""
    ids = [np.full(count, 3 * c) for c, count in enumerate(counts)]
    together = np.concatenate([*ids, np.full(unknown, -1)])
    return torch.from_numpy(np.random.default_rng(7).permutation(together))


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [(5, (3, 1, 1)), (6, (4, 1, 1)), (7, (4, 2, 1)), (8, (5, 2, 1)), (10, (6, 2, 2))],
)
def test_counts_of_6_2_2(nodes, wanted):
    assert split_counts(nodes, (0.6, 0.2, 0.2)) == wanted


@quick
@given(nodes=st.integers(5, 5000), shares=fractions())
def test_counts_are_the_shares_up_to_rounding(nodes, shares):
    counts = split_counts(nodes, shares)
    assert sum(counts) == nodes
    assert min(counts) >= 1
    lifted = sum(nodes * share < 1 for share in shares)  # each takes one node from the largest
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - nodes * share) < 1 + lifted + 1e-6


@quick
@given(nodes=st.integers(5, 5000))
def test_counts_of_6_2_2_are_within_one_node(nodes):
    for count, share in zip(split_counts(nodes, (0.6, 0.2, 0.2)), (0.6, 0.2, 0.2), strict=True):
        assert abs(count - nodes * share) < 1


@quick
@given(counts=sizes, seed=seeds, shares=fractions())
def test_masks_are_disjoint_and_cover_each_class_in_its_shares(counts, seed, shares):
    labels = labels_of(counts)
    split = split_nodes(labels, seed=seed, fractions=shares)
    total = sum(mask.long() for mask in split)
    assert torch.equal(total == 1, labels >= 0)
    assert int(total.max()) == 1
    for c, count in enumerate(counts):
        found = tuple(int((mask & (labels == 3 * c)).sum()) for mask in split)
        assert found == split_counts(count, shares)


@quick
@given(counts=sizes, seed=seeds)
def test_the_same_seed_gives_the_same_split(counts, seed):
    labels = labels_of(counts)
    for first, second in zip(
        split_nodes(labels, seed=seed), split_nodes(labels, seed=seed), strict=True
    ):
        assert torch.equal(first, second)


@quick
@given(counts=st.lists(st.integers(5, 40), min_size=2, max_size=5), seed=seeds)
def test_the_split_of_a_class_does_not_depend_on_the_others(counts, seed):
    labels = labels_of(counts)
    alone = labels.masked_fill(labels != 0, -1)
    for full, part in zip(
        split_nodes(labels, seed=seed), split_nodes(alone, seed=seed), strict=True
    ):
        assert torch.equal(full & (labels == 0), part)


def test_seeds_and_classes_shuffle_differently():
    labels = torch.tensor([0] * 100 + [1] * 100)
    first, second = split_nodes(labels, seed=0).train, split_nodes(labels, seed=1).train
    assert not torch.equal(first, second)
    assert not torch.equal(first[:100], first[100:])


def test_the_split_of_a_seed_never_changes_between_versions():
    split = split_nodes(torch.tensor([0] * 10), seed=0)
    assert split.train.nonzero().flatten().tolist() == [2, 3, 4, 5, 6, 7]
    assert split.val.nonzero().flatten().tolist() == [0, 9]


def test_global_generators_are_left_alone():
    np_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    split_nodes(labels_of([10, 10]))
    assert np.array_equal(np.random.get_state()[1], np_before)
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_a_class_too_small_is_named_with_its_count_and_the_way_out():
    with pytest.raises(InputError, match=r"class 3 has 4 nodes, .* at least 5 .*drop .* or merge"):
        split_nodes(labels_of([8, 4]))


@pytest.mark.parametrize(
    "bad", [(0.6, 0.4), (0.6, 0.4, 0.0), (0.6, 0.3, 0.3), (1.2, -0.1, -0.1), (float("nan"),) * 3]
)
def test_bad_fractions_are_named(bad):
    with pytest.raises(InputError, match="fractions must be three numbers greater than 0"):
        split_nodes(labels_of([8]), fractions=bad)


def test_a_negative_seed_is_named():
    with pytest.raises(InputError, match="seed of a split must be 0 or more, not -1"):
        split_nodes(labels_of([8]), seed=-1)
