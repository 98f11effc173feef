"""Structural columns: degrees by a loop over nodes, and nothing but edges in them."""

from __future__ import annotations

import math

import torch

from undrift.graphs import Graph
from undrift.learners.parts.propagation.feature_map import STRUCTURE, structural_columns
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
