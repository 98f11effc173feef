from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.errors import InputError
from undrift.streams.split import classes_by_period
from undrift.streams.stream import TaskStream
from undrift.testing.check_stream import check_stream
from undrift.testing.graphs import tiny_graph

LABELS = torch.tensor([5, 5, 2, 2, 9, -1])
YEARS = [2004, 2001, 2003, 2010, 2009, float("nan")]


def test_a_class_belongs_to_the_period_of_its_first_node() -> None:
    found = classes_by_period(LABELS, YEARS, [2003, 2006])
    assert found.classes == ((5,), (2,), (9,))  # 2003 itself is in the period that it starts
    assert found.starts == (2001, 2003, 2006)
    assert all(found.classes)
    assert str(found) == "3 periods, starting at 2001, 2003, 2006"


def test_a_number_of_periods_cuts_equal_lengths() -> None:
    found = classes_by_period(LABELS, torch.tensor(YEARS), 3)  # 2001 to 2010: three years each
    assert found.starts == (2001, 2004, 2007)
    assert found.classes == ((2, 5), (), (9,))


def test_a_period_without_a_new_class_makes_no_task_and_is_reported() -> None:
    found = classes_by_period(LABELS, YEARS, 3)
    assert found.classes[1] == ()
    assert found.tasks == ((2, 5), (9,))
    assert str(found).endswith("; no new class in 1 of them, which make no task: 2004")


def test_one_time_for_all_is_one_task() -> None:
    assert classes_by_period(torch.tensor([0, 1]), [7.0, 7.0], 3).tasks == ((0, 1),)
    assert classes_by_period(LABELS, YEARS, 1).tasks == ((2, 5, 9),)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1), st.integers(1, 8))
def test_every_class_has_one_period_and_no_node_before_it(
    nodes: list[tuple[int, int]], periods: int
) -> None:
    labels, time = (np.array(part) for part in zip(*nodes, strict=True))
    found = classes_by_period(torch.from_numpy(labels), time, periods)
    assert sorted(c for task in found.tasks for c in task) == sorted(set(labels.tolist()))
    ends = [*found.starts[1:], np.inf]
    for start, end, classes in zip(found.starts, ends, found.classes, strict=True):
        for c in classes:
            first = time[labels == c].min()
            assert start <= first
            assert first < end or first == time.max()


@pytest.mark.parametrize(
    ("time", "periods", "what"),
    [
        ([2001, 2002], 2, "time must be 6 numbers, one per node, not of shape .2,."),
        (["a"] * 6, 2, "time must be an array of numbers"),
        ([2001, float("nan"), 1, 1, float("inf"), 1], 2, "time of 2 labelled nodes .* node 1"),
        (YEARS, 0, "periods must be 1 or more, not 0"),
        (YEARS, [2006, 2003], "in increasing order, not .2006, 2003."),
        (YEARS, [2006, 2006], "in increasing order"),
        (YEARS, [], "in increasing order"),
        (YEARS, True, "periods must be a whole number, or"),
        (YEARS, [float("nan")], "periods must be a whole number, or"),
        (YEARS, [2003, 2050], "cannot start at 2050, .* from 2001 to 2010"),
        (YEARS, [2001, 2003], "cannot start at 2001"),
    ],
)
def test_bad_input_is_one_sentence(time: Any, periods: Any, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        classes_by_period(LABELS, time, periods)
    assert "\n" not in str(caught.value)


def test_nothing_labelled_is_an_error() -> None:
    with pytest.raises(InputError, match="needs nodes with a class label"):
        classes_by_period(torch.tensor([-1, -1]), [1, 2], 2)


def test_a_stream_by_time_keeps_the_promises_of_streams() -> None:
    graph = tiny_graph()  # node i has class i % 6
    arrival = np.array([3, 0, 1, 3, 0, 2])
    time = 2000 + arrival[np.arange(60) % 6] + 0.25 * (np.arange(60) >= 6)  # the first came first

    def make(seed: int) -> TaskStream:
        return TaskStream.by_time(graph, time, [2001, 2002, 2003], name="years", seed=seed)

    stream = make(4)
    check_stream(stream, make)
    assert stream.classes == ((1, 4), (2,), (5,), (0, 3))
    assert stream.provenance == {"periods": "4 periods, starting at 2000, 2001, 2002, 2003"}
    assert stream.name == "years"
    same = TaskStream.from_graph(graph, base=1, increment=1, seed=4)
    assert torch.equal(stream.train, same.train)  # the split does not depend on the tasks
