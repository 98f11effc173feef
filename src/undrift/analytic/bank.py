"""`RidgeBank`: a sum, and the factor that the next solve can start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from undrift.analytic.factor import Factor, factorise, update_is_cheaper
from undrift.analytic.gram import Rows, scaled
from undrift.analytic.solve import effective_ridge, solve_with
from undrift.analytic.statistics import RidgeStatistics
from undrift.sharing import once

__all__ = ["RidgeBank", "Solver"]

Solver = Literal["direct", "auto"]


@dataclass(frozen=True, eq=False)
class RidgeBank:
    """A memory bank {R, Q} that grows by tasks and solves after each.

    With `solver="direct"` the factor is made from the sum. With `auto` a task of few rows
    updates the factor of the last solve when the counted cost says so: a little faster for
    many small tasks, for twice the state. Both agree to rounding. A factor made from
    the sum is not part of the state: it can be made again, bit for bit. One reached by updates
    is (`updated`), because a fresh one would differ in its last bits.
    """

    statistics: RidgeStatistics
    gamma: float
    relative: bool = False
    solver: Solver = "direct"
    updated: Factor | None = None
    _made: list[Factor] = field(default_factory=list, init=False, repr=False)

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
        nothing = once(lambda: RidgeStatistics.zero(width, device=device), "zero", width, device)
        return cls(nothing, gamma, relative, solver)

    def add(self, rows: Rows, targets: Tensor, weights: Tensor | None = None) -> RidgeBank:
        """The bank after these rows; this one stays as it is."""
        # banks of several gammas that are given the same rows have the same sum
        statistics = once(
            lambda: self.statistics.add(rows, targets, weights),
            "sum",
            self.statistics,
            rows,
            targets,
            weights,
        )
        factor = None
        if self.statistics.count and self._may_update(rows.shape[0]):
            factor = self.factor().updated(scaled(rows, weights))
        else:
            self._made.clear()  # not needed again: spares d^2 numbers while the next is made
        return RidgeBank(statistics, self.gamma, self.relative, self.solver, factor)

    def _may_update(self, rows: int) -> bool:
        # gamma relative to a sum that changed is another ridge: then there is nothing to update
        exact = self.solver == "auto" and not self.relative
        return exact and update_is_cheaper(rows, self.statistics.width)

    def factor(self) -> Factor:
        """The factor of this bank's system; kept only if an update could start from it."""
        if self.updated is not None:
            return self.updated
        if self._made:
            return self._made[0]
        ridge = effective_ridge(self.statistics, self.gamma, relative=self.relative)
        made = factorise(self.statistics.gram, ridge)
        if self._may_update(0):
            self._made.append(made)
        return made

    def solve(self, *, prior: Tensor | None = None) -> Tensor:
        """The ridge solution of everything added so far."""
        return solve_with(self.factor(), self.statistics, prior=prior)
