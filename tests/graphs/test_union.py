import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.errors import InputError
from undrift.graphs import Graph, disjoint_union
from undrift.sparse import Csr


def path(nodes: int, labels=None, *, sparse: bool = False, undirected: bool = True) -> Graph:
    features = np.arange(1.0, 1.0 + 3 * nodes).reshape(nodes, 3)
    edges = [list(range(nodes - 1)), list(range(1, nodes))]
    return Graph.from_arrays(
        sp.csr_matrix(features) if sparse else features, edges, labels, undirected=undirected
    )


@pytest.mark.parametrize("first_sparse", [False, True])
@pytest.mark.parametrize("second_sparse", [False, True])
def test_both_graphs_side_by_side(first_sparse, second_sparse):
    a, b = path(2, [0, 1], sparse=first_sparse), path(3, [5, -1, 6], sparse=second_sparse)
    both = disjoint_union(a, b)
    expected = torch.block_diag(a.adjacency.to_dense(), b.adjacency.to_dense())
    assert torch.equal(both.adjacency.to_dense(), expected)
    assert torch.equal(
        both.features.to_dense(), torch.cat([a.features.to_dense(), b.features.to_dense()])
    )
    assert isinstance(both.features, Csr) is (first_sparse or second_sparse)
    assert both.labels.tolist() == [0, 1, 5, -1, 6]
    for part, nodes in ((a, [0, 1]), (b, [2, 3, 4])):
        assert torch.equal(both.subgraph(nodes).adjacency.to_dense(), part.adjacency.to_dense())


def test_it_is_symmetric_only_if_both_are():
    symmetric, directed = path(3), path(3, undirected=False)
    assert disjoint_union(symmetric, symmetric).adjacency.symmetric
    assert not disjoint_union(symmetric, directed).adjacency.symmetric
    assert not disjoint_union(directed, symmetric).adjacency.symmetric


def test_a_side_without_labels_is_unlabelled():
    assert disjoint_union(path(2), path(2, [3, 4])).labels.tolist() == [-1, -1, 3, 4]
    assert disjoint_union(path(2, [3, 4]), path(2)).labels.tolist() == [3, 4, -1, -1]
    assert disjoint_union(path(2), path(2)).labels is None


def test_an_empty_graph_adds_nothing():
    graph = path(3, [0, 1, 2])
    empty = Graph.from_arrays(np.zeros((0, 3)), [], [])
    for both in (disjoint_union(graph, empty), disjoint_union(empty, graph)):
        assert torch.equal(both.adjacency.to_dense(), graph.adjacency.to_dense())
        assert both.labels.tolist() == [0, 1, 2]


def test_graphs_of_different_width_are_refused():
    with pytest.raises(InputError, match="cannot unite graphs of 3 and 2 features"):
        disjoint_union(path(2), Graph.from_arrays(np.eye(2), []))
