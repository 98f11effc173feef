"""Some nodes of a graph, as users name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.graphs.names import as_nodes

Nodes = Sequence[int] | Sequence[str] | Sequence[bool] | np.ndarray[Any, Any] | Tensor
"""Some nodes of a graph: numbers, ids (`Graph.names`) or a mask; docs/your-own-graph.md has all."""

Ids = Sequence[int] | Sequence[str] | np.ndarray[Any, Any]
"""An id per node of a graph, none twice."""


def every_node(graph: Graph) -> Tensor:
    """The numbers of all nodes of a graph."""
    return torch.arange(graph.num_nodes, device=graph.device)


def node_index(nodes: Nodes | None, graph: Graph) -> Tensor:
    """The numbers of some nodes of a graph; None is all."""
    if nodes is None:
        return every_node(graph)
    return as_nodes(nodes, graph.names.nodes, graph.num_nodes, by_id=False)


def places_in_other(
    nodes: Sequence[int], ids: tuple[Ids, Ids] | None, graph: Graph
) -> tuple[int, ...]:
    """Where some nodes of one batch stand in another, of this graph, as far as they do."""
    if not nodes or ids is None:
        return tuple(node for node in nodes if node < graph.num_nodes)
    place = {str(name): i for i, name in enumerate(ids[1])}
    names = [str(ids[0][node]) for node in nodes]
    return tuple(place[name] for name in names if name in place)
