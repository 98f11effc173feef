"""The analytic Gaussian mechanism: how much noise gives (epsilon, delta), exactly."""

from __future__ import annotations

import math
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

    >>> round(delta_of(1.0, 4.2246789) * 1e6, 3)
    1.0
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

    `delta_of` falls as noise grows, so bisection finds it; the end returned is the private one.

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
    """The least epsilon of this noise at this delta; infinite without noise.

    >>> round(epsilon_of(noise_multiplier(2.0, 1e-6), 1e-6), 6)
    2.0
    """
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
    """How often the best attack on one node is right, at most: `Phi(1 / 2m)` at noise m.

    The attack knows all other nodes; guessing is right half of the time.

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
