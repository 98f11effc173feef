"""The receptive field: compute some nodes of a graph exactly, without computing the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.graphs.graph import Graph
from undrift.sparse import Csr, row_index

_MOST = 4  # a field of more than one in so many of the nodes or edges saves nothing


@dataclass(frozen=True, eq=False)
class ReceptiveField:
    """A part of a graph in which some nodes see what they see in the whole graph.

    `nodes` are its nodes in the whole graph, in rising order, so that sums over neighbours keep
    their order. `at` are the places of the nodes asked for. Edges have the weights of the whole
    graph (`Graph.part`). K hops from a node asked for are exact where K hops were taken in, and
    no more than K may be computed.

    >>> path = Graph.from_arrays(torch.eye(9), [[*range(8)], [*range(1, 9)]])
    >>> found = ReceptiveField.of(path, torch.tensor([7]), hops=1)
    >>> found.graph, found.nodes.tolist(), found.at.tolist()
    (Graph(2 nodes, 1 edges, 9 features dense, no labels), [6, 7], [1])
    """

    graph: Graph
    nodes: Tensor
    at: Tensor

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, hops: int | Tensor) -> ReceptiveField | None:
        """All within so many hops of these nodes (indices), or a number of hops for each.

        None where that is much of the graph, or the graph has no node. Cost: the edges into the
        field; nothing is done for every node or edge of the graph.
        """
        if not graph.num_nodes:
            return None
        there = nodes.to(graph.device)
        far = torch.as_tensor(hops, device=graph.device).expand(there.shape)
        asked = there
        if not there.numel():  # the first node alone
            asked = far = there.new_zeros(1)
        inside = frontier = there.new_empty(0)
        edges = 0
        for left in range(int(far.max()), -1, -1):  # from the nodes with the most hops
            edges += graph.adjacency.entries_in(frontier)
            if edges * _MOST > graph.num_edges:
                return None
            reached = graph.adjacency.columns_of(frontier)
            grown = torch.unique(torch.cat([inside, reached, asked[far == left]]))
            if grown.numel() * _MOST > graph.num_nodes:
                return None
            frontier, inside = grown[~torch.isin(grown, inside, assume_unique=True)], grown
        return cls(graph.part(inside), inside, torch.searchsorted(inside, there))


@dataclass(frozen=True, eq=False)
class Hop:
    """One step of message passing, from source nodes to target nodes.

    `own`: each target's place among the sources; None: they are the same nodes.

    >>> path = Graph.from_arrays(torch.eye(3), [[0, 1], [1, 2]])
    >>> last = torch.tensor([2])
    >>> hop = Hop(path.operator("sum")[last], own=last)
    >>> h = torch.tensor([[1.0], [2.0], [4.0]])
    >>> (hop.operator @ h).tolist(), hop.targets(h).tolist()
    ([[6.0]], [[4.0]])
    """

    operator: Csr
    own: Tensor | None = None

    def targets(self, h: Tensor) -> Tensor:
        """The rows of `h` that belong to the targets."""
        return h if self.own is None else h[self.own]


def receptive_field(operators: Sequence[Csr], nodes: Tensor) -> tuple[tuple[Hop, ...], Tensor]:
    """The hops that compute `nodes` (indices or a mask) exactly, and the input nodes, sorted.

    The last hop's rows are `nodes` as given. Weights are those of the full operator, so forward
    and gradient equal the full-batch ones. Cost: the entries of the rows visited.

    >>> path = Graph.from_arrays(torch.eye(5), [[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> hops, inputs = receptive_field([path.operator()] * 2, torch.tensor([3]))
    >>> inputs.tolist(), [tuple(hop.operator.shape) for hop in hops]
    ([1, 2, 3], [(2, 3), (1, 2)])
    """
    if operators:
        nodes = row_index(nodes.to(operators[-1].device), operators[-1].shape[0], "node")
    hops, places = narrowed([Hop(operator) for operator in operators], nodes)
    return hops, places[0]


def narrowed(hops: Sequence[Hop], targets: Tensor) -> tuple[tuple[Hop, ...], tuple[Tensor, ...]]:
    """The hops that lead to some of the targets, and the places of the rows that remain.

    >>> path = Graph.from_arrays(torch.eye(5), [[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> _, places = narrowed([Hop(path.operator())] * 2, torch.tensor([4]))
    >>> [place.tolist() for place in places]
    [[2, 3, 4], [3, 4], [4]]
    """
    made: list[Hop] = []
    places = [targets]
    for hop in reversed(hops):
        rows = hop.operator[targets]
        own = targets if hop.own is None else hop.own[targets]
        targets = torch.unique(torch.cat([rows.indices.long(), own]))
        made.append(Hop(rows.over(targets), torch.searchsorted(targets, own)))
        places.append(targets)
    return tuple(reversed(made)), tuple(reversed(places))
