"""A generated graph with the troubles of real ones: unequal classes, hubs, shared words."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from undrift.errors import InputError
from undrift.graphs import Graph

__all__ = ["generate"]

Array = np.ndarray[Any, np.dtype[Any]]


def generate(
    *,
    nodes: int = 3000,
    words: int = 1000,
    classes: int = 10,
    size_ratio: float = 6.0,
    average_degree: float = 8.0,
    homophily: float = 0.65,
    hubs: float = 0.8,
    words_per_node: float = 30.0,
    topic_share: float = 0.6,
    kinship: float = 0.6,
    seed: int = 0,
) -> Graph:
    """An undirected graph of `nodes` documents over `words`, in `classes` planted classes.

    Classes: sizes fall geometrically, the largest `size_ratio` times the smallest, in an order
    drawn from the seed.

    Words: a node holds about `words_per_node` draws, each with probability `topic_share` from
    its class and otherwise from the background. The background is Zipf's law; a class tilts it
    by exp(g), g normal per word, where a share `kinship` of g's variance is common to class c
    and class c + classes / 2. Related classes so lie far apart in label order, and a later task
    resembles an earlier one. Features are binary and sparse.

    Edges: a degree-corrected block model. Both ends are drawn in proportion to a log-normal
    propensity (sigma `hubs`; 0 gives no hubs), within the class with probability `homophily`
    and otherwise in any other class. There are `nodes * average_degree / 2` undirected edges,
    fewer only where a small class has no more pairs to give.

    The same arguments give the same graph. Cost: a few sorted arrays of the edges and the
    words drawn; no loop over nodes.

    >>> generate(nodes=200, words=50, classes=4, average_degree=4)
    Graph(200 nodes, 800 edges, 50 features sparse, 4 classes)
    """
    _check_sizes(nodes=nodes, words=words, classes=classes, seed=seed)
    _check_ranges(
        homophily=(homophily, 0.0, 1.0),
        topic_share=(topic_share, 0.0, 1.0),
        kinship=(kinship, 0.0, 1.0),
        hubs=(hubs, 0.0, 3.0),
        size_ratio=(size_ratio, 1.0, 1e6),
        average_degree=(average_degree, 0.0, nodes / 2),
        words_per_node=(words_per_node, 1.0, 1e6),
    )
    rng = np.random.default_rng(seed)
    sizes = _class_sizes(rng, nodes, classes, size_ratio)
    by_class = np.repeat(np.arange(classes), sizes)  # drawn sorted by class, shuffled at the end
    topics = _topics(rng, classes, words, kinship)
    features = _draw_words(rng, by_class, topics, words_per_node, topic_share)
    propensity = rng.lognormal(sigma=hubs, size=nodes) if hubs else np.ones(nodes)
    pairs = _draw_edges(rng, sizes, propensity, round(nodes * average_degree / 2), homophily)
    place = rng.permutation(nodes)
    order = np.argsort(place)
    return Graph.from_arrays(features[order], place[pairs], by_class[order], undirected=True)


def _class_sizes(rng: np.random.Generator, nodes: int, classes: int, ratio: float) -> Array:
    shares = ratio ** -np.linspace(0.0, 1.0, classes)
    sizes = np.floor(nodes * shares / shares.sum()).astype(np.int64)
    sizes[0] += nodes - sizes.sum()
    if sizes.min() < 5:
        raise InputError(
            f"{nodes} nodes in {classes} classes with size_ratio {ratio} leave a class of "
            f"{sizes.min()}, and a class needs 5; give more nodes, fewer classes or a smaller ratio"
        )
    return rng.permutation(sizes)


def _topics(rng: np.random.Generator, classes: int, words: int, kinship: float) -> Array:
    """Word probabilities `[classes + 1, words]`: a row per class, the last the background."""
    zipf = 1.0 / (rng.permutation(words) + 3.0)
    families = max(1, classes // 2)
    shared = rng.normal(size=(families, words))[np.arange(classes) % families]
    own = rng.normal(size=(classes, words))
    tilt = np.sqrt(kinship) * shared + np.sqrt(1.0 - kinship) * own
    rows = zipf * np.vstack([np.exp(tilt), np.ones(words)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _draw_words(
    rng: np.random.Generator, labels: Array, topics: Array, per_node: float, topic_share: float
) -> sp.csr_matrix:
    """A binary matrix `[nodes, words]`: the words that each node drew at least once."""
    nodes, (rows, words) = labels.size, topics.shape
    lengths = 1 + rng.poisson(per_node - 1, size=nodes)
    node = np.repeat(np.arange(nodes), lengths)
    topic = np.where(rng.random(node.size) < topic_share, labels[node], rows - 1)
    # row r's distribution lies on [r, r + 1): one search draws from all of them
    ends = (np.cumsum(topics, axis=1) + np.arange(rows)[:, None]).ravel()
    cell = np.searchsorted(ends, topic + rng.random(node.size), side="right")
    word = np.clip(cell - topic * words, 0, words - 1)  # against rounding at a row's end
    drawn = sp.csr_matrix((np.ones(node.size, np.float32), (node, word)), shape=(nodes, words))
    drawn.data[:] = 1.0
    return drawn


def _draw_edges(
    rng: np.random.Generator, sizes: Array, propensity: Array, wanted: int, homophily: float
) -> Array:
    """`[2, wanted]` different pairs of nodes, which are numbered class by class."""
    ends = np.cumsum(propensity)
    block_end = ends[np.cumsum(sizes) - 1]
    block_start = np.concatenate([[0.0], block_end[:-1]])
    found = np.empty(0, dtype=np.int64)
    n = propensity.size
    for _ in range(20):  # repeats are drawn again; almost always the second round is the last
        missing = wanted - found.size
        if missing <= 0:
            break
        source = _locate(ends, rng.random(missing) * ends[-1])
        c = np.searchsorted(np.cumsum(sizes), source, side="right")
        width = block_end[c] - block_start[c]
        inside = block_start[c] + rng.random(missing) * width
        outside = rng.random(missing) * (ends[-1] - width)
        outside += np.where(outside >= block_start[c], width, 0.0)  # step over the own class
        same = rng.random(missing) < homophily
        target = _locate(ends, np.where(same, inside, outside))
        low, high = np.minimum(source, target), np.maximum(source, target)
        found = np.union1d(found, (low * n + high)[low != high])
    return np.stack([found // n, found % n])


def _locate(ends: Array, points: Array) -> Array:
    return np.minimum(np.searchsorted(ends, points, side="right"), ends.size - 1)


def _check_sizes(*, nodes: int, words: int, classes: int, seed: int) -> None:
    for name, value, least in (
        ("nodes", nodes, 10),
        ("words", words, 2),
        ("classes", classes, 2),
        ("seed", seed, 0),
    ):
        if value < least:
            raise InputError(f"{name} of a generated graph must be {least} or more, not {value}")


def _check_ranges(**ranges: tuple[float, float, float]) -> None:
    for name, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise InputError(
                f"{name} of a generated graph must be from {low:g} to {high:g}, not {value:g}"
            )
