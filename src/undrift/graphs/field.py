"""What the outputs of some nodes depend on, cut out of a graph that may be much larger."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.graphs.graph import Graph

_MOST = 4  # a field of more than one in so many of the nodes or edges saves nothing


@dataclass(frozen=True, eq=False)
class Field:
    """The receptive field of some nodes: a graph in which they see what they see in the whole.

    `nodes` are its nodes in the whole graph, rising, so that sums over neighbours keep their
    order; `at` are the places of the nodes asked for. Edges weigh what they weigh in the whole
    graph (`Graph.part`), so K hops from a node asked for are exact where K hops were taken in.
    Further out they are not: no more than K may be made of it.
    """

    graph: Graph
    nodes: Tensor
    at: Tensor

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, hops: int | Tensor) -> Field | None:
        """All within so many hops of these nodes (indices), or a number of hops for each.

        None where that is much of the graph, or the graph has no node. Cost: the edges into the
        field; nothing is done for every node or edge of the graph.

        >>> path = Graph.from_arrays(torch.eye(9), [[*range(8)], [*range(1, 9)]])
        >>> found = Field.of(path, torch.tensor([7]), hops=1)
        >>> found.nodes.tolist(), found.at.tolist()
        ([6, 7], [1])
        """
        there = nodes.to(graph.device)
        inside = _within(graph, there, torch.as_tensor(hops, device=graph.device))
        if inside is None:
            return None
        return cls(graph.part(inside), inside, torch.searchsorted(inside, there))


def _within(graph: Graph, nodes: Tensor, hops: Tensor) -> Tensor | None:
    """From the nodes that look furthest to those that look at themselves alone."""
    if not graph.num_nodes:
        return None
    if not nodes.numel():
        nodes, hops = nodes.new_zeros(1), torch.zeros_like(nodes.new_zeros(1))
    hops = hops.expand(nodes.shape)
    inside = frontier = nodes.new_empty(0)
    edges = 0
    for left in range(int(hops.max()), -1, -1):
        edges += graph.adjacency.entries_in(frontier)
        if edges * _MOST > graph.num_edges:
            return None
        reached = graph.adjacency.columns_of(frontier)
        grown = torch.unique(torch.cat([inside, reached, nodes[hops == left]]))
        if grown.numel() * _MOST > graph.num_nodes:
            return None
        frontier, inside = grown[~torch.isin(grown, inside, assume_unique=True)], grown
    return inside
