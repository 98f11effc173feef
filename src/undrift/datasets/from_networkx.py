"""Graphs from NetworkX: attributes of its nodes as features and label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np
import scipy.sparse as sp

from undrift.datasets.columns import as_class_ids, as_text
from undrift.errors import InputError
from undrift.graphs import Graph

Array = np.ndarray[Any, np.dtype[Any]]


def graph_from_networkx(
    g: Any,
    features: str | Sequence[str] = "x",
    label: str | None = "label",
    *,
    weight: str | None = None,
) -> Graph:
    """The graph of a NetworkX graph, directed or not; node i is the i-th of `list(g)`.

    `features` is the node attribute that holds a vector (or a number), or a list of attributes
    that hold a number each. `label` is the attribute with the class (see `as_class_ids`); a node
    without it is unlabelled, None reads no labels. `weight` is an edge attribute; an edge without
    it has weight 1, and parallel edges add up, which count once without `weight`. Self-loops are
    left out. NetworkX itself is not imported.

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
    matrix = _features(nodes, features)
    labels = None
    if label is not None:
        found = [as_text(attributes.get(label)) for _, attributes in nodes]
        labels, _ = as_class_ids(found, f"node attribute {label!r}")
    index = {node: i for i, (node, _) in enumerate(nodes)}
    weighted = g.edges(data=weight, default=1.0) if weight is not None else None
    listed = [(u, v, 1.0) for u, v in g.edges()] if weighted is None else list(weighted)
    for u, v, value in listed:
        if not _is_vector(value, 0):
            raise InputError(
                f"the edge from {u!r} to {v!r} has {weight}={value!r}; an edge weight must be a "
                "finite number"
            )
    pairs = np.array([(index[u], index[v]) for u, v, _ in listed], np.int64).reshape(-1, 2).T
    if weight is None:
        return Graph.from_arrays(matrix, pairs, labels, undirected=not g.is_directed())
    weights = np.array([value for *_, value in listed], np.float32)
    if not g.is_directed():
        pairs, weights = np.hstack([pairs, pairs[::-1]]), np.tile(weights, 2)
    shape = (len(nodes), len(nodes))
    return Graph.from_scipy(matrix, sp.csr_matrix((weights, pairs[::-1]), shape), labels)


def _features(nodes: Sequence[tuple[Any, Mapping[str, Any]]], features: str | Sequence[str]) -> Any:
    if isinstance(features, str):
        size = np.size(nodes[0][1].get(features, 0.0))
        return _attribute(nodes, features, size).reshape(len(nodes), -1)
    if not features:
        raise InputError("features names no node attribute; name at least one")
    return np.column_stack([_attribute(nodes, name, 0) for name in features])


def _attribute(nodes: Sequence[tuple[Any, Mapping[str, Any]]], name: str, size: int) -> Array:
    """One attribute of all nodes as float32, each a vector of this size, or a number at size 0."""
    missing = [node for node, attributes in nodes if name not in attributes]
    if missing:
        raise InputError(
            f"{len(missing):,} of the {len(nodes):,} nodes have no attribute {name!r}, first "
            f"{missing[0]!r}; set it, or name other attributes in features"
        )
    for node, attributes in nodes:
        if not _is_vector(attributes[name], size):
            shown = shorten(repr(attributes[name]), 60, placeholder="...")
            raise InputError(
                f"attribute {name!r} of node {node!r} is {shown}; a feature "
                "must be a finite number, or a vector of them as long as the first node's"
            )
    return np.array([np.asarray(attributes[name], np.float32) for _, attributes in nodes])


def _is_vector(value: Any, size: int) -> bool:
    """Whether it is a vector of finite numbers of this size; size 0 means a single number."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    if array.ndim > 1 or isinstance(value, str):
        return False
    right = array.ndim == 0 if size == 0 else array.size == size
    return right and bool(np.isfinite(array).all())
