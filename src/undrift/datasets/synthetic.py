"""A generated graph with the troubles of real ones: unequal classes, hubs, shared words."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from undrift.datasets.archives import Array
from undrift.errors import InputError
from undrift.graphs import Graph

_CHUNK = 2**22


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

    Classes: sizes fall geometrically, the largest `size_ratio` times the smallest, in a random
    order. Words: about `words_per_node` draws per node, each with probability `topic_share` from
    its class and otherwise from the background, which is Zipf's law; a class tilts it by exp(g),
    g normal per word, where a share `kinship` of g's variance is common to class c and class
    c + classes / 2, so that a later task resembles an earlier one. Edges: a degree-corrected
    block model of log-normal propensities (sigma `hubs`), within the class with probability
    `homophily`; `nodes * average_degree / 2` of them, fewer where a small class runs out of pairs.

    >>> generate(nodes=200, words=50, classes=4, average_degree=4)
    Graph(200 nodes, 800 edges, 50 features sparse, 4 classes)
    """
    counts = {"nodes": (nodes, 10), "words": (words, 2), "classes": (classes, 2), "seed": (seed, 0)}
    shares = {"homophily": homophily, "topic_share": topic_share, "kinship": kinship}
    for name, value, low, high in (
        *((name, value, low, np.inf) for name, (value, low) in counts.items()),
        *((name, value, 0, 1) for name, value in shares.items()),
        ("hubs", hubs, 0, 3),
        ("size_ratio", size_ratio, 1, 1e6),
        ("average_degree", average_degree, 0, nodes / 2),
        ("words_per_node", words_per_node, 1, 1e6),
    ):
        if not low <= value <= high:
            allowed = f"{low:g} or more" if high == np.inf else f"from {low:g} to {high:g}"
            raise InputError(f"{name} of a generated graph must be {allowed}, not {value:g}")
    rng = np.random.default_rng(seed)
    falling = size_ratio ** -np.linspace(0.0, 1.0, classes)
    sizes = np.floor(nodes * falling / falling.sum()).astype(np.int64)
    sizes[0] += nodes - sizes.sum()
    if sizes.min() < 5:
        told = f"{nodes} nodes in {classes} classes with size_ratio {size_ratio}"
        way = "give more nodes, fewer classes or a smaller ratio"
        raise InputError(f"{told} leave a class of {sizes.min()}, and a class needs 5; {way}")
    sizes = rng.permutation(sizes)
    by_class = np.repeat(np.arange(classes), sizes)  # drawn sorted by class, shuffled at the end
    topics = word_chances(rng, classes, words, kinship)
    features = draw_words(rng, by_class, topics, words_per_node, topic_share)
    propensity = rng.lognormal(sigma=hubs, size=nodes) if hubs else np.ones(nodes)
    wanted = round(nodes * average_degree / 2)
    keys, _ = draw_pairs(rng, sizes, propensity, wanted, homophily)
    pairs = np.stack([keys // nodes, keys % nodes])
    place = rng.permutation(nodes)
    order = np.argsort(place)
    return Graph.from_arrays(features[order], place[pairs], by_class[order], undirected=True)


def word_chances(rng: np.random.Generator, classes: int, words: int, kinship: float) -> Array:
    """Word probabilities `[classes + 1, words]`: a row per class, the last the background."""
    zipf = 1.0 / (rng.permutation(words) + 3.0)
    families = max(1, classes // 2)
    shared = rng.normal(size=(families, words))[np.arange(classes) % families]
    own = rng.normal(size=(classes, words))
    tilt = np.sqrt(kinship) * shared + np.sqrt(1.0 - kinship) * own
    rows = zipf * np.vstack([np.exp(tilt), np.ones(words)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def draw_words(
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


def draw_pairs(
    rng: np.random.Generator,
    sizes: Array,
    propensity: Array,
    wanted: int,
    homophily: float | Array,
    *,
    attraction: Array | None = None,
    names: Array | None = None,
    rounds: int = 20,
) -> tuple[Array, Array]:
    """`wanted` different unordered pairs of nodes of a degree-corrected block model.

    Nodes are numbered class by class, `sizes` of them each; `names` are their ids in the result.
    A pair's source is drawn in proportion to `propensity`, its target in proportion to
    `attraction` (the propensity without one), within the source's class with probability
    `homophily` (one number, or one per class). Returns sorted int64 keys `low * nodes + high`, and
    which were drawn from high to low; fewer than `wanted` where pairs run out after `rounds`.
    """
    source_ends = np.cumsum(propensity)
    target_ends = source_ends if attraction is None else np.cumsum(attraction)
    class_of = np.repeat(np.arange(len(sizes)), sizes)
    class_end = target_ends[np.cumsum(sizes) - 1]
    class_start = np.concatenate([[0.0], class_end[:-1]])
    chance = np.broadcast_to(homophily, len(sizes))

    def draw(count: int) -> tuple[Array, Array]:
        """So many sources and targets; a node may be drawn with itself."""
        source = _locate(source_ends, rng.random(count) * source_ends[-1])
        c = class_of[source]
        start = class_start[c]
        width = class_end[c] - start
        inside = start + rng.random(count) * width
        outside = rng.random(count) * (target_ends[-1] - width)
        outside += np.where(outside >= start, width, 0.0)  # step over the own class
        same = rng.random(count) < chance[c]
        return source, _locate(target_ends, np.where(same, inside, outside))

    n = propensity.size
    found = np.empty(0, dtype=np.int64)
    for _ in range(rounds):  # almost always the second round is the last
        missing = wanted - found.size
        if missing <= 0:
            break
        drawn = []
        for start in range(0, missing, _CHUNK):  # what is drawn along the way is much larger
            source, target = draw(min(_CHUNK, missing - start))
            if names is not None:
                source, target = names[source], names[target]
            low, high = np.minimum(source, target), np.maximum(source, target)
            key = (low.astype(np.int64) * n + high) * 2 + (source > target)
            drawn.append(key[low != high])
        found = _merged(found, np.concatenate(drawn))
    backwards = (found & 1).astype(bool)
    found >>= 1
    return found, backwards


def _merged(found: Array, drawn: Array) -> Array:
    """Sorted keys of which no two are the same pair; the last bit, the direction, is no matter."""
    drawn.sort()
    drawn = drawn[np.diff(drawn >> 1, prepend=-1) != 0]
    if not found.size:
        return drawn
    place = np.minimum(np.searchsorted(found, drawn & ~1), found.size - 1)
    both = np.concatenate([found, drawn[found[place] >> 1 != drawn >> 1]])
    both.sort(kind="stable")  # two sorted runs: this one merges them in one pass
    return both


def _locate(ends: Array, points: Array) -> Array:
    return np.minimum(np.searchsorted(ends, points, side="right"), ends.size - 1)
