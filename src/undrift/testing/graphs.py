"""Small graphs and streams for tests: quick to make, and learnable."""

from typing import Any

import numpy as np
import scipy.sparse as sp

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
