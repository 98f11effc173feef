"""Label-free columns that say how a node sits in the graph, not what it or its neighbours say."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.graphs import Graph

__all__ = ["STRUCTURE", "structural_columns"]

STRUCTURE = 3
"""How many columns there are."""

_SCALE = 0.1  # degrees up to some thousands stay under one


def structural_columns(graph: Graph) -> Tensor:
    """`[nodes, 3]` in float64: logarithms of own, neighbours' mean and neighbours' summed degree.

    Each is `log(1 + value) / 10`; an isolated node has zeros. Degrees count the edges that are
    there: a task's graph lacks those to other tasks, so the columns of one node grow between
    learning and testing. Cost: one product with the adjacency.

    >>> path = Graph.from_arrays(torch.eye(3), [[0, 1], [1, 2]], undirected=True)
    >>> structural_columns(path).mul(10).exp().sub(1).round().tolist()
    [[1.0, 2.0, 2.0], [2.0, 1.0, 2.0], [1.0, 2.0, 2.0]]
    """
    edges = graph.adjacency
    degree = edges.indptr.diff().double()
    receivers = torch.repeat_interleave(
        torch.arange(graph.num_nodes, device=graph.device), edges.indptr.diff().long()
    )
    around = torch.zeros_like(degree).index_add(0, receivers, degree[edges.indices.long()])
    columns = torch.stack([degree, around / degree.clamp(min=1), around], dim=1)
    return _SCALE * columns.log1p()
