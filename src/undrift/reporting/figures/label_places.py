"""Where to write the names of points so that none covers another name or a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

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

    `mark` is half the width of a point's mark. Names are moved in turn to the cheapest of a
    hundred places around their points, until none wants to move. Cost: 800 n^2 per sweep.

    >>> a, b = label_places([(5, 5), (5.5, 5)], [(3, 1), (3, 1)], Box(0, 0, 20, 10), mark=0.3)
    >>> a.right <= b.left or a.high <= b.low or b.high <= a.low or b.right <= a.left
    True
    """
    marks = np.array([[x - mark, y - mark, x + mark, y + mark] for x, y in points], dtype=float)
    places = [
        _Places(np.array(point, dtype=float), size, mark)
        for point, size in zip(points, sizes, strict=True)
    ]
    fixed = [place.cost_alone(marks, np.array([room], dtype=float)) for place in places]
    chosen = np.array([place.boxes[0] for place in places]).reshape(-1, 4)
    for _ in range(_SWEEPS):
        before = chosen.copy()
        for k, place in enumerate(places):
            others = np.delete(chosen, k, axis=0)
            chosen[k] = place.boxes[np.argmin(fixed[k] + place.cost_among(others))]
        if np.array_equal(chosen, before):
            break
    return [Box(*box) for box in chosen.tolist()]


class _Places:
    """Candidates for a name: boxes that touch circles around its point, near ones first."""

    def __init__(self, point: Array, size: tuple[float, float], mark: float) -> None:
        extent = np.array(size, dtype=float)
        radius = mark * 1.3 + np.repeat(_REACH, _TURNS) * extent[1]
        angle = np.tile(2 * np.pi * np.arange(_TURNS) / _TURNS, len(_REACH))
        turned = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        low = point + turned * (radius[:, None] + extent / 2) - extent / 2
        self.boxes: Array = np.hstack([low, low + extent])
        # right of the point reads best, then left of it
        self.taste: Array = 0.3 * np.abs(turned[:, 1]) + 0.1 * (turned[:, 0] < 0)
        self.point, self.area, self.height = point, float(extent.prod()), float(extent[1])
        self.nearest: Array = np.clip(point, low, low + extent)
        along = np.linspace(0, 1, 9)[1:-1, None, None]
        self.line: Array = point + (self.nearest - point) * along  # [steps, boxes, 2]

    def cost_alone(self, marks: Array, room: Array) -> Array:
        """What each place costs wherever other names are: marks covered, room left, distance."""
        covered = _shared(self.boxes, marks).sum(1) / self.area
        outside = 1 - _shared(self.boxes, room)[:, 0] / self.area
        far = np.linalg.norm(self.nearest - self.point, axis=1) / self.height + self.taste
        own = (np.abs(marks[:, :2] + marks[:, 2:] - 2 * self.point) < 1e-9).all(1)
        cost: Array = _COVERS * covered + _OUTSIDE * outside + far + self._crossed(marks[~own])
        return cost

    def cost_among(self, others: Array) -> Array:
        """What each place costs because of the other names."""
        covered: Array = _shared(self.boxes, others).sum(1) / self.area
        return _COVERS * covered + self._crossed(others)

    def _crossed(self, others: Array) -> Array:
        """How much of the line from the point to each place runs over other boxes."""
        at = self.line[:, :, None, :]
        inside = ((others[:, :2] < at) & (at < others[:, 2:])).all(-1)
        crossed: Array = _CROSSES * inside.sum((0, 2))
        return crossed


def _shared(boxes: Array, others: Array) -> Array:
    """The area that each box shares with each other one."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    areas: Array = np.clip(high - low, 0, None).prod(-1)
    return areas
