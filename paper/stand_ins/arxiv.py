"""The stand-in for ogbn-arxiv: its real labels, with generated citations and features."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from paper.stand_ins.cache import cached_matrix
from paper.stand_ins.draws import draw_links, features_of, generator
from undrift.datasets.archives import Array, open_npz
from undrift.datasets.catalogue import DATASETS
from undrift.graphs import Graph
from undrift.sparse import Csr

HOMOPHILY = 0.655  # a target, not checked against the real graph
PAIRS = 1_157_799
"""Linked pairs. Published are the 1,166,243 citations; that 8,444 of them are answered, which
makes 2,315,598 edges both ways, is assumed and was not checked against the real graph."""

CITING, CITED = 0.6, 2.3
"""Sigma of the log-normal propensities: papers cite a few, and a few papers are cited by all."""

SEPARATION = 0.1


def make(path: Path, *, directed: bool, seed: int) -> tuple[Graph, int]:
    """Labels of `arxiv_labels_split.npz`, a block model over them, and class means plus noise.

    Edges are made symmetric unless `directed`; the number returned is that of the citations.
    """
    labels = read_labels(path)
    n, width = labels.size, DATASETS["ogbn-arxiv"].features
    cites = cached_matrix(f"ogbn-arxiv-{seed}", labels, (n, n), lambda: _citations(labels, seed))
    edges = cites
    if not directed:
        edges = cites + cites.T.tocsr()
        edges.data[:] = 1
    features = features_of(labels, width, SEPARATION, generator(seed, "features"))
    adjacency = Csr.from_scipy(edges, symmetric=not directed)
    return Graph(features, adjacency, torch.from_numpy(labels)), int(cites.nnz)


def read_labels(path: Path) -> Array:
    """The class of every node, int64."""
    with open_npz(path, "the labels of ogbn-arxiv are in an array label") as archive:
        return archive.array("label", "iu", dtype=np.int64)


def _citations(labels: Array, seed: int) -> sp.csr_matrix:
    """A row per cited paper, a column per citing one."""
    rng, n = generator(seed, "links"), labels.size
    answered = DATASETS["ogbn-arxiv"].edges - PAIRS
    keys, backwards = draw_links(rng, labels, PAIRS, HOMOPHILY, CITING, CITED)
    low, high = keys // n, keys % n
    citing, cited = np.where(backwards, high, low), np.where(backwards, low, high)
    both = rng.choice(keys.size, size=min(answered, keys.size), replace=False)
    rows, columns = np.append(cited, citing[both]), np.append(citing, cited[both])
    return sp.csr_matrix((np.ones(rows.size, np.int8), (rows, columns)), shape=(n, n))
