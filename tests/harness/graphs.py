"""Graphs that say what the default must find: noise in features, classes that link to others."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from undrift import Graph, TaskStream
from undrift.datasets.synthetic import draw_words, word_chances


def noisy_stream(noise: float) -> TaskStream:
    """A stream with ten noisy dense columns, and some thirty neighbours of a node's own class.

    >>> noisy_stream(12.0).classes
    ((0, 1), (2, 3), (4, 5))
    """
    rng = np.random.default_rng(3)
    labels = np.arange(480) % 6
    x = rng.normal(size=(6, 10))[labels] + noise * rng.normal(size=(480, 10))
    mates = (np.arange(480)[:, None] + 6 * rng.integers(1, 80, size=(480, 15))) % 480
    edges = np.stack([np.repeat(np.arange(480), 15), mates.ravel()])
    graph = Graph.from_arrays(x, edges, labels, undirected=True)
    return TaskStream.from_graph(graph, base=2, increment=2, name="noisy")


def random_graph(
    seed: int,
    nodes: int = 12,
    *,
    directed: bool = False,
    weighted: bool = False,
    sparse: bool = False,
    density: float = 0.3,
) -> Graph:
    """A graph of random edges, features and labels, whose last node has no edge at all.

    >>> random_graph(0)
    Graph(12 nodes, 54 edges, 4 features dense, 3 classes)
    """
    rng = np.random.default_rng(seed)
    weights = (rng.random((nodes, nodes)) < density).astype(np.float64)
    if weighted:
        weights *= rng.uniform(0.1, 3.0, size=weights.shape)
    if not directed:
        weights = np.maximum(weights, weights.T)
    if nodes:
        weights[-1] = weights[:, -1] = 0.0
    np.fill_diagonal(weights, 0.0)
    features = rng.normal(size=(nodes, 4)) * (rng.random((nodes, 4)) < 0.5)
    labels = rng.integers(-1, 3, size=nodes)
    return Graph.from_scipy(
        sp.csr_matrix(features) if sparse else features, sp.csr_matrix(weights), labels
    )


def patterned_graph(
    follows: Sequence[int | None], *, per_class: int = 100, share: float = 0.9, seed: int = 0
) -> Graph:
    """A graph in which a node of class c links to class `follows[c]`.

    A `share` of the edges follow it and the others go anywhere, as do all where it is None.
    Classes have `per_class` nodes each, a node has ten words and about eight neighbours.

    >>> patterned_graph([1, 2, 0], per_class=10)
    Graph(30 nodes, 200 edges, 120 features sparse, 3 classes)
    """
    rng = np.random.default_rng(seed)
    classes = len(follows)
    labels = np.repeat(np.arange(classes), per_class)
    features = draw_words(rng, labels, word_chances(rng, classes, 120, 0.6), 10.0, topic_share=0.6)
    count = 4 * labels.size
    source = rng.integers(0, labels.size, count)
    anywhere = rng.integers(0, classes, count)
    wanted = np.array([-1 if f is None else f for f in follows])[labels[source]]
    loose = (rng.random(count) >= share) | (wanted < 0)
    target = np.where(loose, anywhere, wanted) * per_class + rng.integers(0, per_class, count)
    ends = np.stack([source, target])[:, source != target]
    return Graph.from_arrays(features, ends, labels, undirected=True)
