"""Where graphs have their limits: fields that are just small enough, weights that cancel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.graphs.field import Hop, ReceptiveField, narrowed, receptive_field
from undrift.graphs.graph import disjoint_union
from undrift.graphs.inputs import as_edges, as_features, as_labels, as_tensor
from undrift.graphs.normalise import Degrees, Operators, normalise
from undrift.sparse import Csr


def path(nodes: int) -> Graph:
    """0 -> 1 -> 2 and so on."""
    return Graph.from_arrays(np.eye(nodes, 2), [[*range(nodes - 1)], [*range(1, nodes)]])


# fields ----------------------------------------------------------------------------------


def test_a_field_is_at_most_a_quarter_of_the_nodes_and_edges() -> None:
    found = ReceptiveField.of(path(8), torch.tensor([5]), 1)  # 2 of 8 nodes, 1 of 7 edges
    assert found is not None
    assert found.nodes.tolist() == [4, 5]
    assert found.graph.num_edges == 1
    assert ReceptiveField.of(path(7), torch.tensor([5]), 1) is None  # 2 of 7 nodes
    star = Graph.from_arrays(np.ones((40, 1)), [[1, 2, 3, 4], [0, 0, 0, 5]])
    assert ReceptiveField.of(star, torch.tensor([0]), 1) is None  # 3 of 4 edges
    one = ReceptiveField.of(star, torch.tensor([5]), 1)  # 1 of 4
    assert one is not None
    assert one.nodes.tolist() == [4, 5]


def test_every_node_may_look_as_far_as_it_likes() -> None:
    found = ReceptiveField.of(path(40), torch.tensor([30, 10, 20]), torch.tensor([0, 2, 1]))
    assert found is not None
    assert found.nodes.tolist() == [8, 9, 10, 19, 20, 30]
    assert found.nodes[found.at].tolist() == [30, 10, 20]


def test_a_field_of_no_nodes_is_small_and_of_a_graph_without_any_is_none() -> None:
    found = ReceptiveField.of(path(8), torch.tensor([], dtype=torch.int64), 3)
    assert found is not None
    assert found.nodes.tolist() == [0]
    assert found.at.tolist() == []
    empty = Graph.from_arrays(np.ones((0, 2)), [])
    assert ReceptiveField.of(empty, torch.tensor([], dtype=torch.int64), 1) is None


@pytest.mark.parametrize("kind", ["symmetric", "row", "sum"])
def test_an_edge_weighs_in_a_field_what_it_weighs_in_the_whole(kind: str) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_arrays(rng.random((60, 3)), rng.integers(0, 60, (2, 70)))
    field = ReceptiveField.of(graph, torch.tensor([7, 3]), 1)
    assert field is not None
    h = torch.from_numpy(rng.random((60, 2))).float()
    whole = (graph.operator(kind) @ h)[[7, 3]]
    torch.testing.assert_close((field.graph.operator(kind) @ h[field.nodes])[field.at], whole)
    again = Degrees(graph.adjacency).of(torch.tensor([1, 5, 9])).of(torch.tensor([2, 0]))
    torch.testing.assert_close(again.into, Degrees(graph.adjacency).into[[9, 1]])
    torch.testing.assert_close(again.out, Degrees(graph.adjacency).out[[9, 1]])


# batches ---------------------------------------------------------------------------------


def test_the_last_hop_has_the_nodes_as_they_were_given() -> None:
    operator = path(6).adjacency
    hops, sources = receptive_field([operator, operator], torch.tensor([4, 2, 4]))
    assert sources.tolist() == [0, 1, 2, 3, 4]
    assert [tuple(hop.operator.shape) for hop in hops] == [(4, 5), (3, 4)]
    own = torch.arange(6.0).unsqueeze(1)[sources]
    for hop in hops:
        own = hop.targets(own)
    assert own.flatten().tolist() == [4.0, 2.0, 4.0]
    assert receptive_field([], torch.tensor([3, 1]))[1].tolist() == [3, 1]


def test_narrowed_hops_compute_the_same() -> None:
    rng = np.random.default_rng(1)
    operator = Graph.from_arrays(rng.random((30, 2)), rng.integers(0, 30, (2, 90))).adjacency
    hops, sources = receptive_field([operator, operator], torch.arange(10))
    h = torch.from_numpy(rng.random((30, 2))).float()
    for whole, start in ((hops, h[sources]), ((Hop(operator), Hop(operator)), h)):
        wide = start
        for hop in whole:
            wide = hop.operator @ wide
        few, stood = narrowed(whole, torch.tensor([2, 7]))
        assert len(stood) == 3
        thin = start[stood[0]]
        for hop in few:
            thin = hop.operator @ thin
        torch.testing.assert_close(thin, wide[[2, 7]])
        assert stood[-1].tolist() == [2, 7]


# normalisation ---------------------------------------------------------------------------


def test_weights_that_add_up_to_nothing_aggregate_to_nothing() -> None:
    matrix = sp.csr_matrix(np.array([[0, 1, -1], [2, 0, 0], [0, 0, 0]], dtype=np.float32))
    adjacency = Csr.from_scipy(matrix)
    row = normalise(adjacency, "row", self_loops=False).to_dense()
    assert row.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    both = normalise(adjacency, "symmetric", self_loops=False).to_dense()
    assert both[0].tolist() == [0.0, 0.0, 0.0]
    assert both[1].tolist() == [1.0, 0.0, 0.0]


def test_operators_are_kept_by_kind_and_loops() -> None:
    operators = Operators(path(4).adjacency)
    assert operators() is operators("symmetric", self_loops=True)
    assert operators("row") is not operators("row", self_loops=False)
    assert operators("row") is operators("row")
    assert operators().to_dense().diagonal().tolist() != [0.0] * 4
    plain = normalise(path(4).adjacency)
    torch.testing.assert_close(operators().to_dense(), plain.to_dense())


# inputs ----------------------------------------------------------------------------------


def test_edges_at_the_ends() -> None:
    assert as_edges([[0, 2], [2, 0]], 3).tolist() == [[0, 2], [2, 0]]
    for wrong in ([[0, 3], [2, 0]], [[0, -1], [2, 0]]):
        with pytest.raises(InputError, match=r"an edge names node (3|-1)"):
            as_edges(wrong, 3)
    for wrong in ([0, 1], [[0, 1, 2]], np.zeros((3, 2)), np.zeros((2, 2, 1))):
        with pytest.raises(InputError, match=r"matrix \[2, edges\]"):
            as_edges(wrong, 3)
    for strange in ([[True], [False]], [[0.5], [1]], [[np.nan], [1]], [[np.inf], [1]]):
        with pytest.raises(InputError, match="whole numbers"):
            as_edges(strange, 3)
    assert as_edges([[0.0], [1.0]], 3).dtype == np.int64
    assert as_edges(np.zeros((2, 0)), 0).shape == (2, 0)


def test_labels_as_a_list_or_one_column() -> None:
    found = as_labels([[3], [1]])
    assert found is not None
    assert found.tolist() == [3, 1]
    two = as_labels([[3, 1], [1, 0]])
    assert two is not None
    assert two.shape == (2, 2)
    assert as_labels(None) is None
    with pytest.raises(InputError, match="labels must be whole numbers"):
        as_labels([0.5])


def test_tensors_of_whole_numbers_or_booleans() -> None:
    assert as_tensor([1, 2], "x").dtype == torch.int64
    assert as_tensor(np.array([1, 2], dtype=np.uint8), "x").dtype == torch.int64
    assert as_tensor([True], "x").dtype == torch.bool
    given = torch.tensor([1], dtype=torch.int32)
    assert as_tensor(given, "x") is given


def test_features_that_may_not_be_written_to_are_copied() -> None:
    array = np.ones((2, 2), dtype=np.float32)
    shared = as_features(array)
    assert isinstance(shared, torch.Tensor)
    assert shared.data_ptr() == array.ctypes.data
    array.flags.writeable = False
    copied = as_features(array)
    assert isinstance(copied, torch.Tensor)
    assert copied.data_ptr() != array.ctypes.data
    for wrong in (np.ones(3), np.ones((3, 0)), sp.csr_matrix((3, 0)), np.ones((2, 2, 2))):
        with pytest.raises(InputError, match=r"matrix \[nodes, width\]"):
            as_features(wrong)


# graphs ----------------------------------------------------------------------------------


def test_labels_of_a_graph_begin_with_minus_one() -> None:
    graph = Graph.from_arrays(np.eye(3), [], [-1, 0, 4])
    assert repr(graph) == "Graph(3 nodes, 0 edges, 3 features dense, 2 classes)"
    with pytest.raises(InputError, match="label -2 is negative"):
        Graph.from_arrays(np.eye(3), [], [-2, 0, 4])
    assert Graph.from_arrays(np.ones((0, 2)), [], np.zeros(0, np.int64)).num_nodes == 0


def test_masks_have_a_row_per_node() -> None:
    graph = Graph.from_arrays(np.eye(3), [])
    assert graph.with_masks(train=np.ones((3, 2), np.bool_)).masks["train"].shape == (3, 2)
    for wrong in ([True, False], True, [1, 0, 1], np.ones((2, 3), np.bool_)):
        with pytest.raises(InputError, match="the val mask must be 3 booleans"):
            graph.with_masks(val=wrong)


def test_a_subgraph_may_name_a_node_twice() -> None:
    graph = Graph.from_arrays(np.eye(3), [[0, 1, 2], [1, 2, 0]], [0, 1, 2])
    dense = graph.adjacency.to_dense()
    for nodes in ([0, 1, 1], [1, 1], [2, 0], [0, 2], [1]):
        found = graph.subgraph(nodes)
        assert found.adjacency.to_dense().tolist() == dense[nodes][:, nodes].tolist()
        assert found.labelled().tolist() == nodes
        assert torch.as_tensor(found.features).tolist() == np.eye(3)[nodes].tolist()


def test_a_union_is_symmetric_if_both_are() -> None:
    one = Graph.from_arrays(np.eye(2), [[0, 1], [1, 0]], [0, 1])
    other = Graph.from_arrays(np.eye(2), [[0], [1]])
    assert disjoint_union(one, one).adjacency.symmetric
    for first, second in ((one, other), (other, one)):
        both = disjoint_union(first, second)
        assert not both.adjacency.symmetric
        expected = [0, 1, -1, -1] if first is one else [-1, -1, 0, 1]
        assert both.labelled().tolist() == expected
    assert disjoint_union(other, other).labels is None
    with pytest.raises(InputError, match="cannot unite graphs of 2 and 3 features"):
        disjoint_union(one, Graph.from_arrays(np.eye(3), []))


def test_where_features_are_not_finite() -> None:
    x = np.zeros((3, 4), dtype=np.float32)
    x[2, 1] = np.nan
    for features in (x, sp.csr_matrix(x)):
        with pytest.raises(InputError, match="first at node 2, column 1"):
            Graph.from_arrays(features, [])
    for weight in (np.nan, np.inf):
        with pytest.raises(InputError, match="edge weights contain NaN"):
            Graph.from_scipy(np.eye(2), np.array([[0, weight], [0, 0]]))
    assert Graph.from_scipy(np.eye(2), np.array([[0, 3e38], [3e38, 0]])).num_edges == 2


def test_without_labels_there_is_a_sentence() -> None:
    with pytest.raises(InputError, match="this graph has no labels"):
        Graph.from_arrays(np.eye(2), []).labelled()
