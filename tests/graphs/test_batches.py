from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.graphs import random_graph
from tests.harness.references import dense_receptive_field, k_hop_forward
from undrift.graphs import NORMALISATIONS, Graph, Hop, ReceptiveField, normalise, receptive_field
from undrift.graphs.field import narrowed
from undrift.graphs.normalise import Degrees
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def random_adjacency(seed: int, nodes: int, degree: float, *, directed: bool) -> Csr:
    share = degree / nodes
    made = random_graph(seed, nodes, directed=directed, weighted=True, density=share)
    return made.adjacency.double()


def random_weights(seed: int, *widths: int, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(a, b, dtype=torch.float64, generator=generator).to(dtype).requires_grad_()
        for a, b in pairwise(widths)
    ]


def forward(hops: tuple[Hop, ...], h: torch.Tensor, weights) -> torch.Tensor:
    for hop, weight in zip(hops, weights, strict=True):
        h = torch.relu(hop.operator @ (h @ weight))
    return h


def gradients(out: torch.Tensor, weights, seed: int = 0):
    """Of a loss that weighs every output differently."""
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(out.shape, dtype=torch.float64, generator=generator).to(out.dtype)
    return torch.autograd.grad((out * mix).sum(), weights)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(2, 12),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from(NORMALISATIONS),
    st.booleans(),
    st.data(),
)
def test_the_input_nodes_are_those_of_a_breadth_first_search(
    seed, nodes, directed, hops, kind, self_loops, data
):
    adjacency = random_adjacency(seed, nodes, 1.2, directed=directed)
    operator = normalise(adjacency, kind, self_loops=self_loops)
    chosen = data.draw(st.lists(st.integers(0, nodes - 1)))
    steps, inputs = receptive_field([operator] * hops, torch.tensor(chosen, dtype=torch.int64))
    assert inputs.tolist() == sorted(dense_receptive_field(adjacency.to_dense(), chosen, hops))
    assert len(steps) == hops
    assert steps[0].operator.shape[1] == inputs.numel()
    assert steps[-1].operator.shape[0] == len(chosen)
    for before, after in pairwise(steps):
        assert before.operator.shape[0] == after.operator.shape[1]


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_forward_and_gradient_equal_the_dense_full_batch(kind, directed, hops):
    adjacency = random_adjacency(hops, 30, 1.5, directed=directed)
    operator = normalise(adjacency, kind)
    x = torch.randn(30, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    weights = random_weights(2, *[5, 6, 4, 3][: hops + 1])
    chosen = torch.tensor([29, 4, 17, 4, 0])  # an isolated node, no order, a repeat
    steps, inputs = receptive_field([operator] * hops, chosen)
    out = forward(steps, x[inputs], weights)
    twin = k_hop_forward([operator.to_dense()] * hops, x, weights)[chosen]
    torch.testing.assert_close(out, twin, rtol=1e-12, atol=1e-12)
    for got, expected in zip(gradients(out, weights), gradients(twin, weights), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_the_features_reaches_the_input_nodes():
    operator = normalise(random_adjacency(6, 20, 1.0, directed=True))
    weights = random_weights(7, 4, 3, 2)
    chosen = torch.tensor([1, 12])
    x = torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
    x.requires_grad_()
    steps, inputs = receptive_field([operator] * 2, chosen)
    got = gradients(forward(steps, x[inputs], weights), x)[0]
    dense = k_hop_forward([operator.to_dense()] * 2, x, weights)[chosen]
    torch.testing.assert_close(got, gradients(dense, x)[0], rtol=1e-12, atol=1e-12)
    outside = torch.ones(20, dtype=torch.bool)
    outside[inputs] = False
    assert outside.any()
    assert not got[outside].any()


def test_own_picks_the_rows_of_the_targets():
    operator = normalise(random_adjacency(9, 25, 1.5, directed=True), self_loops=False)
    chosen = torch.tensor([7, 24, 3, 7])
    steps, inputs = receptive_field([operator] * 3, chosen)
    nodes = inputs
    for hop in steps:
        assert hop.own is not None
        nodes = hop.targets(nodes[:, None]).flatten()  # carry the node ids through the hops
        assert nodes.numel() == hop.operator.shape[0]
    assert torch.equal(nodes, chosen)
    assert inputs[steps[0].own].numel() == steps[0].operator.shape[0]


def test_where_the_rows_of_narrowed_hops_stood() -> None:
    graph = tiny_graph(nodes=24, classes=2)
    operator = graph.operator("symmetric")
    hops, inputs = receptive_field([operator, operator], torch.arange(24))
    some, stood = narrowed(hops, torch.tensor([3, 5]))
    assert len(stood) == 3
    assert stood[-1].tolist() == [3, 5]
    rows = torch.rand(24, 2)
    whole, part = rows[inputs], rows[inputs][stood[0]]
    for hop, narrow, where in zip(hops, some, stood[1:], strict=True):
        whole, part = hop.operator @ whole, narrow.operator @ part
        torch.testing.assert_close(part, whole[where])


# fields: a part of a graph in which some nodes see what they see in the whole ----------------


def path(nodes: int) -> Graph:
    """0 -> 1 -> 2 and so on."""
    return Graph.from_arrays(np.eye(nodes, 2), [[*range(nodes - 1)], [*range(1, nodes)]])


def test_a_field_is_at_most_a_quarter_of_the_nodes_and_edges() -> None:
    found = ReceptiveField.of(path(8), torch.tensor([5]), 1)  # 2 of 8 nodes, 1 of 7 edges
    assert found.nodes.tolist() == [4, 5]
    assert found.graph.num_edges == 1
    assert ReceptiveField.of(path(7), torch.tensor([5]), 1) is None  # 2 of 7 nodes
    star = Graph.from_arrays(np.ones((40, 1)), [[1, 2, 3, 4], [0, 0, 0, 5]])
    assert ReceptiveField.of(star, torch.tensor([0]), 1) is None  # 3 of 4 edges
    one = ReceptiveField.of(star, torch.tensor([5]), 1)  # 1 of 4
    assert one.nodes.tolist() == [4, 5]


def test_every_node_may_look_as_far_as_it_likes() -> None:
    found = ReceptiveField.of(path(40), torch.tensor([30, 10, 20]), torch.tensor([0, 2, 1]))
    assert found.nodes.tolist() == [8, 9, 10, 19, 20, 30]
    assert found.nodes[found.at].tolist() == [30, 10, 20]


def test_a_field_of_no_nodes_is_small_and_of_a_graph_without_any_is_none() -> None:
    found = ReceptiveField.of(path(8), torch.tensor([], dtype=torch.int64), 3)
    assert (found.nodes.tolist(), found.at.tolist()) == ([0], [])
    empty = Graph.from_arrays(np.ones((0, 2)), [])
    assert ReceptiveField.of(empty, torch.tensor([], dtype=torch.int64), 1) is None


@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_an_edge_weighs_in_a_field_what_it_weighs_in_the_whole(kind) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_arrays(rng.random((60, 3)), rng.integers(0, 60, (2, 70)))
    field = ReceptiveField.of(graph, torch.tensor([7, 3]), 1)
    h = torch.from_numpy(rng.random((60, 2))).float()
    whole = (graph.operator(kind) @ h)[[7, 3]]
    torch.testing.assert_close((field.graph.operator(kind) @ h[field.nodes])[field.at], whole)
    again = Degrees(graph.adjacency).of(torch.tensor([1, 5, 9])).of(torch.tensor([2, 0]))
    torch.testing.assert_close(again.into, Degrees(graph.adjacency).into[[9, 1]])
    torch.testing.assert_close(again.out, Degrees(graph.adjacency).out[[9, 1]])
