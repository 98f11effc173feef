from __future__ import annotations

import pytest
import torch
from scipy.sparse.csgraph import connected_components

from undrift.sparse import Csr
from undrift.testing.check_stream import check_stream
from undrift.testing.graphs import tiny_graph, tiny_stream


@pytest.mark.parametrize("seed", range(3))
def test_a_tiny_graph_is_connected_and_homophilous(seed):
    graph = tiny_graph(seed)
    edges = graph.adjacency.to_scipy()
    assert connected_components(edges)[0] == 1
    assert graph.adjacency.symmetric
    row, col = edges.nonzero()
    same = (graph.labels[torch.from_numpy(row)] == graph.labels[torch.from_numpy(col)]).double()
    assert 0.6 < float(same.mean()) < 0.98
    assert graph.labels.bincount().tolist() == [10] * 6


def test_sizes_are_those_asked_for():
    graph = tiny_graph(nodes=43, features=5, classes=4)
    assert (graph.num_nodes, graph.num_features) == (43, 5)
    assert graph.labels.bincount().tolist() == [11, 11, 11, 10]


def test_sparse_features_are_the_dense_ones_cut_off_at_zero():
    dense, sparse = tiny_graph(seed=4), tiny_graph(seed=4, sparse=True)
    assert isinstance(sparse.features, Csr)
    assert torch.equal(sparse.features.to_dense(), dense.features.clamp(min=0))
    assert torch.equal(dense.adjacency.indices, sparse.adjacency.indices)


def test_seeds_give_other_graphs_and_the_same_seed_the_same():
    assert torch.equal(tiny_graph(1).features, tiny_graph(1).features)
    assert not torch.equal(tiny_graph(1).features, tiny_graph(2).features)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_tiny_stream_is_a_sound_stream(sparse):
    stream = tiny_stream(seed=2, sparse=sparse)
    assert stream.classes == ((0, 1), (2, 3), (4, 5))
    check_stream(stream, lambda seed: tiny_stream(seed, sparse=sparse))
