"""`RidgeBank`: a sum, and the factor that the next solve can start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from undrift.analytic.factor import Factor, factorise, update_is_cheaper
from undrift.analytic.gram import scaled
from undrift.analytic.solve import effective_ridge, solve, solve_with
from undrift.analytic.statistics import RidgeStatistics
from undrift.typing import Once, Rows, unshared

Solver = Literal["direct", "auto"]


@dataclass(frozen=True, eq=False)
class RidgeBank:
    """A memory bank {R, Q} that grows by tasks and solves after each.

    With `solver="direct"` the factor is made from the sum. With `auto` a task of few rows
    updates the factor of the last solve when that is cheaper, for twice the state. A factor made
    from the sum is not part of the state: it is made again, bit for bit. One reached by updates
    is (`updated`), because a fresh one would differ in its last bits.
    """

    statistics: RidgeStatistics
    gamma: float
    relative: bool = False
    solver: Solver = "direct"
    updated: Factor | None = None
    _kept: Factor | None = field(init=False, repr=False)  # where the next update starts

    def __post_init__(self) -> None:
        kept = self.updated
        if kept is None and self.statistics.count and self._may_update(0):
            ridge = effective_ridge(self.statistics, self.gamma, relative=self.relative)
            kept = factorise(self.statistics.gram, ridge)
        object.__setattr__(self, "_kept", kept)

    @classmethod
    def empty(
        cls,
        width: int,
        gamma: float,
        *,
        relative: bool = False,
        solver: Solver = "direct",
        device: str = "cpu",
    ) -> RidgeBank:
        """A bank that has seen no row."""
        return cls(RidgeStatistics.zero(width, device=device), gamma, relative, solver)

    def add(
        self, rows: Rows, targets: Tensor, weights: Tensor | None = None, once: Once = unshared
    ) -> RidgeBank:
        """The bank after these rows; this one stays as it is."""
        before = self.statistics
        # banks of several gammas that are given the same rows have the same sum
        inputs = (before if before.count else before.moment.shape, rows, targets, weights)
        statistics = once(lambda: before.add(rows, targets, weights), "sum", *inputs)
        updated = None
        if self._kept is not None and self._may_update(rows.shape[0]):
            updated = self._kept.updated(scaled(rows, weights))
        return RidgeBank(statistics, self.gamma, self.relative, self.solver, updated)

    def _may_update(self, rows: int) -> bool:
        # gamma relative to a sum that changed is another ridge: then there is nothing to update
        exact = self.solver == "auto" and not self.relative
        return exact and update_is_cheaper(rows, self.statistics.width)

    def solve(self, *, prior: Tensor | None = None) -> Tensor:
        """The ridge solution of everything added so far."""
        if self._kept is None:
            return solve(self.statistics, self.gamma, relative=self.relative, prior=prior)
        return solve_with(self._kept, self.statistics, prior=prior)
