"""The topology gradient against autograd on a dense attention matrix."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.randomness import generator_for
from undrift.learners.parts.topology import _blocks, topology_gradient
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def encoder_for(graph: Graph, **params: Any) -> Encoder:
    drawn = Backbone(hidden=(5, 4), **params).encoder_for(graph, generator_for(0, 0))
    return Encoder(drawn.architecture, tuple(w.double() for w in drawn.weights))


def dense(encoder: Encoder, graph: Graph, *, self_loops: bool = True, first: int = 0) -> Tensor:
    """d ||e||_2 / d W_0 with a full matrix of scores, a row per receiver."""
    x = graph.features.to_dense() if isinstance(graph.features, Csr) else graph.features
    weight = encoder.weights[0].clone().requires_grad_()
    h = x.double() @ weight[first:]
    scores = torch.nn.functional.leaky_relu(torch.tanh(h) @ h.T, 0.01)
    edges = graph.adjacency.to_dense() > 0
    if self_loops:
        edges = edges | torch.eye(graph.num_nodes, dtype=torch.bool)
    attention = torch.softmax(scores.masked_fill(~edges, -torch.inf), dim=1)
    (gradient,) = torch.autograd.grad(torch.linalg.vector_norm(attention), weight)
    return gradient


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("edges_at_once", [1, 17, 10**6])
def test_it_is_autograd_on_a_dense_attention_matrix(sparse: bool, edges_at_once: int) -> None:
    graph = tiny_graph(sparse=sparse)
    encoder = encoder_for(graph)
    fast = topology_gradient(encoder, graph, edges_at_once)
    slow = dense(encoder, graph)
    assert float(slow.norm()) > 1e-3
    assert float((fast - slow).norm() / slow.norm()) < 1e-10


def test_direction_counts_in_a_directed_graph() -> None:
    one_way = Graph.from_arrays(tiny_graph().features, [[0, 1, 2, 5], [1, 2, 0, 2]])
    other_way = Graph.from_arrays(tiny_graph().features, [[1, 2, 0, 2], [0, 1, 2, 5]])
    encoder = encoder_for(one_way)
    fast, slow = topology_gradient(encoder, one_way), dense(encoder, one_way)
    assert float((fast - slow).norm() / slow.norm()) < 1e-10
    assert not torch.allclose(fast, topology_gradient(encoder, other_way), rtol=1e-2)


def test_sage_scores_what_goes_along_the_edges() -> None:
    graph = tiny_graph()
    encoder = encoder_for(graph, encoder="sage")
    fast = topology_gradient(encoder, graph)
    width = graph.num_features
    slow = dense(encoder, graph, self_loops=False, first=width)
    assert float((fast - slow).norm() / slow.norm()) < 1e-10
    assert float(fast[:width].abs().max()) == 0


def test_no_edges_no_topology() -> None:
    graph = Graph.from_arrays(tiny_graph().features, [[], []])
    for kind in ("gcn", "sage"):
        gradient = topology_gradient(encoder_for(graph, encoder=kind), graph)
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_blocks_cover_every_row_once_within_the_budget() -> None:
    indptr = torch.tensor([0, 2, 2, 9, 10, 12, 12], dtype=torch.int32)
    for budget in (1, 3, 5, 100):
        blocks = _blocks(indptr, budget)
        rows = [row for start, stop in blocks for row in range(start, stop)]
        assert rows == list(range(6))
        for start, stop in blocks:
            assert stop == start + 1 or int(indptr[stop] - indptr[start]) <= budget
    assert len(_blocks(indptr, 100)) == 1
