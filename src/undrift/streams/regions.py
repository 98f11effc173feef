"""Regions of a graph: connected pieces that grow around random nodes, found without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from undrift.graphs import Graph

Array = np.ndarray[Any, np.dtype[Any]]


def grow_regions(graph: Graph, regions: int, seed: int) -> Array:
    """The region of every node: each goes with the centre it is fewest hops from.

    Centres are drawn by the seed; of two that are as near, the one drawn first wins. A connected
    part of the graph without a centre is a region of its own. Directions of edges do not count.
    Cost: one product with the adjacency pattern per hop.

    >>> path = Graph.from_arrays(np.eye(6), [[0, 1, 3, 4], [1, 2, 4, 5]], undirected=True)
    >>> found = grow_regions(path, 1, seed=0)
    >>> len(set(found[:3].tolist())), len(set(found[3:].tolist())), len(set(found.tolist()))
    (1, 1, 2)
    """
    links = graph.adjacency.to("cpu").to_scipy()
    ones = np.ones(links.nnz, dtype=np.int8)
    pattern = sp.csr_matrix((ones, links.indices, links.indptr), links.shape)
    pattern = (pattern + pattern.T).tocsr()
    n = graph.num_nodes
    generator = np.random.default_rng([seed, 2, regions])
    centres = generator.permutation(n)[: min(regions, n)]
    found = np.full(n, -1, dtype=np.int64)
    found[centres] = np.arange(centres.size)
    frontier = centres
    while frontier.size:
        reached = pattern[frontier]
        source = np.repeat(found[frontier], np.diff(reached.indptr))
        target = reached.indices
        new = found[target] < 0
        nearest = np.full(n, centres.size, dtype=np.int64)
        np.minimum.at(nearest, target[new], source[new])
        frontier = np.flatnonzero(nearest < centres.size)
        found[frontier] = nearest[frontier]
    alone = found < 0
    if alone.any():
        _, part = connected_components(pattern, directed=False)
        _, own = np.unique(part[alone], return_inverse=True)
        found[alone] = centres.size + own
    return found


def share_out(regions: Array, batches: int) -> Array:
    """The batch of every node: whole regions, the largest first, each to the smallest batch.

    >>> share_out(np.array([0, 0, 0, 1, 1, 2]), 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    names, place, sizes = np.unique(regions, return_inverse=True, return_counts=True)
    loads = np.zeros(batches, dtype=np.int64)
    batch_of = np.zeros(names.size, dtype=np.int64)
    for region in np.argsort(-sizes, kind="stable"):
        lightest = int(loads.argmin())
        batch_of[region] = lightest
        loads[lightest] += sizes[region]
    shared: Array = batch_of[place]
    return shared
