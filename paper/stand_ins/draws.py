"""What the stand-ins draw alike: generators, dense features, and a homophily that can be had."""

import numpy as np
import torch
from torch import Tensor

from undrift.datasets.archives import Array
from undrift.datasets.synthetic import draw_pairs

_PARTS = ("labels", "links", "features")
_ROWS = 1 << 14


def generator(seed: int, part: str) -> np.random.Generator:
    """A generator per part of a graph: a part read from the cache changes no other."""
    return np.random.default_rng([seed, _PARTS.index(part)])


def features_of(labels: Array, width: int, separation: float, rng: np.random.Generator) -> Tensor:
    """Float32 `[nodes, width]`: the mean of the node's class, plus standard normal noise.

    Class means are normal with deviation `separation` per feature, so the means of two classes
    lie about `separation * sqrt(2 * width)` apart. Memory: the result and one piece of it.
    """
    means = separation * rng.standard_normal((int(labels.max()) + 1, width), dtype=np.float32)
    features = np.empty((labels.size, width), dtype=np.float32)
    for start in range(0, labels.size, _ROWS):
        rows = features[start : start + _ROWS]
        rng.standard_normal(out=rows, dtype=np.float32)
        rows += means[labels[start : start + _ROWS]]
    return torch.from_numpy(features)


def draw_links(
    rng: np.random.Generator, labels: Array, pairs: int, homophily: float, *sigmas: float
) -> tuple[Array, Array]:
    """`draw_pairs` over these labels; a sigma each for log-normal propensity and attraction."""
    sizes = np.bincount(labels)
    propensity, *attraction = (rng.lognormal(sigma=sigma, size=labels.size) for sigma in sigmas)
    return draw_pairs(
        rng,
        sizes,
        propensity,
        pairs,
        attainable(sizes, pairs, homophily),
        attraction=attraction[0] if attraction else None,
        names=np.argsort(labels, kind="stable").astype(np.int32),  # drawn class by class
        rounds=200,
    )


def attainable(sizes: Array, pairs: int, homophily: float, share: float = 0.25) -> Array:
    """The homophily per class that links at most `share` of the pairs within it.

    A class of s nodes is drawn from `pairs * s / nodes` times and has s (s - 1) / 2 pairs. Where
    the links wanted within it would be more than it can hold, they go to other classes instead.

    >>> attainable(np.array([10, 1000]), 5000, 0.7).round(3).tolist()
    [0.227, 0.7]
    """
    within = share * (sizes - 1) / 2
    return np.asarray(np.minimum(homophily, within * sizes.sum() / pairs))
