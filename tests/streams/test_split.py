from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift import Graph, InputError, LearnerFolder, TaskStream
from undrift.streams.split import classes_by_period, split_counts, split_nodes
from undrift.testing.graphs import tiny_graph

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
@given(counts=sizes, seed=seeds, shares=fractions())
def test_masks_are_disjoint_and_cover_each_class_in_its_shares(counts, seed, shares):
    labels = labels_of(counts)
    split = split_nodes(labels, seed=seed, fractions=shares)
    total = sum(mask.long() for mask in split)
    assert torch.equal(total == 1, labels >= 0)
    again = split_nodes(labels, seed=seed, fractions=shares)
    assert all(torch.equal(a, b) for a, b in zip(split, again, strict=True))
    assert int(total.max()) == 1
    for c, count in enumerate(counts):
        found = tuple(int((mask & (labels == 3 * c)).sum()) for mask in split)
        assert found == split_counts(count, shares)


@quick
@given(counts=st.lists(st.integers(5, 40), min_size=2, max_size=5), seed=seeds)
def test_the_split_of_a_class_does_not_depend_on_the_others(counts, seed):
    labels = labels_of(counts)
    alone = labels.masked_fill(labels != 0, -1)
    for full, part in zip(
        split_nodes(labels, seed=seed), split_nodes(alone, seed=seed), strict=True
    ):
        assert torch.equal(full & (labels == 0), part)


def test_the_split_of_a_seed_never_changes_between_versions():
    split = split_nodes(torch.tensor([0] * 10), seed=0)
    assert split.train.nonzero().flatten().tolist() == [2, 3, 4, 5, 6, 7]
    assert split.val.nonzero().flatten().tolist() == [0, 9]


def test_a_class_too_small_is_named_with_its_count_and_the_way_out():
    with pytest.raises(InputError, match=r"class 3 has 4 nodes, .* at least 5 .*-1 or merge"):
        split_nodes(labels_of([8, 4]))


@pytest.mark.parametrize(
    "bad", [(0.6, 0.4), (0.6, 0.4, 0.0), (0.6, 0.3, 0.3), (1.2, -0.1, -0.1), (float("nan"),) * 3]
)
def test_bad_fractions_are_named(bad):
    with pytest.raises(InputError, match="fractions must be three numbers greater than 0"):
        split_nodes(labels_of([8]), fractions=bad)


LABELS = torch.tensor([5, 5, 2, 2, 9, -1])
YEARS = [2004, 2001, 2003, 2010, 2009, float("nan")]


def test_a_class_belongs_to_the_period_of_its_first_node() -> None:
    times, classes, told = classes_by_period(LABELS, YEARS, [2003, 2006])
    assert classes == ((5,), (2,), (9,))  # 2003 itself is in the period that it starts
    assert times.starts == (2001, 2003, 2006)
    assert told == "3 periods, starting at 2001, 2003, 2006"


def test_a_number_of_periods_cuts_equal_lengths() -> None:
    # 2001 to 2010: three years each
    times, classes, told = classes_by_period(LABELS, torch.tensor(YEARS), 3)
    assert times.starts == (2001, 2004, 2007)
    assert classes == ((2, 5), (), (9,))
    assert told.endswith("; no new class in 1 of them, which make no task: 2004")
    assert classes_by_period(LABELS, YEARS, 1)[1] == ((2, 5, 9),)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1), st.integers(1, 8))
def test_every_class_has_one_period_and_no_node_before_it(nodes, periods) -> None:
    labels, time = (np.array(part) for part in zip(*nodes, strict=True))
    times, found, _ = classes_by_period(torch.from_numpy(labels), time, periods)
    assert sorted(c for task in found for c in task) == sorted(set(labels.tolist()))
    ends = [*times.starts[1:], np.inf]
    for start, end, classes in zip(times.starts, ends, found, strict=True):
        for c in classes:
            first = time[labels == c].min()
            assert start <= first
            assert first < end or first == time.max()


@pytest.mark.parametrize(
    ("time", "periods", "what"),
    [
        ([2001, 2002], 2, "time must be 6 numbers, one per node, not .2,."),
        (["a"] * 6, 2, "time must be an array of numbers"),
        ([2001, float("nan"), 1, 1, float("inf"), 1], 2, "time of 2 labelled nodes .* node 1"),
        (YEARS, 0, "periods must be 1 or more, not 0"),
        (YEARS, [2006, 2003], "in increasing order, not .2006, 2003."),
        (YEARS, [], "in increasing order"),
        (YEARS, True, "periods must be a whole number, or"),
        (YEARS, [2003, 2050], "cannot start at 2050, .* from 2001 to 2010"),
    ],
)
def test_bad_input_is_one_sentence(time: Any, periods: Any, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        classes_by_period(LABELS, time, periods)
    assert "\n" not in str(caught.value)


def masked(graph: Graph | None = None, **other: Any) -> Graph:
    """Sixty nodes of six classes: one in three trains, one in three is examined."""
    graph = graph or tiny_graph(nodes=60)
    place = torch.arange(60) // 6 % 3
    masks = {"train": place == 0, "val": place == 1, "test": place == 2}
    return graph.with_masks(**{**masks, **other})


@pytest.mark.parametrize("by_time", [False, True])
def test_the_masks_are_the_split(by_time: bool) -> None:
    graph = masked()
    if by_time:
        stream = TaskStream.by_time(graph, graph.labelled() % 3, 3)
    else:
        stream = TaskStream.from_graph(graph, base=2, increment=2)
    for name in ("train", "val", "test"):
        assert torch.equal(getattr(stream, name), graph.masks[name])
    assert stream.fractions is None
    seen = torch.cat([stream.nodes([t])[task.train] for t, task in enumerate(stream)])
    assert not bool(graph.masks["test"][seen].any())  # no test node is ever trained on


@pytest.mark.parametrize(
    ("graph", "match"),
    [
        (tiny_graph(nodes=60).with_masks(train=[True] * 60), "no test mask"),
        (masked(test=torch.ones(60, dtype=torch.bool)), "overlap"),
        (masked(train=torch.ones(60, 2, dtype=torch.bool)), r"2 columns.*\[:, 0\]"),
        (masked(train=torch.arange(60) == 0), "class 1 has no node in the graph's train mask"),
        (masked(test=torch.arange(60) == 1 + 12), "class 0 has no node in the graph's test mask"),
    ],
)
def test_masks_that_are_no_split_are_refused(graph: Graph, match: str) -> None:
    with pytest.raises(InputError, match=rf"(?s){match}.*masks=False"):
        TaskStream.from_graph(graph, base=2, increment=2)
    drawn = TaskStream.from_graph(graph, base=2, increment=2, masks=False)
    assert drawn.fractions == (0.6, 0.2, 0.2)
    with pytest.raises(InputError, match=r"fractions.*masks=False"):
        TaskStream.from_graph(masked(), base=2, increment=2, fractions=(0.8, 0.1, 0.1))


def test_a_class_of_test_nodes_alone_does_not_break_the_folder(tmp_path) -> None:
    graph = masked()
    train = graph.masks["train"] & (graph.labelled() != 5)
    folder = LearnerFolder.new(tmp_path / "desk", least_rows=2)
    folder.observe(graph.with_masks(train=train, val=graph.masks["val"] & train, test=~train))
    again = LearnerFolder(folder.path)
    assert set(again.predict(graph).classes) <= {"0", "1", "2", "3", "4"}
    assert again.verify() == []
