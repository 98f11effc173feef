"""Graphs from NetworkX: attributes of its nodes as features and label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np
import scipy.sparse as sp

from undrift.datasets.archives import Array
from undrift.datasets.columns import as_class_ids, as_text
from undrift.errors import InputError
from undrift.graphs import Graph


def graph_from_networkx(
    g: Any,
    features: str | Sequence[str] = "x",
    label: str | None = "label",
    *,
    weight: str | None = None,
) -> Graph:
    """The graph of a NetworkX graph, directed or not; node i is the i-th of `list(g)`.

    `features` is the node attribute that holds a vector or a number, or a list of such attributes.
    `label` is the attribute with the class (see `as_class_ids`); a node without it is unlabelled.
    `weight` is an edge attribute; an edge without it has weight 1, and parallel edges add up, which
    count once without `weight`. Self-loops are left out.

    >>> import networkx as nx
    >>> g = nx.Graph([("a", "b")])
    >>> g.add_nodes_from([("a", {"x": [0, 1], "label": "red"}), ("b", {"x": [1, 0]})])
    >>> graph_from_networkx(g)
    Graph(2 nodes, 2 edges, 2 features dense, 1 classes)
    """
    if not all(hasattr(g, name) for name in ("nodes", "edges", "is_directed")):
        raise InputError(f"graph_from_networkx needs a NetworkX graph, not a {type(g).__name__}")
    nodes: list[tuple[Any, Mapping[str, Any]]] = list(g.nodes(data=True))
    if not nodes:
        raise InputError("the NetworkX graph has no nodes; add some with features")
    names = [features] if isinstance(features, str) else features
    if not names:
        raise InputError("features names no node attribute; name at least one")
    matrix = np.hstack([_attribute(nodes, name) for name in names])
    labels = None
    if label is not None:
        found = [as_text(attributes.get(label)) for _, attributes in nodes]
        labels, _ = as_class_ids(found, f"node attribute {label!r}")
    index = {node: i for i, (node, _) in enumerate(nodes)}
    if weight is None:
        pairs = [(index[u], index[v]) for u, v in g.edges()]
        edges = np.array(pairs, np.int64).reshape(-1, 2).T
        return Graph.from_arrays(matrix, edges, labels, undirected=not g.is_directed())
    listed = list(g.edges(data=weight, default=1.0))
    for u, v, value in listed:
        if not _is_vector(value, 1):
            what = f"the edge from {u!r} to {v!r} has {weight}={value!r}"
            raise InputError(f"{what}; an edge weight must be a finite number")
    if not g.is_directed():
        listed += [(v, u, value) for u, v, value in listed]
    weights = np.array([np.float32(value) for *_, value in listed], np.float32)
    ends = [[index[v] for _, v, _ in listed], [index[u] for u, _, _ in listed]]
    links = sp.csr_matrix((weights, ends), (len(nodes), len(nodes)))
    return Graph.from_scipy(matrix, links, labels)


def _attribute(nodes: Sequence[tuple[Any, Mapping[str, Any]]], name: str) -> Array:
    """One attribute of all nodes as a float32 matrix, each a vector as long as the first."""
    missing = [node for node, attributes in nodes if name not in attributes]
    if missing:
        what = f"{len(missing):,} of the {len(nodes):,} nodes have no attribute {name!r}"
        raise InputError(f"{what}, first {missing[0]!r}; set it, or name others in features")
    size = np.size(nodes[0][1][name])
    for node, attributes in nodes:
        if not _is_vector(attributes[name], size):
            shown = shorten(repr(attributes[name]), 60, placeholder="...")
            way = "must be a finite number, or a vector of them as long as the first node's"
            raise InputError(f"attribute {name!r} of node {node!r} is {shown}; a feature {way}")
    return np.array([np.ravel(attributes[name]).astype(np.float32) for _, attributes in nodes])


def _is_vector(value: Any, size: int) -> bool:
    """Whether it is a number, or a vector of numbers, of this size and finite."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    right = array.ndim <= 1 and array.size == size and not isinstance(value, str)
    return right and bool(np.isfinite(array).all())
