"""`Border`: further columns beside a sum that is already there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import drawn, level, profile
from undrift.analytic.statistics import add_product_, pieces
from undrift.typing import Rows


@dataclass(frozen=True, eq=False)
class Border(Additive):
    """What columns h add to the sums over rows x: `cross = sum x h^T`, and their own sums.

    The sums over `[x, h]` are those over x with this around them, so the first need not be kept
    a second time, and stay untouched. Memory: 8 (d k + k^2 + 2 k C) bytes for k columns of h.
    """

    cross: Tensor
    own: ClassSums

    @classmethod
    def zero(cls, width: int, more: int, classes: int = 0, device: str = "cpu") -> Border:
        """The border of no rows: `more` columns around a sum of `width`."""
        cross = torch.zeros(width, more, dtype=torch.float64, device=device)
        return cls(cross, ClassSums.zero(more, classes, device))

    def add(self, rows: Rows, more: Tensor, targets: Tensor) -> Border:
        """Add the columns `more` of these rows; the rows themselves go to the sum inside."""
        beside, cross = more.double(), self.cross.clone()
        for where, part in pieces(rows):
            add_product_(cross, part.double(), beside[where])
        return Border(cross, self.own.add(more, targets))

    def around(self, inner: ClassSums) -> ClassSums:
        """The sums over both kinds of columns, the inner ones first."""
        upper = torch.cat([inner.gram, self.cross], dim=1)
        lower = torch.cat([self.cross.T, self.own.gram], dim=1)
        return ClassSums(
            torch.cat([upper, lower]),
            torch.cat([inner.moment, self.own.moment]),
            torch.cat([inner.squares, self.own.squares]),
            inner.counts,
            inner.rounding + self.own.rounding,
        )

    def shaken(self, noise: torch.Generator) -> Border:
        """The same border with noise that is larger than its rounding (`level`)."""
        rows, columns = (profile(self.cross.square().sum(dim=axis)) for axis in (1, 0))
        size = level(self.own) * torch.outer(rows.sqrt(), columns.sqrt())
        return Border(self.cross + drawn(size, noise), self.own.shaken(noise))
