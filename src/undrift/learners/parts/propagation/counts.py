"""Columns that tell how many features and edges a node has, which rows of length one do not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.parts.propagation.propagated import effective_feature_count
from undrift.sparse import Csr

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_FINE = 26  # columns of the count alone: two to each doubling, up to some eight thousand
_COARSE = 13  # places of the count and of the degree: one to each doubling
_DEGREE_SCALE = 64.0  # of a degree over the root of all edges: most lie between 0.01 and 10
_WEIGHT = 3.0  # of the columns: so much less than words they are shrunk

COUNTS = _FINE
"""How many columns tell the feature count."""

TABLE = _COARSE**2
"""How many tell the feature count and the degree together."""


def count_columns(graph: Graph, nodes: Tensor, *, degrees: bool) -> Csr:
    """`[nodes, 26]` in float64: how many features each of these nodes has; 195 with `degrees`.

    The first 26 tell the effective feature count. Column k stands for a count of `2^(k / 2) - 1`.
    A count lies between two columns and weighs on both, more on the nearer one, so that a linear
    function of the columns is any curve over the logarithm. The other 169 are a table of 13 places
    for the count and 13 for the relative degree, of which four share a node's weight, so that a
    linear function is any surface over both.

    The relative degree is `d / sqrt(e)` with e all directed edges of the graph: if edges do not
    look at classes, a batch keeps the same share of every node's edges, and it is the same in a
    batch's graph and in the world. By it a row depends on all edges of its batch.

    >>> import torch
    >>> path = Graph.from_arrays(torch.ones(3, 3), [[0, 1], [1, 2]], undirected=True)
    >>> count_columns(path, torch.tensor([1]), degrees=False).to_dense().nonzero().tolist()
    [[0, 4]]
    """
    held = effective_feature_count(graph.features[nodes])
    count = held.cpu().numpy()
    fine, left = _between(2 * np.log2(1 + count), _FINE)
    columns, shares = [fine, fine + 1], [left, 1 - left]
    if degrees:
        for column, share in _table(count, _relative_degrees(graph, nodes)):
            columns.append(_FINE + column)
            shares.append(share)
    values = _WEIGHT * np.stack(shares, axis=1)
    each = np.arange(len(count) + 1) * len(columns)
    parts = (values.ravel(), np.stack(columns, axis=1).ravel(), each)
    width = COUNTS + (TABLE if degrees else 0)
    matrix = sp.csr_matrix(parts, shape=(len(count), width))
    matrix.eliminate_zeros()
    return Csr.from_scipy(matrix, dtype=held.dtype).to(held.device)


def _relative_degrees(graph: Graph, nodes: Tensor) -> FloatArray:
    pointers = graph.adjacency.indptr
    degree = (pointers[nodes + 1] - pointers[nodes]).cpu().numpy()
    return np.asarray(_DEGREE_SCALE * degree / max(graph.num_edges, 1) ** 0.5, dtype=np.float64)


def _table(count: FloatArray, degree: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """The four cells that each node lies between, and its share of each."""
    row, above = _between(np.log2(1 + count), _COARSE)
    column, before = _between(np.log2(1 + degree), _COARSE)
    cell = _COARSE * row + column
    return [
        (cell, above * before),
        (cell + 1, above * (1 - before)),
        (cell + _COARSE, (1 - above) * before),
        (cell + _COARSE + 1, (1 - above) * (1 - before)),
    ]


def _between(place: FloatArray, columns: int) -> tuple[IntArray, FloatArray]:
    """The column to the left of each place, and its share; what lies outside is in the last."""
    held = np.clip(place, 0, columns - 1)
    first = np.minimum(held.astype(np.int64), columns - 2)
    return first, 1 - (held - first)
