import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.graphs import random_graph
from undrift.errors import InputError
from undrift.graphs import NORMALISATIONS, Graph, disjoint_union, normalise
from undrift.sparse import Csr


def dense_features(graph: Graph) -> torch.Tensor:
    return graph.features.to_dense()


def test_the_callers_matrices_stay_as_they_were_and_are_not_shared():
    adjacency = sp.csr_matrix(np.array([[2, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=np.float32))
    adjacency.data[1] = 0.0  # an explicit zero, and a self-loop at [0, 0]
    labels = np.array([0, 1, 1])
    before = [a.copy() for a in (adjacency.data, adjacency.indices, adjacency.indptr)]
    graph = Graph.from_scipy(np.eye(3), adjacency, labels)
    for now, then in zip(
        (adjacency.data, adjacency.indices, adjacency.indptr), before, strict=True
    ):
        assert np.array_equal(now, then)
    adjacency.data[:] = np.nan
    labels[:] = -7
    assert graph.adjacency.to_dense().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]
    assert graph.labels.tolist() == [0, 1, 1]


def square(n: int) -> Csr:
    return Csr.from_scipy(sp.csr_matrix((n, n), dtype=np.float32))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((torch.eye(3), square(2)), "matrix is 2 x 2 but there are 3 nodes in features"),
        ((torch.ones(3), square(3)), r"a matrix \[nodes, width\] of floats"),
        ((torch.ones(3, 2).long(), square(3)), r"a matrix \[nodes, width\] of floats"),
        ((torch.eye(3), square(3), torch.zeros(2).long()), r"must be 3 whole numbers \(int64\)"),
        ((torch.eye(3), square(3), torch.zeros(3)), "must be 3 whole numbers"),
        ((torch.eye(3), square(3), torch.tensor([0, -1, -2])), "label -2 is negative; use"),
        ((torch.eye(3, device="meta"), square(3)), "features are on meta but the adjacency on cpu"),
        ((torch.eye(3), square(3), torch.zeros(3, device="meta").long()), "the labels on meta"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        Graph(*parts)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("where", [(0, 0), (1, 2), (3, 1)])
def test_features_that_are_not_finite_are_named(bad, sparse, where):
    features = np.zeros((4, 3))  # empty sparse rows before the bad one
    features[where] = bad
    features[3, 2] = bad  # a later one is not the one that is named
    told = rf"NaN or infinity, first at node {where[0]}, column {where[1]};"
    with pytest.raises(InputError, match=told):
        Graph.from_arrays(sp.csr_matrix(features) if sparse else features, [])


def test_duplicate_edges_count_once_and_self_loops_are_left_out():
    edges = [[0, 0, 0, 2, 1], [1, 1, 1, 2, 1]]
    one_way, both = (Graph.from_arrays(np.eye(3), edges, undirected=u) for u in (False, True))
    assert one_way.adjacency.to_dense().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert both.adjacency.to_dense().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("adjacency", "symmetric"),
    [
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], True),
        ([[0, 0, 0], [1, 0, 0], [0, 0, 0]], False),
        ([[0, 2, 0], [1, 0, 0], [0, 0, 0]], False),
        ([[5, 2, 0], [2, 0, 0], [0, 0, 7]], True),
        ([[0, 0, 0], [0, 0, 0], [0, 0, 0]], True),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], False),
    ],
)
def test_symmetry_is_detected(adjacency, symmetric):
    graph = Graph.from_scipy(np.eye(3), sp.csr_matrix(np.array(adjacency, dtype=float)))
    assert graph.adjacency.symmetric is symmetric
    transpose = graph.adjacency.t()
    assert (transpose is graph.adjacency) is symmetric
    assert torch.equal(transpose.to_dense(), graph.adjacency.to_dense().T)


def test_operators_are_built_once_per_kind():
    graph = random_graph(1, 6, directed=True)
    assert graph.operator() is graph.operator("symmetric", self_loops=True)
    for loops in (True, False):
        for kind in NORMALISATIONS:
            made = graph.operator(kind, self_loops=loops)
            assert made is graph.operator(kind, self_loops=loops)
            wanted = normalise(graph.adjacency, kind, self_loops=loops)
            assert torch.equal(made.to_dense(), wanted.to_dense())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6), st.integers(1, 9), st.booleans(), st.booleans(), st.booleans(), st.data()
)
def test_a_subgraph_equals_dense_indexing(seed, nodes, directed, weighted, sparse, data):
    graph = random_graph(seed, nodes, directed=directed, weighted=weighted, sparse=sparse)
    chosen = data.draw(st.lists(st.integers(0, nodes - 1), unique=True))
    part = graph.subgraph(chosen)
    index = torch.tensor(chosen, dtype=torch.int64)
    adjacency = graph.adjacency.to_dense()[index][:, index]
    assert torch.equal(part.adjacency.to_dense(), adjacency)
    assert torch.equal(dense_features(part), dense_features(graph)[index])
    assert torch.equal(part.labels, graph.labels[index])
    assert isinstance(part.features, Csr) is sparse
    if part.adjacency.symmetric:
        assert torch.equal(adjacency, adjacency.T)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 4], "node 4 is not there: the 4 nodes are numbered from 0"),
        ([-1], "node -1 is not there"),
        ([[True] * 4], r"a node mask needs 4 entries, not \(1, 4\)"),
        ([0.0, 1.0], "give nodes as a list of whole numbers or a boolean mask"),
        (2, "give nodes as a list of whole numbers or a boolean mask"),
        (["a"], "nodes must be an array of numbers, not of <U1"),
        ({1, 2}, "nodes must be an array of numbers, not of object"),
    ],
)
def test_nodes_that_are_not_there_are_refused(nodes, message):
    with pytest.raises(InputError, match=message):
        random_graph(4, 4).subgraph(nodes)


def test_large_numbers_that_add_up_to_infinity_are_finite() -> None:
    features = torch.full((2, 2), 3e38)
    assert Graph.from_scipy(features, np.array([[0, 3e38], [3e38, 0]])).num_edges == 2
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="edge weights contain NaN or infinity"):
            Graph.from_scipy(features, np.array([[0.0, bad], [1.0, 0.0]]))


def test_entries_of_a_matrix_that_stand_twice_are_one_edge() -> None:
    twice = sp.csr_matrix((np.float32([1, 2, 4, -4]), [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    graph = Graph.from_scipy(np.ones((2, 3), np.float32), twice)
    assert graph.num_edges == 1
    assert graph.adjacency.to_scipy().toarray().tolist() == [[0.0, 3.0], [0.0, 0.0]]


def test_masks_have_a_row_per_node() -> None:
    graph = Graph.from_arrays(np.eye(3), [])
    assert graph.with_masks(train=np.ones((3, 2), np.bool_)).masks["train"].shape == (3, 2)
    for wrong in ([True, False], True, [1, 0, 1], np.ones((2, 3), np.bool_)):
        with pytest.raises(InputError, match="the val mask must be 3 booleans"):
            graph.with_masks(val=wrong)
    with pytest.raises(InputError, match="this graph has no labels"):
        graph.labelled()


@pytest.mark.parametrize("first_sparse", [False, True])
@pytest.mark.parametrize("second_sparse", [False, True])
def test_a_union_has_both_graphs_side_by_side(first_sparse, second_sparse):
    a = random_graph(1, 3, sparse=first_sparse)
    b = random_graph(2, 4, sparse=second_sparse, directed=True)
    both = disjoint_union(a, b)
    for part in ("adjacency", "features"):
        first, second = (getattr(graph, part).to_dense() for graph in (a, b))
        joined = torch.block_diag(first, second) if part == "adjacency" else [*first, *second]
        assert getattr(both, part).to_dense().tolist() == [row.tolist() for row in joined]
    assert isinstance(both.features, Csr) is (first_sparse or second_sparse)
    assert both.labels.tolist() == [*a.labels.tolist(), *b.labels.tolist()]
    assert disjoint_union(a, a).adjacency.symmetric
    assert not both.adjacency.symmetric


def test_the_labels_of_a_union():
    known, unknown = Graph.from_arrays(np.eye(2), [], [3, 4]), Graph.from_arrays(np.eye(2), [])
    assert disjoint_union(unknown, known).labels.tolist() == [-1, -1, 3, 4]
    assert disjoint_union(known, unknown).labels.tolist() == [3, 4, -1, -1]
    assert disjoint_union(unknown, unknown).labels is None
    with pytest.raises(InputError, match="graph 1 has 3 features per node, graph 0 has 2"):
        disjoint_union(known, Graph.from_arrays(np.eye(3), []))
