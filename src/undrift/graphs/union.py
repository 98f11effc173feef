"""Two graphs as one."""

from __future__ import annotations

import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs.graph import UNLABELLED, Graph
from undrift.sparse import Csr, stacked


def disjoint_union(first: Graph, second: Graph) -> Graph:
    """Both graphs side by side, without an edge between them; nodes of the first come first.

    Features are sparse if one side's are. A side without labels counts as unlabelled (-1);
    without any there are none. The union is on the device of the first.
    """
    if first.num_features != second.num_features:
        raise InputError(
            f"cannot unite graphs of {first.num_features} and {second.num_features} features; "
            "give both the same columns"
        )
    second = second.to(first.device)
    blocks = [graph.adjacency.to_scipy() for graph in (first, second)]
    adjacency = Csr.from_scipy(
        sp.block_diag(blocks, format="csr"),
        dtype=first.adjacency.dtype,
        symmetric=first.adjacency.symmetric and second.adjacency.symmetric,
    )
    features = stacked([first.features, second.features])
    known = None
    if first.labels is not None or second.labels is not None:
        known = torch.cat([_labels(graph) for graph in (first, second)])
    return Graph(features, adjacency.to(first.device), known)


def _labels(graph: Graph) -> Tensor:
    unknown = torch.full((graph.num_nodes,), UNLABELLED, device=graph.device)
    return unknown if graph.labels is None else graph.labels
