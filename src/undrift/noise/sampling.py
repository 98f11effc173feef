"""Standard normal numbers from the system's randomness, on a grid."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import shake_256

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Normal = Callable[[int], npt.NDArray[np.float64]]
"""`draw(n)`: so many standard normal numbers in float64."""

GRID = 2.0**-30
"""What is released is a multiple of this: sums are rounded to it before noise, noise as well.

Noise in floating point gives its input away by the low bits that a sum of two numbers can or cannot
have (Mironov, "On significance of the least significant bits for differential privacy", CCS 2012).
On a grid every sum up to 2^23 is exact and every multiple can come from every input. The normal
numbers themselves are float64, 52 random bits through the inverse distribution function: beyond 8.2
deviations there are none, and their probabilities are right to about 1e-16, not exactly.
"""


def system_normal(n: int) -> npt.NDArray[np.float64]:
    """So many standard normal numbers, each from 64 fresh bits of the system.

    No generator has a state here that could be guessed, and no seed is taken.
    """
    return _normal(os.urandom(8 * n))


def keyed_normal(key: bytes) -> Normal:
    """The same numbers for the same secret key, and to whoever lacks it as good as the system's.

    The bits are those of SHAKE-256 of the key and of how many calls there were before.

    >>> float(keyed_normal(b"a")(1)[0]) == float(keyed_normal(b"a")(1)[0])
    True
    """
    calls = 0

    def draw(n: int) -> npt.NDArray[np.float64]:
        nonlocal calls
        calls += 1
        return _normal(shake_256(key + calls.to_bytes(8, "big")).digest(8 * n))

    return draw


def _normal(random: bytes) -> npt.NDArray[np.float64]:
    """A standard normal number from 52 of every 64 bits: with 53 one would be infinite."""
    bits = np.frombuffer(random, dtype=np.uint64) >> np.uint64(12)
    return np.asarray(ndtri((bits.astype(np.float64) + 0.5) * 2.0**-52), dtype=np.float64)


def seeded_normal(*seed: int) -> Normal:
    """The same numbers for the same seed: for tests alone, as whoever has the seed has the noise.

    >>> float(seeded_normal(0)(1)[0]) == float(seeded_normal(0)(1)[0])
    True
    """
    return np.random.default_rng(list(seed)).standard_normal


def on_grid(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearest multiples of `GRID`."""
    return np.asarray(np.rint(values / GRID) * GRID, dtype=np.float64)
