from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.reporting.figures.label_places import Box, label_places

ROOM = Box(0, 0, 72, 44)


def overlap(a: Box, b: Box) -> bool:
    across = min(a.right, b.right) - max(a.left, b.left)
    return across > 1e-9 and min(a.high, b.high) - max(a.low, b.low) > 1e-9


def test_a_lone_name_stands_right_of_its_point() -> None:
    (box,) = label_places([(10, 10)], [(8, 2)], ROOM, mark=1)
    assert box.left == pytest.approx(11.3)
    assert (box.low + box.high) / 2 == pytest.approx(10)


def test_a_name_stays_in_the_room() -> None:
    for point in ((71, 43), (1, 1), (71, 1), (36, 43.5)):
        (box,) = label_places([point], [(8, 2)], ROOM, mark=1)
        assert box.left >= -1e-9
        assert box.low >= -1e-9
        assert box.right <= ROOM.right + 1e-9
        assert box.high <= ROOM.high + 1e-9


def test_no_points_need_no_places() -> None:
    assert label_places([], [], ROOM, mark=1) == []


@settings(deadline=None, derandomize=True, max_examples=8)
@given(st.integers(0, 10_000))
def test_the_names_of_fourteen_scattered_points_do_not_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = [(float(x), float(y)) for x, y in rng.uniform((2, 20), (70, 42), (14, 2))]
    sizes = [(6.0, 2.2)] * 14
    boxes = label_places(points, sizes, ROOM, mark=1)
    assert not [pair for pair in combinations(boxes, 2) if overlap(*pair)]
    assert boxes == label_places(points, sizes, ROOM, mark=1)


def test_points_on_a_heap_get_names_apart() -> None:
    boxes = label_places([(30.0, 20.0 + 0.1 * k) for k in range(14)], [(6, 2.2)] * 14, ROOM, mark=1)
    assert not [pair for pair in combinations(boxes, 2) if overlap(*pair)]
