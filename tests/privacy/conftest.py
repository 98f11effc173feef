"""Batches of short texts, of which some nodes are learned from."""

import numpy as np
import scipy.sparse as sp
import torch

from undrift import Graph, Task

WORDS = 400


def texts(nodes: int, label: int, seed: int, learned: int) -> Task:
    """Nodes of twelve words each in pairs; the first so many are learned from."""
    rng = np.random.default_rng(seed)
    chosen = np.stack([rng.choice(WORDS, 12, replace=False) for _ in range(nodes)])
    where = (np.repeat(np.arange(nodes), 12), chosen.ravel())
    features = sp.csr_matrix((np.ones(nodes * 12), where), shape=(nodes, WORDS))
    pairs = np.stack([np.arange(0, nodes - 1, 2), np.arange(1, nodes, 2)])
    graph = Graph.from_arrays(features, pairs, np.full(nodes, label), undirected=True)
    train = torch.arange(nodes) < learned
    return Task(graph, train, test=~train)
