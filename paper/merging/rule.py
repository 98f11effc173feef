"""What the rules share: none needs to know the encoder before the first task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from torch import Tensor

from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder
from undrift.merging.merger import MergeSettings


class Rule:
    """A rule that is empty without any argument, and keeps no sum over rows."""

    @classmethod
    def empty(cls, encoder: Encoder, settings: MergeSettings) -> Self:
        """The memory before the first task."""
        return cls()

    @property
    def grams(self) -> tuple[RidgeStatistics, ...]:
        """No sum over rows."""
        return ()


def plus(sums: tuple[Tensor, ...], new: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Sums layer by layer; an empty tuple is a sum of nothing yet, of whatever shape."""
    return tuple(a + b for a, b in zip(sums, new, strict=True)) if sums else tuple(new)
