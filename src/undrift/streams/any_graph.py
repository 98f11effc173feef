"""`as_graph` and `as_batch`: a graph of another library as one of ours, without importing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

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
_MISSING = ("NAType", "NaTType")  # of pandas: a cell with nothing in it


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
        if len(x) == 2 and all(map(_is_table, x)):
            return _from_tables(*x)
        if len(x) in (2, 3) and not any(map(_is_table, x)):
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
    if not graph.masks:
        return graph
    labels, masks = graph.labelled(), own_masks(graph)
    known = labels >= 0
    val, test = (masks.get(name, torch.zeros_like(known)) & known for name in ("val", "test"))
    train = masks.get("train", known & ~val & ~test) & known
    val = val & torch.isin(labels, labels[train])
    hidden = labels.masked_fill(~(train | val), -1)
    return Task(graph.with_labels(hidden), train, val, test)


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


def _is_table(x: Any) -> bool:
    # a lazy frame is asked first if it is one: it would warn if asked for its columns
    named = any(hasattr(x, name) for name in ("collect", "column_names", "columns"))
    return isinstance(x, Mapping) or (named and hasattr(x, "__getitem__"))


def _from_tables(nodes: Any, edges: Any) -> Graph:
    from undrift.datasets.columns import as_class_ids, as_text

    table, links = _columns(nodes), _columns(edges)
    if "id" not in table:
        raise InputError(
            f"the table of nodes has no column 'id', only {', '.join(table)}; rename the column "
            "that names the nodes, as in nodes.rename(columns={...: 'id'})"
        )
    ends = ["source", "target"] if {"source", "target"} <= set(links) else list(links)
    if len(ends) != 2:
        raise InputError(
            f"the table of edges has the columns {', '.join(links)}; name two of them 'source' and "
            "'target', or leave out the others"
        )
    ids = [as_text(cell) for cell in table.pop("id")]
    index = {name: row for row, name in enumerate(ids)}
    if len(index) < len(ids) or "" in index:
        raise InputError("column 'id' of the nodes must hold a different name in every row")
    pairs = []
    for end in ends:
        names = [as_text(cell) for cell in links[end]]
        strange = next((name for name in names if name not in index), None)
        if strange is not None:
            raise InputError(
                f"column {end!r} of the edges names node {strange!r}, which is not in the table of "
                "nodes; add the node or drop the edge"
            )
        pairs.append([index[name] for name in names])
    labels = None
    if "label" in table:
        found = [as_text(cell) for cell in table.pop("label")]
        labels, _ = as_class_ids(found, "column 'label' of the nodes")
    if not table:
        raise InputError("the nodes have no feature column beside id and label; give at least one")
    features = np.column_stack([_numbers(name, cells) for name, cells in table.items()])
    return Graph.from_arrays(features, np.array(pairs, np.int64), labels, undirected=True)


def _columns(table: Any) -> dict[str, list[Any]]:
    """The cells of every column, as Python values."""
    if hasattr(table, "collect"):  # a lazy frame of Polars
        table = table.collect()
    names = table if isinstance(table, Mapping) else getattr(table, "column_names", None)
    found = {}
    for name in table.columns if names is None else names:
        cells = table[name]
        # NumPy and pandas, Polars, PyArrow
        ways = (getattr(cells, way, None) for way in ("tolist", "to_list", "to_pylist"))
        way = next((way for way in ways if way is not None), None)
        values = cells if way is None else way()
        found[str(name)] = [None if type(v).__name__ in _MISSING else v for v in values]
    return found


def _numbers(name: str, cells: list[Any]) -> Array:
    try:
        array: Array = np.array(cells, np.float64)
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if not np.isfinite(array).all():
        raise InputError(
            f"column {name!r} of the nodes must hold a finite number in every row, or lists of one "
            "length; fill the gaps, turn words into numbers, or leave the column out"
        )
    return array
