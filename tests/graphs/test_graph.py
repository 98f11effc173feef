import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import dense_operator
from undrift.errors import InputError
from undrift.graphs import NORMALISATIONS, Graph
from undrift.sparse import Csr


def random_graph(
    seed: int, nodes: int, *, directed: bool = False, weighted: bool = False, sparse: bool = False
) -> Graph:
    """A random graph whose last node has no edge at all."""
    rng = np.random.default_rng(seed)
    weights = (rng.random((nodes, nodes)) < 0.3).astype(np.float64)
    if weighted:
        weights *= rng.uniform(0.1, 3.0, size=weights.shape)
    if not directed:
        weights = np.maximum(weights, weights.T)
    if nodes:
        weights[-1] = weights[:, -1] = 0.0
    np.fill_diagonal(weights, 0.0)
    features = rng.normal(size=(nodes, 4)) * (rng.random((nodes, 4)) < 0.5)
    labels = rng.integers(-1, 3, size=nodes)
    return Graph.from_scipy(
        sp.csr_matrix(features) if sparse else features, sp.csr_matrix(weights), labels
    )


def dense_features(graph: Graph) -> torch.Tensor:
    return graph.features.to_dense()


# what it is -------------------------------------------------------------------------------


def test_sizes_and_how_it_prints():
    graph = Graph.from_arrays(np.eye(3), [[0, 1, 1], [1, 0, 2]], [0, -1, 4])
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (3, 3, 3)
    assert graph.device == torch.device("cpu")
    assert repr(graph) == "Graph(3 nodes, 3 edges, 3 features dense, 2 classes)"
    bare = Graph.from_arrays(sp.eye(3), [])
    assert repr(bare) == "Graph(3 nodes, 0 edges, 3 features sparse, no labels)"


@pytest.mark.parametrize("name", ["features", "adjacency", "labels", "operator", "masks"])
def test_it_cannot_be_changed(name):
    graph = random_graph(0, 4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(graph, name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(graph, name)


def test_graphs_are_compared_by_identity():
    assert random_graph(0, 4) != random_graph(0, 4)
    assert len({random_graph(0, 4), random_graph(0, 4)}) == 2


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


def test_dense_float32_features_are_shared_as_documented():
    features = np.eye(3, dtype=np.float32)
    assert np.shares_memory(Graph.from_arrays(features, []).features.numpy(), features)


# the constructor's own checks ----------------------------------------------------------------


def square(n: int) -> Csr:
    return Csr.from_scipy(sp.csr_matrix((n, n), dtype=np.float32))


def test_adjacency_must_have_a_row_and_a_column_per_node():
    with pytest.raises(InputError, match="matrix is 2 x 2 but there are 3 nodes in features"):
        Graph(torch.eye(3), square(2))
    with pytest.raises(InputError, match="matrix is 3 x 4 but there are 3 nodes"):
        Graph.from_scipy(np.eye(3), sp.csr_matrix(np.ones((3, 4))))


@pytest.mark.parametrize(
    "features",
    [
        torch.ones(3),
        torch.ones(3, 0),
        torch.ones(3, 2, 2),
        torch.tensor(1.0),
        torch.ones(3, 2).long(),
    ],
)
def test_features_must_be_a_matrix_of_floats(features):
    with pytest.raises(InputError, match=r"features must be a matrix \[nodes, width\] of floats"):
        Graph(features, square(3))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("where", [(0, 0), (1, 2), (3, 1)])
def test_features_that_are_not_finite_are_named(bad, sparse, where):
    features = np.zeros((4, 3))  # empty sparse rows before the bad one
    features[where] = bad
    features[3, 2] = bad  # a later one is not the one that is named
    with pytest.raises(
        InputError, match=rf"NaN or infinity, first at node {where[0]}, column {where[1]};"
    ):
        Graph.from_arrays(sp.csr_matrix(features) if sparse else features, [])


def test_edge_weights_must_be_finite():
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="edge weights contain NaN or infinity"):
            Graph.from_scipy(np.eye(2), sp.csr_matrix([[0.0, bad], [1.0, 0.0]]))


@pytest.mark.parametrize(
    "labels",
    [
        torch.zeros(2, dtype=torch.int64),
        torch.zeros(3, 1, dtype=torch.int64),
        torch.zeros(3, dtype=torch.int32),
        torch.zeros(3),
    ],
)
def test_labels_must_be_one_int64_per_node(labels):
    with pytest.raises(InputError, match=r"labels must be 3 whole numbers \(int64\), one per node"):
        Graph(torch.eye(3), square(3), labels)


def test_labels_must_not_be_negative_but_may_be_unknown():
    with pytest.raises(InputError, match="label -2 is negative; use class ids from 0, and -1 for"):
        Graph.from_arrays(np.eye(3), [], [0, -1, -2])
    assert Graph.from_arrays(np.eye(3), [], [0, -1, -1]).labels.tolist() == [0, -1, -1]


def test_parts_must_be_on_one_device():
    with pytest.raises(InputError, match="features are on meta but the adjacency on cpu"):
        Graph(torch.eye(3, device="meta"), square(3))
    with pytest.raises(InputError, match="features are on cpu but the labels on meta"):
        Graph(torch.eye(3), square(3), torch.zeros(3, dtype=torch.int64, device="meta"))


# edges ------------------------------------------------------------------------------------


def test_an_edge_stands_in_the_row_of_its_target():
    graph = Graph.from_arrays(np.eye(3), [[0, 0], [1, 2]])
    assert graph.adjacency.to_dense().tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    h = torch.tensor([[10.0], [20.0], [30.0]])
    assert (graph.adjacency @ h).flatten().tolist() == [0, 10, 10]  # both receive from node 0


def test_duplicate_edges_count_once_and_self_loops_are_left_out():
    graph = Graph.from_arrays(np.eye(3), [[0, 0, 0, 2, 1], [1, 1, 1, 2, 1]])
    assert graph.num_edges == 1
    assert graph.adjacency.to_dense().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_undirected_adds_the_reverse_of_every_edge_once():
    edges = [[0, 1, 1], [1, 0, 2]]  # one edge is there in both directions already
    directed = Graph.from_arrays(np.eye(3), edges)
    both = Graph.from_arrays(np.eye(3), edges, undirected=True)
    assert (directed.num_edges, both.num_edges) == (3, 4)
    assert both.adjacency.to_dense().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


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


def test_from_scipy_keeps_weights_adds_duplicates_and_drops_zeros():
    coo = sp.coo_matrix(
        ([0.5, 0.25, 3.0, 0.0], ([0, 0, 1, 2], [1, 1, 1, 0])), shape=(3, 3), dtype=np.float64
    )
    graph = Graph.from_scipy(np.eye(3), coo)
    assert graph.num_edges == 1
    assert graph.adjacency.to_dense().tolist() == [[0, 0.75, 0], [0, 0, 0], [0, 0, 0]]


def test_a_self_loop_stored_twice_goes_as_well():
    raw = sp.csr_matrix((np.ones(3) * 0.1, np.array([0, 1, 0]), np.array([0, 3, 3])), shape=(2, 2))
    graph = Graph.from_scipy(np.eye(2), raw)
    assert graph.num_edges == 1
    assert graph.adjacency.to_dense()[0, 0] == 0


def test_a_graph_without_nodes_or_without_edges():
    empty = Graph.from_arrays(np.zeros((0, 3)), [], [])
    assert (empty.num_nodes, empty.num_edges) == (0, 0)
    assert empty.operator().shape == (0, 0)
    assert repr(empty) == "Graph(0 nodes, 0 edges, 3 features dense, 0 classes)"
    lonely = Graph.from_arrays(np.eye(2), np.zeros((2, 0)))
    assert torch.equal(lonely.operator().to_dense(), torch.eye(2))


# operators --------------------------------------------------------------------------------


def test_operators_are_built_once_per_kind():
    graph = random_graph(1, 6, directed=True)
    assert graph.operator() is graph.operator("symmetric", self_loops=True)
    for loops in (True, False):
        for kind in NORMALISATIONS:
            operator = graph.operator(kind, self_loops=loops)
            assert operator is graph.operator(kind, self_loops=loops)
            twin = dense_operator(graph.adjacency.to_dense(), kind, self_loops=loops)
            torch.testing.assert_close(operator.to_dense(torch.float64), twin, rtol=1e-6, atol=0)


def test_an_unknown_operator_is_refused_and_not_kept():
    graph = random_graph(1, 6)
    with pytest.raises(InputError, match=r"unknown normalisation 'sym'.*row, sum, symmetric"):
        graph.operator("sym")
    assert not graph.operator._made


# subgraphs --------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.data(),
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


@pytest.mark.parametrize("sparse", [False, True])
def test_a_subgraph_by_any_list_of_nodes(sparse):
    graph = random_graph(2, 8, sparse=sparse)
    expected = graph.adjacency.to_dense()[[6, 1, 3]][:, [6, 1, 3]]
    locked = np.array([6, 1, 3])
    locked.flags.writeable = False
    for nodes in (
        [6, 1, 3],
        (6, 1, 3),
        locked,
        np.array([6, 1, 3], dtype=np.uint8),
        torch.tensor([6, 1, 3]),
        torch.tensor([6, 1, 3], dtype=torch.int32),
        torch.tensor([6, 1, 3], dtype=torch.uint8),
    ):
        part = graph.subgraph(nodes)
        assert torch.equal(part.adjacency.to_dense(), expected)
        assert torch.equal(dense_features(part), dense_features(graph)[[6, 1, 3]])


def test_a_subgraph_by_mask_and_of_nothing_and_without_labels():
    graph = random_graph(3, 5)
    mask = [True, False, True, False, True]
    for nodes in (mask, np.array(mask), torch.tensor(mask)):
        assert torch.equal(graph.subgraph(nodes).labels, graph.labels[[0, 2, 4]])
    assert graph.subgraph([]).num_nodes == 0
    assert graph.subgraph([False] * 5).num_nodes == 0
    assert Graph.from_arrays(np.eye(3), []).subgraph([1]).labels is None


def test_a_subgraph_keeps_the_type_of_the_weights_and_starts_with_no_operator():
    double = Csr.from_scipy(sp.csr_matrix([[0, 0.1], [0.1, 0]]), dtype=torch.float64)
    graph = Graph(torch.eye(2, dtype=torch.float64), double)
    graph.operator()
    part = graph.subgraph([1, 0])
    assert part.adjacency.dtype == part.features.dtype == torch.float64
    assert part.adjacency.values.tolist() == [0.1, 0.1]
    assert not part.operator._made


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 4], "node 4 is not there: the 4 nodes are numbered from 0"),
        ([-1], "node -1 is not there"),
        ([True, False], r"a node mask needs 4 entries, not \(2,\)"),
        ([[True] * 4], r"a node mask needs 4 entries, not \(1, 4\)"),
        ([0.0, 1.0], "give nodes as a list of whole numbers or a boolean mask"),
        ([[0, 1]], "give nodes as a list of whole numbers or a boolean mask"),
        (2, "give nodes as a list of whole numbers or a boolean mask"),
        (["a"], "nodes must be an array of numbers, not of <U1"),
        ({1, 2}, "nodes must be an array of numbers, not of object"),
    ],
)
def test_nodes_that_are_not_there_are_refused(nodes, message):
    with pytest.raises(InputError, match=message):
        random_graph(4, 4).subgraph(nodes)


# moving -----------------------------------------------------------------------------------


def test_to_the_same_device_is_itself():
    graph = random_graph(5, 4)
    assert graph.to("cpu") is graph
    assert graph.to(torch.device("cpu")) is graph


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("sparse", [False, True])
def test_a_graph_on_a_cuda_device_computes_the_same(sparse):
    graph = random_graph(6, 12, directed=True, weighted=True, sparse=sparse)
    kept = graph.operator()
    there = graph.to("cuda")
    assert {there.features.device.type, there.adjacency.device.type, there.labels.device.type} == {
        "cuda"
    }
    assert torch.equal(there.operator().to_dense().cpu(), kept.to_dense())
    part, same = there.subgraph([5, 1, 7]), graph.subgraph([5, 1, 7])
    assert part.device.type == "cuda"
    assert torch.equal(part.adjacency.to_dense().cpu(), same.adjacency.to_dense())
    built = Graph.from_arrays(
        torch.eye(3, device="cuda"),
        torch.tensor([[0], [1]], device="cuda"),
        torch.tensor([0, 1, 1], device="cuda"),
    )
    assert built.adjacency.device.type == built.labels.device.type == "cuda"
    x = torch.randn(12, 3, device="cuda", requires_grad=True)
    (there.adjacency @ x).sum().backward()
    expected = graph.adjacency.to_dense().sum(dim=0)[:, None].expand(12, 3)
    torch.testing.assert_close(x.grad.cpu(), expected)
    assert torch.equal(there.to("cpu").adjacency.to_dense(), graph.adjacency.to_dense())


def test_a_kept_operator_equals_its_slow_twin_after_subgraph():
    part = random_graph(7, 9, directed=True, weighted=True).subgraph([8, 2, 5, 0])
    expected = dense_operator(part.adjacency.to_dense(), "symmetric")
    torch.testing.assert_close(part.operator().to_dense(torch.float64), expected, rtol=1e-6, atol=0)


def test_large_features_that_add_up_to_infinity_are_finite() -> None:
    features = torch.full((4, 2), 3e38)
    assert Graph.from_arrays(features, [[0], [1]]).num_nodes == 4
    features[2, 1] = float("inf")
    with pytest.raises(InputError, match="first at node 2, column 1"):
        Graph.from_arrays(features, [[0], [1]])


def test_duplicate_weights_add_up_before_loops_go() -> None:
    entries = (np.array([1.0, 2.0, 5.0]), (np.array([0, 0, 1]), np.array([1, 1, 1])))
    graph = Graph.from_scipy(torch.eye(2), sp.coo_matrix(entries, shape=(2, 2)))
    assert graph.adjacency.to_dense().tolist() == [[0.0, 3.0], [0.0, 0.0]]


def test_isolated_nodes_lose_their_edges_and_others_keep_theirs() -> None:
    graph = Graph.from_arrays(torch.eye(3), [[0, 1], [1, 2]], undirected=True)
    assert graph.isolated(torch.tensor([0])).adjacency.to_dense().tolist() == [
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0],
    ]


def test_what_is_derived_is_not_shown() -> None:
    graph = Graph.from_arrays(torch.eye(3), [[0], [1]]).to("cpu")
    assert graph.labels is None
    assert [f.name for f in dataclasses.fields(Graph) if f.init] == [
        "features",
        "adjacency",
        "labels",
    ]


def test_entries_of_a_csr_matrix_that_stand_twice_add_up() -> None:
    twice = sp.csr_matrix((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2))
    graph = Graph.from_scipy(torch.eye(2), twice)
    assert graph.num_edges == 1
    assert graph.adjacency.to_dense().tolist() == [[0.0, 2.0], [0.0, 0.0]]


def test_entries_of_a_matrix_that_stand_twice_are_one_edge() -> None:
    twice = sp.csr_matrix((np.float32([1, 2, 4, -4]), [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    graph = Graph.from_scipy(np.ones((2, 3), np.float32), twice)
    assert graph.num_edges == 1
    assert graph.adjacency.to_scipy().toarray().tolist() == [[0.0, 3.0], [0.0, 0.0]]
