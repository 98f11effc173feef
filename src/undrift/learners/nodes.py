"""Some nodes of a graph, as users name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.sparse import row_index

Nodes = Sequence[int] | Sequence[bool] | np.ndarray[Any, Any] | Tensor
"""Some nodes of a graph: their numbers, or a mask."""

Ids = Sequence[int] | Sequence[str] | np.ndarray[Any, Any]
"""An id per node of a graph, none twice."""


def node_index(nodes: Nodes | None, graph: Graph) -> Tensor:
    """The numbers of some nodes of a graph; None is all."""
    if nodes is None:
        return torch.arange(graph.num_nodes, device=graph.device)
    try:
        found = nodes if isinstance(nodes, Tensor) else torch.tensor(nodes)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"nodes must be a list or array of node numbers or a mask, not {nodes!r}"
        ) from error
    if found.dim() == 0:
        raise InputError(f"nodes must be a list of node numbers, not {nodes!r}; write [{nodes}]")
    return row_index(found, graph.num_nodes, "node")


def places_in_other(
    nodes: Sequence[int], ids: tuple[Ids, Ids] | None, graph: Graph
) -> tuple[int, ...]:
    """Where some nodes of one batch stand in another, of this graph, as far as they do."""
    if not nodes or ids is None:
        return tuple(node for node in nodes if node < graph.num_nodes)
    place = {str(name): i for i, name in enumerate(ids[1])}
    names = [str(ids[0][node]) for node in nodes]
    return tuple(place[name] for name in names if name in place)
