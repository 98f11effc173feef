"""One joint release of R, Q and the counts of a batch, with noise for all that one row adds."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import shake_256

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtri
from torch import Tensor

from undrift.errors import InputError
from undrift.noise.gaussian import check_guarantee, noise_multiplier

Array = npt.NDArray[np.float64]
Normal = Callable[[int], Array]
"""`draw(n)`: so many standard normal numbers in float64."""
GRID = 2.0**-30
"""What is released is a multiple of this: sums are rounded to it before noise, noise as well.

On a grid the low bits of a sum, exact up to 2^23, do not give its input away (Mironov, CCS 2012).
The normal numbers themselves are float64: docs/privacy/differential-privacy.md says how exact.
"""


def system_normal(n: int) -> Array:
    """So many standard normal numbers, each from 64 fresh bits of the system, without a seed."""
    return _normal(os.urandom(8 * n))


def keyed_normal(key: bytes) -> Normal:
    """The same numbers for the same secret key, and to whoever lacks it as good as the system's.

    The bits are those of SHAKE-256 of the key and of how many calls there were before.
    """
    calls = 0

    def draw(n: int) -> Array:
        nonlocal calls
        calls += 1
        return _normal(shake_256(key + calls.to_bytes(8, "big")).digest(8 * n))

    return draw


def _normal(random: bytes) -> Array:
    """A standard normal number from 52 of every 64 bits: with 53 one would be infinite."""
    bits = np.frombuffer(random, dtype=np.uint64) >> np.uint64(12)
    return np.asarray(ndtri((bits.astype(np.float64) + 0.5) * 2.0**-52), dtype=np.float64)


def seeded_normal(*seed: int) -> Normal:
    """The same numbers for the same seed, for tests alone: whoever has the seed has the noise."""
    return np.random.default_rng(list(seed)).standard_normal


def on_grid(values: Array) -> Array:
    """The nearest multiples of `GRID`."""
    return np.asarray(np.rint(values / GRID) * GRID, dtype=np.float64)


@dataclass(frozen=True)
class Scales:
    """What R, Q and the counts are multiplied by before one noise is added to all of them.

    One row z of length at most one and of one class adds `z z^T` to R, `z` to a column of Q, one to
    a count: with these factors a vector of length `sqrt(gram^2 + moment^2 + count^2)` at most, the
    joint sensitivity. A larger factor buys a sum less noise, at the others' cost; the defaults
    were chosen on validation nodes (docs/privacy/differential-privacy.md).
    """

    gram: float = 1.0
    moment: float = 1.5
    count: float = 0.6

    @property
    def sensitivity(self) -> float:
        """The most by which one row moves the scaled sums, in Euclidean length."""
        return math.hypot(self.gram, self.moment, self.count)


@dataclass(frozen=True)
class Mechanism:
    """The noise that makes sums over clipped rows (epsilon, delta) private, with or without a row.

    Neighbours are two batches of which one lacks a row of the other. R is released as its upper
    half with the off-diagonal multiplied by sqrt(2): as long as the whole matrix (Frobenius), at
    half the variance there. Every number gets noise of one deviation, `sigma`.

    >>> mechanism = Mechanism(epsilon=4.0, delta=1e-6)
    >>> round(mechanism.sigma(width=2, classes=2), 3)
    2.268
    """

    epsilon: float
    delta: float
    scales: Scales = Scales()

    def __post_init__(self) -> None:
        check_guarantee(self.epsilon, self.delta)

    @property
    def multiplier(self) -> float:
        """Noise in multiples of the sensitivity."""
        return noise_multiplier(self.epsilon, self.delta)

    def sigma(self, width: int, classes: int) -> float:
        """The deviation of the noise on every scaled number.

        Rounding moves each number by half a step of the grid at most, in both neighbours, and the
        rounding of sums before it by less: two steps per number are in the sensitivity.
        """
        numbers = width * (width + 1) // 2 + width * classes + classes
        return self.multiplier * (self.scales.sensitivity + 2 * GRID * math.sqrt(numbers))

    def released(self, sums: ClippedSums, draw: Normal = system_normal) -> ClippedSums:
        """The sums with noise; all that may leave the house of those that the rows were taken from.

        `draw` gives standard normal numbers; only tests pass another than the system's.
        """
        scales, d, c = self.scales, sums.width, sums.classes
        sigma = self.sigma(d, c)
        upper = np.triu_indices(d)
        stretch = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))

        def noisy(values: Array) -> Array:
            return on_grid(values) + on_grid(sigma * draw(values.size)).reshape(values.shape)

        half = noisy(sums.gram.cpu().numpy()[upper] * stretch * scales.gram)
        gram = np.zeros((d, d))
        gram[upper] = half / stretch / scales.gram
        gram.T[upper] = gram[upper]
        moment = noisy(sums.moment.cpu().numpy() * scales.moment) / scales.moment
        counts = noisy(sums.counts.cpu().numpy() * scales.count) / scales.count
        made = (torch.from_numpy(x).to(sums.gram.device) for x in (gram, moment, counts))
        return ClippedSums(*made)


@dataclass(frozen=True, eq=False)
class ClippedSums:
    """R, Q and counts per class, in float64: `sum z z^T`, `sum z` and how many, per class."""

    gram: Tensor
    moment: Tensor
    counts: Tensor

    @classmethod
    def zero(cls, width: int, classes: int, device: str = "cpu") -> ClippedSums:
        """The sums of no rows."""
        shapes: tuple[tuple[int, ...], ...] = ((width, width), (width, classes), (classes,))
        return cls(*(torch.zeros(s, dtype=torch.float64, device=device) for s in shapes))

    @classmethod
    def of(cls, rows: Tensor, targets: Tensor) -> ClippedSums:
        """The sums over these rows, clipped; each has one class, a one in `targets`, or none."""
        y = targets.double()
        if bool(((y != 0) & (y != 1)).any()) or bool((y.sum(dim=1) > 1).any()):
            raise InputError("targets must be zeros with a single one in a row's class at most")
        z = clipped(rows) * y.sum(dim=1, keepdim=True)
        return cls(z.T @ z, z.T @ y, y.sum(dim=0))

    def __add__(self, other: ClippedSums) -> ClippedSums:
        return ClippedSums(
            self.gram + other.gram, self.moment + other.moment, self.counts + other.counts
        )

    @property
    def width(self) -> int:
        """Columns of a row."""
        return int(self.gram.shape[0])

    @property
    def classes(self) -> int:
        """How many classes."""
        return int(self.counts.shape[0])


def clipped(rows: Tensor) -> Tensor:
    """Rows in float64, those longer than one shortened to it; never longer, rounding included."""
    exact = rows.double()
    if not bool(exact.isfinite().all()):
        raise InputError("a row has a number that is not finite; no noise would hide it")
    lengths = exact.norm(dim=1, keepdim=True)
    # a length is rounded itself: what is left over by the last bits is taken off as well
    return exact / torch.where(lengths > 1 - 1e-12, lengths * (1 + 1e-12), 1.0)
