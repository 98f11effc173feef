"""Some nodes of a graph, as users name them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.graphs.names import check_one_split, listed_nodes, numbers_or_ids
from undrift.sparse import row_index

Nodes = Sequence[int] | Sequence[str] | Sequence[bool] | np.ndarray[Any, Any] | Tensor
"""Some nodes of a graph: ids if it has some (`Graph.names`), else numbers; or a mask."""

Ids = Sequence[int] | Sequence[str] | np.ndarray[Any, Any]
"""An id per node of a graph, none twice."""


def node_index(nodes: Nodes | None, graph: Graph) -> Tensor:
    """The numbers of some nodes of a graph; None is all."""
    if nodes is None:
        return torch.arange(graph.num_nodes, device=graph.device)
    if isinstance(nodes, Set):
        raise InputError(f"nodes must be in an order, not {nodes!r}; write sorted(nodes)")
    check_one_split(nodes)
    if (ids := graph.names.nodes) is not None:
        nodes = numbers_or_ids(listed_nodes(nodes), ids)
    array = isinstance(nodes, Tensor | np.ndarray) and nodes.ndim == 1
    given: Any = nodes if array else listed_nodes(nodes)
    try:
        found = given if isinstance(given, Tensor) else torch.tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        must = "node numbers or a mask, as these nodes have no ids"
        raise InputError(f"nodes must be a list or array of {must}, not {nodes!r}") from error
    return row_index(found, graph.num_nodes, "node")


def placed(graph: Graph, nodes: Nodes | None) -> tuple[Graph, Tensor | None]:
    """The graph as nodes go by their number in it, and the numbers of these."""
    return graph.numbered(), None if nodes is None else node_index(nodes, graph)


def places_in_other(
    nodes: Sequence[int], ids: tuple[Ids, Ids] | None, graph: Graph
) -> tuple[int, ...]:
    """Where some nodes of one batch stand in another, of this graph, as far as they do."""
    if not nodes or ids is None:
        return tuple(node for node in nodes if node < graph.num_nodes)
    place = {str(name): i for i, name in enumerate(ids[1])}
    names = [str(ids[0][node]) for node in nodes]
    return tuple(place[name] for name in names if name in place)
