"""Small graphs and streams for tests: quick to make, and learnable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from undrift.datasets.synthetic import draw_words, word_chances
from undrift.graphs import Graph
from undrift.streams.stream import TaskStream


def tiny_graph(
    seed: int = 0, nodes: int = 60, features: int = 12, classes: int = 6, sparse: bool = False
) -> Graph:
    """An undirected, connected graph in which most neighbours are of the same class.

    Node i has class `i % classes`, so classes are equal up to one node (give at least five per
    class for a stream). Features are a class mean plus noise; with `sparse=True` the same matrix
    cut off at zero, as a `Csr`.

    >>> tiny_graph()
    Graph(60 nodes, ... edges, 12 features dense, 6 classes)
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(nodes) % classes
    means = rng.normal(size=(classes, features))
    x = means[labels] + 0.7 * rng.normal(size=(nodes, features))
    i = np.arange(nodes)
    friend = (i + classes * rng.integers(1, 4, size=nodes)) % nodes  # nearly always own class
    other = rng.integers(0, nodes, size=nodes // 3)
    source = [i[:-classes], i, i[: nodes // 3], i[: classes - 1]]
    target = [i[classes:], friend, other, i[1:classes]]  # a path through each class ... joins them
    edges = np.stack([np.concatenate(source), np.concatenate(target)])
    matrix = sp.csr_matrix(np.maximum(x, 0.0)) if sparse else x
    return Graph.from_arrays(matrix, edges, labels, undirected=True)


def tiny_stream(seed: int = 0, **graph: Any) -> TaskStream:
    """`tiny_graph(seed, **graph)` as a stream: two classes first, then two at a time.

    >>> tiny_stream().classes
    ((0, 1), (2, 3), (4, 5))
    """
    made = tiny_graph(seed, **graph)
    return TaskStream.from_graph(made, base=2, increment=2, name="tiny", seed=seed)


def noisy_stream(noise: float, sparse: bool = False) -> TaskStream:
    """A stream with ten noisy dense columns, and some thirty neighbours of a node's own class.

    >>> noisy_stream(12.0).classes
    ((0, 1), (2, 3), (4, 5))
    """
    rng = np.random.default_rng(3)
    labels = np.arange(480) % 6
    x = rng.normal(size=(6, 10))[labels] + noise * rng.normal(size=(480, 10))
    mates = (np.arange(480)[:, None] + 6 * rng.integers(1, 80, size=(480, 15))) % 480
    edges = np.stack([np.repeat(np.arange(480), 15), mates.ravel()])
    features = sp.csr_matrix(np.abs(x)) if sparse else x
    graph = Graph.from_arrays(features, edges, labels, undirected=True)
    return TaskStream.from_graph(graph, base=2, increment=2, name="noisy")


def patterned_graph(
    follows: Sequence[int | None],
    *,
    per_class: int = 100,
    words: int = 120,
    average_degree: float = 8.0,
    words_per_node: float = 10.0,
    share: float = 0.9,
    seed: int = 0,
) -> Graph:
    """A graph in which a node of class c links to class `follows[c]`.

    A `share` of the edges follow it and the others go anywhere, as do all where it is None.
    Classes have `per_class` nodes each.

    >>> patterned_graph([1, 2, 0], per_class=10)
    Graph(30 nodes, 200 edges, 120 features sparse, 3 classes)
    """
    rng = np.random.default_rng(seed)
    classes = len(follows)
    labels = np.repeat(np.arange(classes), per_class)
    chances = word_chances(rng, classes, words, 0.6)
    features = draw_words(rng, labels, chances, words_per_node, topic_share=0.6)
    count = round(labels.size * average_degree / 2)
    source = rng.integers(0, labels.size, count)
    anywhere = rng.integers(0, classes, count)
    wanted = np.array([-1 if f is None else f for f in follows])[labels[source]]
    loose = (rng.random(count) >= share) | (wanted < 0)
    target = np.where(loose, anywhere, wanted) * per_class + rng.integers(0, per_class, count)
    ends = np.stack([source, target])[:, source != target]
    return Graph.from_arrays(features, ends, labels, undirected=True)
