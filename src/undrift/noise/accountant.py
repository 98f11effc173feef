"""What was spent: releases over the same nodes add up, those over other nodes do not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from undrift.errors import InputError
from undrift.noise.gaussian import check_guarantee, epsilon_of, noise_multiplier


@dataclass(frozen=True)
class Accountant:
    """The budget (epsilon, delta) of every node, and how much the most exposed one has spent.

    A Gaussian release of noise multiplier m costs a node in it `1 / m^2`. Costs of releases that
    share nodes add (Dong, Roth and Su, "Gaussian differential privacy", 2022). Where no node is in
    two of them, the largest counts. `spent`: the largest cost of any node; `releases`: how many
    there were.

    >>> m, account = noise_multiplier(4.0, 1e-6), Accountant(epsilon=4.0, delta=1e-6)
    >>> round(account.beside(m).beside(m).spent_epsilon, 6)
    4.0
    """

    epsilon: float
    delta: float
    spent: float = 0.0
    releases: int = 0

    def __post_init__(self) -> None:
        check_guarantee(self.epsilon, self.delta)

    @property
    def spent_epsilon(self) -> float:
        """Epsilon of all releases together, at the budget's delta, for any one node."""
        return epsilon_of(1 / math.sqrt(self.spent), self.delta) if self.spent else 0.0

    def beside(self, multiplier: float) -> Accountant:
        """After a release over nodes that were in none before."""
        return self._charged(max(self.spent, _cost(multiplier)))

    def again(self, multiplier: float) -> Accountant:
        """After a release over nodes that may have been in any before."""
        return self._charged(self.spent + _cost(multiplier))

    def merged(self, other: Accountant) -> Accountant:
        """Of two sites of one budget that have no node in common."""
        if (self.epsilon, self.delta) != (other.epsilon, other.delta):
            raise InputError(
                f"budgets differ: epsilon={self.epsilon:g}, delta={self.delta:g} and "
                f"epsilon={other.epsilon:g}, delta={other.delta:g}; both sites must promise the "
                "same"
            )
        spent, releases = max(self.spent, other.spent), self.releases + other.releases
        return replace(self, spent=spent, releases=releases)

    def _charged(self, spent: float) -> Accountant:
        budget = _cost(noise_multiplier(self.epsilon, self.delta))
        if spent > budget * (1 + 1e-9):
            raise InputError(
                f"the budget is spent: with this release nodes would be at epsilon="
                f"{epsilon_of(1 / math.sqrt(spent), self.delta):.3g}, and epsilon="
                f"{self.epsilon:g} at delta={self.delta:g} was promised; observe other nodes"
            )
        return replace(self, spent=spent, releases=self.releases + 1)


def _cost(multiplier: float) -> float:
    return math.inf if multiplier <= 0 else 1 / multiplier**2
