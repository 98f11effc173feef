"""`as_graph` and `as_batch`: a graph of another library as one of ours, without importing it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.datasets.columns import Table, is_table
from undrift.datasets.tables import read_tables
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.streams.split import own_masks
from undrift.streams.task import Task

Array = np.ndarray[Any, np.dtype[Any]]
_TAKEN = (
    "give an undrift Graph or Task, a PyG Data, a NetworkX graph, a tuple (features, edge_index), "
    "a tuple (SciPy adjacency, features), either with labels as a third part, or a pair of tables "
    "(nodes, edges)"
)
_OTHER_PYG = {
    "HeteroData": "make one graph of it with data.to_homogeneous()",
    "Batch": "give one graph at a time, as in batch[0] or batch.to_data_list()",
    "TemporalData": "make a Data with x and edge_index of it",
}


def as_graph(x: Any) -> Graph:
    """A graph from anything that holds one; an undrift `Graph` as it is, a `Task`'s graph.

    - A PyG `Data`: `x`, `edge_index` or `adj_t`, and if there are any `y`, `edge_weight` and masks
      (see `Graph.from_pyg`).
    - A NetworkX graph: the node attribute `x`, and `label` or `y` if there is one
      (`graph_from_networkx` reads other attributes).
    - `(features, edge_index)` or `(features, edge_index, labels)`: edges keep their direction.
    - `(adjacency, features)` or `(adjacency, features, labels)`: SciPy, a row per receiver.
    - `(nodes, edges)`: two tables of pandas, Polars or PyArrow, or dicts of columns. Nodes have a
      column `id`, perhaps `label`, and features in all others. Edges have `source` and `target`,
      or two columns of any name, and count in both directions.

    >>> as_graph((np.eye(3), [[0, 1], [1, 2]], [0, 1, 1]))
    Graph(3 nodes, 2 edges, 3 features dense, 2 classes)
    >>> as_graph(({"id": ["a", "b"], "age": [30, 40]}, {"source": ["a"], "target": ["b"]}))
    Graph(2 nodes, 2 edges, 1 features dense, no labels)
    """
    if isinstance(x, Graph | Task):
        return x if isinstance(x, Graph) else x.graph
    for kind in type(x).__mro__:
        if kind.__name__ in _OTHER_PYG and kind.__module__.startswith("torch_geometric"):
            raise InputError(f"a PyG {kind.__name__} is not one graph; {_OTHER_PYG[kind.__name__]}")
    if hasattr(x, "x") and (hasattr(x, "edge_index") or hasattr(x, "adj_t")):
        return Graph.from_pyg(x)
    if all(hasattr(x, name) for name in ("nodes", "edges", "is_directed")):
        from undrift.datasets.from_networkx import graph_from_networkx

        there = {name for _, attributes in x.nodes(data=True) for name in attributes}
        return graph_from_networkx(x, label=next((n for n in ("label", "y") if n in there), None))
    kind_of_x = f"{type(x).__module__}.{type(x).__qualname__}"
    if isinstance(x, tuple | list):
        if len(x) == 2 and all(map(is_table, x)):
            return _from_tables(*x)
        if len(x) in (2, 3) and not any(map(is_table, x)):
            return _from_arrays(*x)
        parts = ", ".join(type(part).__name__ for part in x)
        kind_of_x = f"a {type(x).__name__} of {len(x)} ({parts})"
    raise InputError(f"cannot read a graph from {kind_of_x}; {_TAKEN}")


def as_batch(x: Any) -> Graph | Task:
    """What a learner learns from anything that `as_graph` takes.

    A `Task` is returned as it is, and so is a graph without masks: all its labelled nodes count.
    A graph with masks becomes a task. Its training nodes are those of `train_mask`; without one,
    all labelled nodes outside `val_mask` and `test_mask`. Validation nodes are those of `val_mask`
    whose class has a training node. All other labels are hidden.

    >>> graph = as_graph((np.eye(3), [[0], [1]], [4, 2, 7]))
    >>> as_batch(graph.with_masks(train=[True, True, False])).labels.tolist()
    [4, 2, -1]
    """
    if isinstance(x, Task):
        return x
    graph = as_graph(x)
    _check_numbered(x)
    if not graph.masks:
        return graph
    labels, masks = graph.labelled(), own_masks(graph)
    known = labels >= 0
    val, test = (masks.get(name, torch.zeros_like(known)) & known for name in ("val", "test"))
    train = masks.get("train", known & ~val & ~test) & known
    val = val & torch.isin(labels, labels[train])
    hidden = labels.masked_fill(~(train | val), -1)
    return Task(graph.with_labels(hidden), train, val, test)


def _check_numbered(x: Any) -> None:
    """Refuse classes by name: each batch would number them anew."""
    labels: Iterable[Any] = ()
    if isinstance(x, tuple | list) and len(x) == 2 and is_table(x[0]):
        labels = Table(x[0], "the table of nodes").get("label", ())
    elif hasattr(x, "is_directed") and callable(getattr(x, "nodes", None)):
        labels = (at.get("label", at.get("y")) for _, at in x.nodes(data=True))
    named = next((c for c in labels if isinstance(c, str) and not _is_whole(c)), None)
    if named is not None:
        raise InputError(
            f"label {named!r} is a name, and a learner in memory knows classes by number; write "
            "whole numbers, or take undrift.LearnerFolder, which knows classes by name"
        )


def _is_whole(text: str) -> bool:
    return not text.strip() or text.strip().removeprefix("-").replace(".0", "").isdigit()


def _from_arrays(first: Any, second: Any, labels: Any = None) -> Graph:
    """Features and edges, or an adjacency and features in either order."""
    if _is_adjacency(second) and not _is_adjacency(first):
        return Graph.from_scipy(first, second, labels)
    if _is_adjacency(first) and not _is_edges(second):
        return Graph.from_scipy(second, first, labels)
    return Graph.from_arrays(first, second, labels)


def _is_adjacency(x: Any) -> bool:
    return bool(sp.issparse(x)) and x.shape[0] == x.shape[1]


def _is_edges(x: Any) -> bool:
    """Whether these are `[2, edges]` whole numbers, or none."""
    if sp.issparse(x):
        return False
    array = np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x)
    return array.size == 0 or (array.shape[0] == 2 and array.dtype.kind in "iu")


def _from_tables(nodes: Any, edges: Any) -> Graph:
    nodes, edges = Table(nodes, "the table of nodes"), Table(edges, "the table of edges")
    if "id" not in nodes:
        raise InputError(
            f"the table of nodes has no column 'id', only {', '.join(nodes)}; rename the column "
            "that names the nodes, as in nodes.rename(columns={...: 'id'})"
        )
    ends = ["source", "target"] if {"source", "target"} <= set(edges) else list(edges)
    if len(ends) != 2:
        raise InputError(
            f"the table of edges has the columns {', '.join(edges)}; name two of them 'source' and "
            "'target', or leave out the others"
        )
    label = "label" if "label" in nodes else None
    return read_tables(nodes, edges, label=label, source=ends[0], target=ends[1]).graph
