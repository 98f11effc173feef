"""Structural columns: degrees by a loop over nodes, and nothing but edges in them."""

from __future__ import annotations

import math

import pytest
import torch

from undrift.graphs import Graph
from undrift.learners.parts.propagation.feature_map import (
    STRUCTURE,
    FeatureMap,
    structural_columns,
)
from undrift.learners.parts.propagation.propagated import Propagated
from undrift.testing.graphs import tiny_graph


def test_columns_equal_a_loop_over_nodes() -> None:
    graph = tiny_graph()
    linked = [row.nonzero().flatten().tolist() for row in graph.adjacency.to_dense()]
    for row, mine in zip(structural_columns(graph).tolist(), linked, strict=True):
        around = sum(len(linked[j]) for j in mine)
        values = (len(mine), around / len(mine) if mine else 0, around)
        assert len(row) == STRUCTURE
        for ours, value in zip(row, values, strict=True):
            assert math.isclose(ours, math.log1p(value) / 10, abs_tol=1e-12)


def test_isolated_nodes_have_zeros_and_features_play_no_part() -> None:
    graph = Graph.from_arrays(torch.eye(3), [[0], [1]], undirected=True)
    assert not structural_columns(graph)[2].any()
    other = Graph(torch.zeros(3, 5), graph.adjacency)
    assert torch.equal(structural_columns(graph), structural_columns(other))


@pytest.mark.parametrize("fourier", [0, 8])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_ranking_tells_apart_what_float32_cannot(sparse: bool, fourier: int) -> None:
    graph = tiny_graph(sparse=sparse)
    features = FeatureMap(Propagated("mean", 2), fourier=fourier)
    nodes = torch.arange(60)
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(features.width(12), 1, dtype=torch.float64, generator=generator)
    move = torch.randn(features.width(12), 3, dtype=torch.float64, generator=generator)
    weights = first + 1e-9 * move  # of float32's precision, three equal columns
    exact = features.spread(graph, weights, nodes).argmax(dim=1)
    rough = features.spread(graph, weights.float(), nodes).argmax(dim=1)
    assert exact.unique().numel() == 3
    assert not torch.equal(rough, exact)
    assert torch.equal(features.ranking(graph, weights, nodes).argmax(dim=1), exact)
    apart = features.ranking(graph, move, nodes)
    torch.testing.assert_close(apart, features.spread(graph, move, nodes), rtol=0, atol=1e-4)
