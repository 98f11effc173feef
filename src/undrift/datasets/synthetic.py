"""A generated graph with the troubles of real ones: unequal classes, hubs, shared words."""

import numpy as np
import scipy.sparse as sp

from undrift.datasets.archives import Array
from undrift.graphs import Graph

_CHUNK = 2**22
_DEGREE, _WORDS, _HUBS, _TOPIC_SHARE, _KINSHIP = 8.0, 30.0, 0.8, 0.6, 0.6


def generate(
    *,
    nodes: int = 3000,
    words: int = 1000,
    classes: int = 10,
    size_ratio: float = 6.0,
    homophily: float = 0.65,
    seed: int = 0,
) -> Graph:
    """An undirected graph of `nodes` documents over `words`, in `classes` planted classes.

    Sizes of classes fall geometrically, the largest `size_ratio` times the smallest, in a random
    order. A node draws about 30 words, 6 of 10 from its class and the others from the
    background, which is Zipf's law. A class tilts it by exp(g), g normal per word; 0.6 of g's
    variance is common to classes c and c + classes / 2, so that a later task resembles an earlier
    one. `4 * nodes` edges, fewer where pairs run out, are of a degree-corrected
    block model: log-normal propensities (sigma 0.8), within the class with chance `homophily`.
    """
    rng = np.random.default_rng(seed)
    falling = size_ratio ** -np.linspace(0.0, 1.0, classes)
    sizes = np.floor(nodes * falling / falling.sum()).astype(np.int64)
    sizes[0] += nodes - sizes.sum()
    sizes = rng.permutation(sizes)
    by_class = np.repeat(np.arange(classes), sizes)  # drawn sorted by class, shuffled at the end
    topics = word_chances(rng, classes, words, _KINSHIP)
    features = draw_words(rng, by_class, topics, _WORDS, _TOPIC_SHARE)
    propensity = rng.lognormal(sigma=_HUBS, size=nodes)
    keys, _ = draw_pairs(rng, sizes, propensity, round(nodes * _DEGREE / 2), homophily)
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

    Nodes are numbered class by class, `sizes` of them each; `names` are their ids in the result. A
    source is drawn in proportion to `propensity`, its target to `attraction` (or the propensity),
    within the source's class with probability `homophily` (one, or one per class). Returns sorted
    int64 keys `low * nodes + high`, and which were drawn from high to low; fewer after `rounds`.
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
