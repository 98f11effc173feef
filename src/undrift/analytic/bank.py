"""`RidgeBank`: a sum with the ridge that it is solved by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.sharing import once
from undrift.typing import Rows


@dataclass(frozen=True, eq=False)
class RidgeBank(Additive):
    """A memory bank {R, Q} that grows by tasks and solves after each.

    A factor is not part of the state: it is made again from the sum, bit for bit.
    """

    told: ClassVar[tuple[str, ...]] = ("gamma", "relative")

    statistics: RidgeStatistics
    gamma: float
    relative: bool = False

    @classmethod
    def empty(
        cls, width: int, gamma: float, *, relative: bool = False, device: str = "cpu"
    ) -> RidgeBank:
        """A bank that has seen no row."""
        return cls(RidgeStatistics.zero(width, device=device), gamma, relative)

    def add(self, rows: Rows, targets: Tensor, weights: Tensor | None = None) -> RidgeBank:
        """The bank after these rows; this one stays as it is."""
        before = self.statistics
        # banks of several gammas that are given the same rows have the same sum
        inputs = (before if before.count else before.moment.shape, rows, targets, weights)
        statistics = once(lambda: before.add(rows, targets, weights), "sum", *inputs)
        return RidgeBank(statistics, self.gamma, self.relative)

    def solve(self) -> Tensor:
        """The ridge solution of everything added so far."""
        return solve(self.statistics, self.gamma, relative=self.relative)
