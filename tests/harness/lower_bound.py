"""What an attack proves: a lower bound on epsilon from how often it is right."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

Array = npt.NDArray[Any]


def epsilon_lower_bound(
    scores_with: npt.ArrayLike,
    scores_without: npt.ArrayLike,
    delta: float,
    confidence: float = 0.99,
) -> float:
    """An epsilon that any mechanism with these scores of an attack must exceed.

    The scores are those of releases with and without a row. An (epsilon, delta) private mechanism
    has `P(score > t with) <= e^epsilon P(score > t without) + delta` for every t, and the same for
    the complements, so an attack's rates bound epsilon from below (Jagielski, Ullman and Oprea,
    "Auditing differentially private machine learning", NeurIPS 2020). The threshold is chosen on
    the first half of either scores, the rates are those of the other half, each within its
    Clopper-Pearson interval at half of `1 - confidence`.

    >>> epsilon_lower_bound([0.0, 1.0] * 50, [0.0, 1.0] * 50, delta=1e-6)
    0.0
    """
    ours, theirs = np.asarray(scores_with), np.asarray(scores_without)
    half = min(ours.size, theirs.size) // 2
    candidates = np.quantile(np.concatenate([ours[:half], theirs[:half]]), np.linspace(0, 1, 201))
    tail = (1 - confidence) / 4  # two rates, and two directions of the test
    tried = _bounds(candidates, ours[:half], theirs[:half], delta, tail)
    best = candidates[tried.argmax()]
    return float(_bounds(best[None], ours[half:], theirs[half:], delta, tail)[0])


def _bounds(thresholds: Array, ours: Array, theirs: Array, delta: float, tail: float) -> Array:
    """The bound at each threshold, by the better of both directions."""
    above = [(scores > thresholds[:, None]).sum(axis=1) for scores in (ours, theirs)]
    sizes = ours.size, theirs.size
    below = [size - hits for size, hits in zip(sizes, above, strict=True)]
    up = _least(above[0], sizes[0], tail) - delta, _most(above[1], sizes[1], tail)
    down = _least(below[1], sizes[1], tail) - delta, _most(below[0], sizes[0], tail)
    ratios = [np.maximum(hit, 1e-300) / alarm for hit, alarm in (up, down)]
    return np.asarray(np.maximum(np.log(np.maximum(*ratios)), 0.0))


def _least(hits: Array, size: int, tail: float) -> Array:
    """The lower ends of Clopper and Pearson's intervals of rates."""
    found = betaincinv(np.maximum(hits, 1), size - hits + 1, tail)
    return np.asarray(np.where(hits > 0, found, 0.0))


def _most(hits: Array, size: int, tail: float) -> Array:
    """Their upper ends."""
    found = betaincinv(hits + 1, np.maximum(size - hits, 1), 1 - tail)
    return np.asarray(np.where(hits < size, found, 1.0))
