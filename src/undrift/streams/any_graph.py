"""`as_graph` and `as_batch`: a graph of another library as one of ours, without importing it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.datasets.columns import Table, as_class_ids, as_text, is_table
from undrift.datasets.from_networkx import graph_from_networkx
from undrift.datasets.tables import TableGraph, read_tables
from undrift.errors import InputError
from undrift.graphs import Graph, GraphSet
from undrift.graphs.inputs import as_labels, as_numbers
from undrift.streams.split import own_masks
from undrift.streams.task import Task

Array = np.ndarray[Any, np.dtype[Any]]
_TAKEN = (
    "give an undrift Graph or Task, a PyG Data, a NetworkX graph, a tuple (features, edge_index), "
    "a tuple (SciPy adjacency, features), either with labels as a third part, a pair of tables "
    "(nodes, edges), or many graphs as a GraphSet or a list"
)
_OTHER_PYG = {
    "HeteroData": "make one graph of it with data.to_homogeneous()",
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
    - Many graphs (`as_graph_set`): a graph without edges in which each of them is a node, as
      `GraphSet.pooled` makes it. Nodes of a verb, such as in `forget`, are then graphs.
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
    if _are_graphs(x):
        return as_graph_set(x).pooled()
    for kind in type(x).__mro__:
        if kind.__name__ in _OTHER_PYG and kind.__module__.startswith("torch_geometric"):
            raise InputError(f"a PyG {kind.__name__} is not one graph; {_OTHER_PYG[kind.__name__]}")
    if hasattr(x, "x") and (hasattr(x, "edge_index") or hasattr(x, "adj_t")):
        return Graph.from_pyg(x)
    if _is_networkx(x):
        return graph_from_networkx(x, label=_networkx_label(x))
    kind_of_x = f"{type(x).__module__}.{type(x).__qualname__}"
    if isinstance(x, tuple | list):
        if _are_tables(x):
            return _from_tables(*x).graph
        if len(x) in (2, 3) and not any(map(is_table, x)):
            return _from_arrays(*x)
        parts = ", ".join(type(part).__name__ for part in x)
        kind_of_x = f"a {type(x).__name__} of {len(x)} ({parts})"
    raise InputError(f"cannot read a graph from {kind_of_x}; {_TAKEN}")


def as_graph_set(x: Any) -> GraphSet:
    """Many graphs from a `GraphSet`, a PyG dataset or `Batch`, or a list of what `as_graph` takes.

    The label of a graph is `y` of a PyG `Data`, and the graph attribute `label` or `y` of
    NetworkX: one whole number per graph, or none. Graphs of other kinds come without labels.

    >>> ring = (np.eye(3), [[0, 1, 2], [1, 2, 0]])
    >>> as_graph_set([ring, ring]).labelled([0, 1])
    GraphSet(2 graphs of 6 nodes, 3 features, 2 classes)
    """
    if isinstance(x, GraphSet):
        return x
    if _is_pyg(x, "Batch"):
        y = getattr(x, "y", None)
        known = None if y is None else as_labels(_known(as_numbers(y, "y")))
        return GraphSet(Graph.from_pyg(_without_y(x)), x.batch, known)
    each = list(x)
    found = [_label_of(graph, place) for place, graph in enumerate(each)]
    graphs = [as_graph(_without_y(g) if hasattr(g, "x") else _unnamed(g)) for g in each]
    return GraphSet.of(graphs, None if set(found) <= {-1} else found)


def _are_graphs(x: Any) -> bool:
    """Whether these are many graphs, and not the parts of one."""
    if isinstance(x, GraphSet) or _is_pyg(x, "Batch") or _is_pyg(x, "Dataset"):
        return True
    return isinstance(x, list) and bool(x) and all(map(_is_graph, x))


def _is_graph(x: Any) -> bool:
    pair = isinstance(x, tuple) and len(x) in (2, 3) and hasattr(x[0], "shape")
    return isinstance(x, Graph) or hasattr(x, "edge_index") or _is_networkx(x) or pair


def _is_pyg(x: Any, name: str) -> bool:
    kinds = type(x).__mro__
    return any(k.__name__ == name and k.__module__.startswith("torch_geometric") for k in kinds)


def _without_y(data: Any) -> Any:
    """A PyG `Data` whose label is that of the graph, as one of nodes without any."""
    names = ("x", "edge_index", "adj_t", "edge_weight")
    return SimpleNamespace(**{name: getattr(data, name, None) for name in names})


def _unnamed(x: Any) -> Any:
    return graph_from_networkx(x, label=None) if _is_networkx(x) else x


def _label_of(x: Any, place: int) -> int:
    """The class id of one graph, -1 without one."""
    about = getattr(x, "graph", {}) if _is_networkx(x) else {"y": getattr(x, "y", None)}
    label = about.get("label", about.get("y"))
    if label is None:
        return -1
    known = _known(as_numbers(label, f"the label of graph {place}"))
    if known.size != 1 or known.item() != int(known.item()):
        raise InputError(
            f"graph {place} has the label {label!r}; give one class id per graph, a whole number"
        )
    return int(known.item())


def _known(labels: Array) -> Array:
    """Labels as numbers, -1 where one is below 0 or NaN."""
    missing = np.isnan(labels) | (labels < 0)
    return np.where(missing, -1, labels)


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
    names: Mapping[int, str]
    if _are_tables(x):
        found = _from_tables(*x)
        graph, names = found.graph, found.class_names
    else:
        graph, names = as_graph(x), _networkx_names(x)
    _check_numbered(graph, names)
    if not graph.masks:
        return graph
    labels, masks = graph.labelled(), own_masks(graph)
    known = labels >= 0
    val, test = (masks.get(name, torch.zeros_like(known)) & known for name in ("val", "test"))
    train = masks.get("train", known & ~val & ~test) & known
    val = val & torch.isin(labels, labels[train])
    hidden = labels.masked_fill(~(train | val), -1)
    return Task(graph.with_labels(hidden), train, val, test)


def _check_numbered(graph: Graph, names: Mapping[int, str]) -> None:
    """Refuse classes by name: each batch would number them anew."""
    named = {c for c, name in names.items() if not name.isdecimal()}
    if named:
        first = next(c for c in graph.labelled().tolist() if c in named)
        raise InputError(
            f"label {names[first]!r} is a name, and a learner in memory knows classes by number; "
            "write whole numbers, or take undrift.LearnerFolder, which knows classes by name"
        )


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


def _is_networkx(x: Any) -> bool:
    return all(hasattr(x, name) for name in ("nodes", "edges", "is_directed"))


def _networkx_label(x: Any) -> str | None:
    """The attribute that holds the class."""
    there = {name for _, attributes in x.nodes(data=True) for name in attributes}
    return next((name for name in ("label", "y") if name in there), None)


def _networkx_names(x: Any) -> dict[int, str]:
    label = _networkx_label(x) if _is_networkx(x) else None
    if label is None:
        return {}
    found = [as_text(attributes.get(label)) for _, attributes in x.nodes(data=True)]
    return as_class_ids(found, f"node attribute {label!r}")[1]


def _are_tables(x: Any) -> bool:
    return isinstance(x, tuple | list) and len(x) == 2 and all(map(is_table, x))


def _from_tables(nodes: Any, edges: Any) -> TableGraph:
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
    return read_tables(nodes, edges, label=label, source=ends[0], target=ends[1])
