"""How far rounding may have moved sums, and what that does to what is solved from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from undrift.analytic.additive import Rounded
    from undrift.analytic.thin_sums import AnySums

UNIT = 2.0**-53
"""The largest relative error of one operation in float64."""

_LARGEST = 4.0  # of many rows, over their root mean square
_SAFETY = 4.0  # times the rounding that is likely
_ALIKE = 512  # rows that are alike, whose errors weigh as one error of the whole sum


def of_rows(rows: int, trace: float) -> float:
    """The rounding of a sum over rows: the errors of n additions to a sum that grows.

    They grow like the root of n, but for rows that are alike to the last bit: theirs have one sign.
    """
    return (math.sqrt(rows / 3) + rows / _ALIKE) * trace


def combined(one: Rounded, other: Rounded, sign: int) -> float:
    """The rounding of a sum or a difference: squares of independent errors add up."""
    if sign < 0 and one is other:
        return 0.0  # exactly nothing is left
    return math.hypot(one.rounding, other.rounding, one.trace + sign * other.trace)


def likely(sums: Rounded) -> float:
    """What rounding left of the sums; a state that did not keep it is taken as summed in one go."""
    return UNIT * max(float(sums.rounding), of_rows(sums.count, sums.trace))


def level(sums: Rounded) -> float:
    """Noise that is larger than rounding."""
    return _SAFETY * likely(sums)


def profile(diagonal: Tensor) -> Tensor:
    """How noise is spread over columns: as squares are, and evenly; none where nothing ever was."""
    squares = diagonal.clamp(min=0)
    total = float(squares.sum())
    even = (diagonal != 0) / max(squares.numel(), 1)
    return squares / total + even if total > 0 else even


def drawn(sizes: Tensor, noise: torch.Generator) -> Tensor:
    """Normal noise of these standard deviations; drawn on the CPU, the same on every device."""
    normal = torch.randn(sizes.shape, dtype=torch.float64, generator=noise)
    return sizes * normal.to(sizes.device)


class Linear(NamedTuple):
    """Scores `z W + b` of rows z, and the sums over rows that W was solved from."""

    sums: AnySums
    weights: Tensor
    offset: Tensor | None = None

    def moved(self, other: Linear) -> float:
        """How far scores of another solution may differ, over the largest of a class's mean.

        Of a row as those in the sums: the root mean square over them, and of a row that differs
        from its class's mean as much, but in a random direction; times four, for the largest of
        many rows. Infinite where the other has other columns: rounding decides which.
        """
        if self.weights.shape != other.weights.shape:
            return math.inf
        sums, own = self.sums, self._offset()
        rows, width = max(sums.count, 1), max(self.weights.shape[0], 1)
        means = sums.moment / sums.counts.clamp(min=1)
        largest = float((means.T @ self.weights + own).abs().max()) if own.numel() else 0.0
        if not largest > 0:
            return 0.0
        change = other.weights - self.weights
        within = max(sums.trace - float((means * sums.moment).sum()), 0.0)
        known = (sums.squares_along(change).clamp(min=0) / rows).sqrt()
        unknown = math.sqrt(within / (rows * width)) * change.norm(dim=0)
        rounded = math.sqrt(sums.trace / rows) * UNIT * self.weights.norm(dim=0)  # of z W
        far = known + unknown + rounded + (other._offset() - own).abs()
        return _LARGEST * float(far.max()) / largest

    def _offset(self) -> Tensor:
        zero = self.weights.new_zeros(self.weights.shape[1])
        return zero if self.offset is None else self.offset
