"""The analytic Gaussian mechanism: how much noise is (epsilon, delta) private, what is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy.special import log_ndtr, ndtr

from undrift.errors import InputError

MOST_DELTA = 0.01
"""Delta from which a guarantee is refused: every node may be told outright with this chance."""
_MOST = 1e6  # multiples of the sensitivity between which the noise is sought
_LEAST = 1e-4


def delta_of(epsilon: float, multiplier: float) -> float:
    """The least delta of Gaussian noise whose deviation is `multiplier` times the sensitivity.

        delta = Phi(1 / 2m - epsilon m) - e^epsilon Phi(-1 / 2m - epsilon m)

    exact, not a bound, for every epsilon >= 0 (Balle and Wang, "Improving the Gaussian mechanism
    for differential privacy", ICML 2018, theorem 8). Without noise it is 1.
    """
    if multiplier <= 0:
        return 1.0
    half, lost = 0.5 / multiplier, epsilon * multiplier
    # e^epsilon overflows where Phi vanishes: their product does neither as a logarithm
    second = math.exp(min(epsilon + float(log_ndtr(-half - lost)), 0.0))
    return min(max(float(ndtr(half - lost)) - second, 0.0), 1.0)


@lru_cache(maxsize=256)
def noise_multiplier(epsilon: float, delta: float) -> float:
    """The least noise, in multiples of the sensitivity, that is (epsilon, delta) private.

    >>> [round(noise_multiplier(e, 1e-6), 3) for e in (1.0, 4.0, 8.0)]
    [4.225, 1.194, 0.653]
    """
    check_guarantee(epsilon, delta)
    low, high = _LEAST, _MOST
    if delta_of(epsilon, high) > delta:
        raise InputError(
            f"epsilon={epsilon:g} and delta={delta:g} need more than {_MOST:g} times the "
            "sensitivity as noise; nothing would be left of any sum"
        )
    while high / low - 1 > 1e-12:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if delta_of(epsilon, middle) <= delta else (middle, high)
    return high


def epsilon_of(multiplier: float, delta: float) -> float:
    """The least epsilon of this noise at this delta; infinite without noise."""
    if multiplier <= 0:
        return math.inf
    if delta_of(0.0, multiplier) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of(high, multiplier) > delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(middle, multiplier) <= delta else (middle, high)
    return high


def best_attack(epsilon: float, delta: float) -> float:
    """How often an attack that knows all other nodes is right at most: `Phi(1 / 2m)` at noise m.

    >>> [round(best_attack(e, 1e-6), 3) for e in (0.5, 2.0, 8.0)]
    [0.525, 0.589, 0.778]
    """
    return float(ndtr(0.5 / noise_multiplier(epsilon, delta)))


def check_guarantee(epsilon: float, delta: float) -> None:
    """Reject numbers that are no guarantee."""
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon must be a finite number greater than 0, not {epsilon}")
    if not 0 < delta < MOST_DELTA:
        raise InputError(
            f"delta must be greater than 0 and less than {MOST_DELTA:g}, not {delta}; take less "
            "than one in the number of nodes, such as 1e-6"
        )


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
