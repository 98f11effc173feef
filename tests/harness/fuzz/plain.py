"""Graphs as plain values to compare, and the few steps of reading one by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from undrift.graphs import Graph


def plain_graph(graph: Graph) -> Any:
    """A graph as something to compare."""
    labels = None if graph.labels is None else graph.labels.tolist()
    features = graph.features
    rows = features.to_scipy() if hasattr(features, "to_scipy") else sp.csr_matrix(features.numpy())
    return triples(rows), sorted(set(triples(graph.adjacency.to_scipy())[1])), labels


def triples(matrix: Any) -> tuple[tuple[int, int], list[tuple[int, int, float]]]:
    found = sp.coo_matrix(matrix)
    found.sum_duplicates()
    there = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    # rounded: duplicates may have been added up in another order
    return found.shape, sorted((r, c, float(f"{v:.5g}")) for r, c, v in there if v)


def undirected(links: Any) -> Any:
    links = (links != 0).astype(np.float32)
    links = links.maximum(links.T).tolil()
    links.setdiag(0)
    return links.tocsr()


def plain_parts(parts: Any) -> Any:
    links, features, labels = parts
    return (
        triples(sp.csr_matrix(features.astype(np.float32))),
        sorted(set(triples(links)[1])),
        labels.tolist(),
    )
