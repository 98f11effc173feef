"""Where to write the names of points so that none covers another name or a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Box", "label_places"]

Array = np.ndarray[Any, np.dtype[Any]]

_TURNS = 16
_REACH = (0.0, 0.9, 2.0, 3.4, 5.2, 7.5, 10.5)  # of a name from its point, in heights of a line
_SWEEPS = 6
_COVERS, _OUTSIDE, _CROSSES = 60.0, 100.0, 0.6  # beside a cost of 1 for a line's height away


class Box(NamedTuple):
    """A rectangle by its corners."""

    left: float
    low: float
    right: float
    high: float


def label_places(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    room: Box,
    *,
    mark: float,
) -> list[Box]:
    """A box of the given size for the name of every point, near it and inside the room.

    `mark` is half the width of a point's mark; all are in the same unit. Names start right of
    their points and are then moved in turn to the cheapest of a hundred places around them,
    where covering costs most and distance little, until none wants to move. The same points
    give the same places. Cost: 800 n comparisons for each of n names, in every sweep.

    >>> a, b = label_places([(5, 5), (5.5, 5)], [(3, 1), (3, 1)], Box(0, 0, 20, 10), mark=0.3)
    >>> a.right <= b.left or a.high <= b.low or b.high <= a.low or b.right <= a.left
    True
    """
    centres = np.array(points, dtype=float).reshape(-1, 2)
    marks = np.hstack([centres - mark, centres + mark])
    extents = np.array(sizes, dtype=float).reshape(-1, 2)
    boxes, fixed = [], []
    for point, extent in zip(centres, extents, strict=True):
        places, taste = _places(point, extent, mark)
        outside = 1 - _shared(places, np.array([room], dtype=float))[:, 0] / extent.prod()
        far = np.linalg.norm(_nearest(places, point) - point, axis=1) / extent[1]
        others = marks[(np.abs(centres - point) > 1e-9).any(1)]
        own = _COVERS * _shared(places, marks).sum(1) / extent.prod() + _crossed(
            places, point, others
        )
        boxes.append(places)
        fixed.append(own + _OUTSIDE * outside + far + taste)
    chosen = np.array([places[0] for places in boxes]).reshape(-1, 4)
    for _ in range(_SWEEPS):
        before = chosen.copy()
        for k, (places, point) in enumerate(zip(boxes, centres, strict=True)):
            others = np.delete(chosen, k, axis=0)
            covered = _COVERS * _shared(places, others).sum(1) / extents[k].prod()
            chosen[k] = places[np.argmin(fixed[k] + covered + _crossed(places, point, others))]
        if np.array_equal(chosen, before):
            break
    return [Box(*box) for box in chosen.tolist()]


def _places(point: Array, extent: Array, mark: float) -> tuple[Array, Array]:
    """Boxes that touch circles around a point, near ones first, and how ill each reads."""
    radius = mark * 1.3 + np.repeat(_REACH, _TURNS) * extent[1]
    angle = np.tile(2 * np.pi * np.arange(_TURNS) / _TURNS, len(_REACH))
    turned = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    low = point + turned * (radius[:, None] + extent / 2) - extent / 2
    # right of the point reads best, then left of it
    return np.hstack([low, low + extent]), 0.3 * np.abs(turned[:, 1]) + 0.1 * (turned[:, 0] < 0)


def _nearest(boxes: Array, point: Array) -> Array:
    return np.clip(point, boxes[:, :2], boxes[:, 2:])


def _crossed(boxes: Array, point: Array, others: Array) -> Array:
    """How much of the line from the point to each box runs over others."""
    along = np.linspace(0, 1, 9)[1:-1, None, None]
    at = (point + (_nearest(boxes, point) - point) * along)[:, :, None, :]
    inside = ((others[:, :2] < at) & (at < others[:, 2:])).all(-1)
    return np.asarray(_CROSSES * inside.sum((0, 2)))


def _shared(boxes: Array, others: Array) -> Array:
    """The area that each box shares with each other one."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(-1))
