"""The stand-in for Reddit, at any size: all of it generated."""

import numpy as np
import scipy.sparse as sp
import torch

from paper.stand_ins import scaled_classes, scaled_links
from paper.stand_ins.cache import cached_matrix
from paper.stand_ins.draws import draw_links, features_of, generator
from undrift.datasets.archives import Array
from undrift.datasets.catalogue import DATASETS
from undrift.graphs import Graph
from undrift.sparse import Csr

HOMOPHILY = 0.76  # a target, not checked against the real graph
HUBS = 0.95
"""Sigma of the log-normal propensity: at full size the largest degree is some 40 times the mean."""

SEPARATION = 0.12


def make(*, scale: float, seed: int) -> tuple[Graph, int]:
    """A block model over `scaled_classes` with `scaled_links`; features are class means plus noise.

    Real are the numbers: nodes, edges, features, classes, and so the mean degree of 492. Small
    classes are less homophilous than large ones, because they run out of pairs. Kept on disk
    are the links, each once; features are drawn anew, which takes no longer than reading them.
    """
    sizes = np.array(scaled_classes("reddit", scale))
    n = int(sizes.sum())
    rng = generator(seed, "labels")
    labels = rng.permutation(np.repeat(np.arange(sizes.size), sizes))
    pairs = scaled_links("reddit", scale)
    upper = cached_matrix(
        f"reddit-{seed}-{pairs}", labels, (n, n), lambda: _links(labels, pairs, seed)
    )
    adjacency = _both_ways(upper)
    features = features_of(
        labels, DATASETS["reddit"].features, SEPARATION, generator(seed, "features")
    )
    graph = Graph(features, adjacency, torch.from_numpy(labels))
    return graph, graph.num_edges


def _links(labels: Array, pairs: int, seed: int) -> sp.csr_matrix:
    """The upper triangle of the adjacency: every link once, at [low, high]."""
    rng, n = generator(seed, "links"), labels.size
    keys, _ = draw_links(rng, labels, pairs, HOMOPHILY, HUBS)
    # sorted keys are rows one after the other: no sort, no triplets
    indptr = np.searchsorted(keys, np.arange(n + 1, dtype=np.int64) * n).astype(np.int32)
    keys %= n
    high = keys.astype(np.int32)
    return sp.csr_matrix((np.ones(high.size, np.int8), high, indptr), shape=(n, n))


def _both_ways(upper: sp.csr_matrix) -> Csr:
    """Both triangles as one matrix: two counting passes, nothing is sorted."""
    n = upper.shape[0]
    both = upper + upper.T.tocsr()
    return Csr(
        torch.from_numpy(both.indptr.astype(np.int32, copy=False)),
        torch.from_numpy(both.indices.astype(np.int32, copy=False)),
        torch.ones(both.nnz),
        (n, n),
        symmetric=True,
    )
