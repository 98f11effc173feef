"""`as_graph` and `as_batch`: a graph of another library as one of ours, without importing it."""

from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from textwrap import shorten
from types import SimpleNamespace
from typing import Any
from warnings import warn

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.cells import Table, as_text, is_table
from undrift.datasets.archives import Array
from undrift.datasets.tables import read_tables
from undrift.datasets.tudataset import read_tudataset
from undrift.errors import InputError
from undrift.graphs import Graph, GraphSet
from undrift.graphs.inputs import as_class_ids, as_labels, class_numbers
from undrift.graphs.names import Names, plain_ids
from undrift.graphs.row_set import RowSet
from undrift.streams.split import own_masks
from undrift.streams.task import Task

_TAKEN = (
    "give an undrift Graph or Task, a PyG Data, a NetworkX graph, a tuple (features, edge_index), "
    "a tuple (SciPy adjacency, features), either with labels as a third part, a pair of tables "
    "(nodes, edges), a LinkSet, or many graphs as a GraphSet or a list, which "
    "undrift.as_graph_set reads from the path of a TUDataset"
)
_MANY = "give a GraphSet, a list of graphs, a PyG dataset or Batch, or the path of a TUDataset"
_ONE_TABLE = "take Graph.from_table(table, target=...), or give a pair (nodes, edges)"
_PYG = "torch_geometric", "torch.utils.data.dataloader"
_OTHER_PYG = {
    "HeteroData": "make one graph of it with data.to_homogeneous()",
    "TemporalData": "make a Data with x and edge_index of it",
    "DataLoader": "give what it is made of: a Data, or graphs as in list(loader.dataset)",
}


def as_graph(x: Any) -> Graph:
    """A graph from anything that holds one; an undrift `Graph` as it is, a `Task`'s graph.

    - A PyG `Data` with `x`, `edge_index` or `adj_t`, and what else `Graph.from_pyg` reads; or a
      dict of these.
    - A NetworkX graph: the node attribute `x`, and `label` or `y` if there is one
      (`graph_from_networkx` reads other attributes).
    - `(features, edge_index)` or `(adjacency, features)`, or with labels as a third: edges keep
      their direction, and an adjacency of SciPy has a row per receiver.
    - Many graphs (`as_graph_set`): a graph without edges in which each of them is a node, as
      `GraphSet.pooled` makes it. Nodes of a verb, such as in `forget`, are then graphs.
    - A `LinkSet`: a graph without edges in which each link is a node.
    - `(nodes, edges)`: two tables of pandas, Polars or PyArrow, or dicts of columns. Nodes have a
      column `id`, perhaps `label`, and features in all others. Edges have `source` and `target`,
      or two columns of any name, and count in both directions.

    Names of nodes, classes and columns of a NetworkX graph or of tables are its `names`: verbs find
    nodes by their ids, and refuse classes that are words and columns in another order.

    >>> as_graph((np.eye(3), [[0, 1], [1, 2]], [0, 1, 1]))
    Graph(3 nodes, 2 edges, 3 features dense, 2 classes)
    >>> as_graph(({"id": ["a", "b"], "age": [30, 40]}, {"source": ["a"], "target": ["b"]}))
    Graph(2 nodes, 2 edges, 1 features dense, no labels)
    """
    if isinstance(x, Graph | Task):
        return x if isinstance(x, Graph) else x.graph
    if kind := _pyg_kind(x, *_OTHER_PYG):
        raise InputError(f"a {kind} is not one graph; {_OTHER_PYG[kind]}")
    if isinstance(x, Mapping) and "edge_index" in x:
        x = SimpleNamespace(**{"x": None, **x})
    if are_graphs(x):
        return (x if isinstance(x, RowSet) else as_graph_set(x)).pooled()
    if hasattr(x, "x") and (hasattr(x, "edge_index") or hasattr(x, "adj_t")):
        return Graph.from_pyg(x)
    if _is_networkx(x):
        there = {name for _, attributes in x.nodes(data=True) for name in attributes}
        label = next((name for name in ("label", "y") if name in there), None)
        return graph_from_networkx(x, "x", label)
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    if is_table(x):
        raise InputError(f"{kind} is one table, not a graph; {_ONE_TABLE}")
    if any(isinstance(part, str | Path) for part in (x if isinstance(x, tuple | list) else [x])):
        way = "read it with undrift.read_tables(nodes, edges).graph or undrift.as_graph_set(path)"
        raise InputError(f"{x!r} is no graph but a path; {way}, or take undrift.LearnerFolder")
    if isinstance(x, tuple | list):
        if len(x) == 2 and all(map(is_table, x)):
            return _from_tables(*x)
        if len(x) in (2, 3) and not any(map(is_table, x)):
            return _from_arrays(*x)
        parts = ", ".join(type(part).__name__ for part in x)
        kind = f"a {type(x).__name__} of {len(x)} ({parts})"
    raise InputError(f"cannot read a graph from {kind}; {_TAKEN}")


def as_graph_set(x: Any, *, like: GraphSet | None = None) -> GraphSet:
    """Many graphs from a `GraphSet`, a PyG dataset or `Batch`, or a list of what `as_graph` takes.

    A text or a path is a folder or zip of a TUDataset (`read_tudataset`), with the columns of
    `like`, read from another one. The label of a graph is `y` of a PyG `Data`, and the graph
    attribute `label` or `y` of NetworkX: one whole number per graph, or none. Graphs of other kinds
    come without labels.

    >>> ring = (np.eye(3), [[0, 1, 2], [1, 2, 0]])
    >>> as_graph_set([ring, ring]).labelled([0, 1])
    GraphSet(2 graphs of 6 nodes, 3 features, 2 classes)
    """
    if isinstance(x, GraphSet | str | Path):
        width = None if like is None else like.graph.num_features
        return x if isinstance(x, GraphSet) else read_tudataset(x, width)
    if isinstance(x, RowSet) or not are_graphs(x):
        what = "an empty list" if isinstance(x, list | tuple) and not x else type(x).__name__
        raise InputError(f"cannot read graphs from {what}; {_MANY}")
    if _pyg_kind(x, "Batch"):
        y = getattr(x, "y", None)
        # labels for all tell a last graph without nodes, which no node names
        known = torch.full((x.num_graphs,), -1) if y is None else as_labels(class_numbers(y, "y"))
        if known is not None and len(known) == len(x.batch) != x.num_graphs:
            way = "give one Data, as in Data(x=batch.x, edge_index=batch.edge_index, y=batch.y)"
            raise InputError(f"the labels y of this PyG Batch are of nodes, not of graphs; {way}")
        found = GraphSet(_without_y(x), x.batch, known)
        return found if y is not None else found.labelled(None)
    only = "dataset[0]" if isinstance(x, Sized) and len(x) == 1 else "one graph, not a list"
    read = [_one_of_many(graph, place, only) for place, graph in enumerate(x)]
    labels = [label for _, label in read]
    return GraphSet.of([graph for graph, _ in read], None if set(labels) <= {-1} else labels)


def are_graphs(x: Any) -> bool:
    """Whether these are many graphs or links, and not the parts of one graph."""

    def is_graph(part: Any) -> bool:
        pair = isinstance(part, tuple) and len(part) in (2, 3) and hasattr(part[0], "shape")
        known = isinstance(part, Graph) or hasattr(part, "edge_index") or hasattr(part, "adj_t")
        return pair or known or _is_networkx(part) or bool(_pyg_kind(part, *_OTHER_PYG))

    if isinstance(x, RowSet) or _pyg_kind(x, "Batch", "Dataset"):
        return True
    return isinstance(x, list | tuple) and bool(x) and all(map(is_graph, x))


def _pyg_kind(x: Any, *names: str) -> str:
    """Which of these kinds of PyG it is, or a loader of torch; none without importing it."""
    kinds = (k for k in type(x).__mro__ if k.__module__.startswith(_PYG))
    return next((kind.__name__ for kind in kinds if kind.__name__ in names), "")


def _without_y(data: Any) -> Graph:
    """The graph of a PyG `Data` whose label is not that of its nodes."""
    names = ("x", "edge_index", "adj_t", "edge_weight")
    return Graph.from_pyg(SimpleNamespace(**{name: getattr(data, name, None) for name in names}))


def _one_of_many(x: Any, place: int, only: str) -> tuple[Graph, int]:
    """One of many graphs, and its class id: -1 without one; `only`: what to give for its nodes."""
    about = getattr(x, "graph", {}) if _is_networkx(x) else {}
    label = about.get("label", about.get("y")) if _is_networkx(x) else getattr(x, "y", None)
    try:
        if _is_networkx(x):
            graph = graph_from_networkx(x, label=None)
        else:
            graph = _without_y(x) if hasattr(x, "x") else as_graph(x)
    except InputError as error:
        raise InputError(f"graph {place}: {error}") from error
    if label is None:
        return graph, -1
    given = [] if isinstance(label, str) else label
    known = class_numbers(given, f"label of graph {place}")
    if known.size == graph.num_nodes > 1:
        what = f"graph {place} has a label for each of its nodes"
        raise InputError(f"{what}; to learn nodes give {only}, or one label per graph")
    if known.size != 1 or known.item() != int(known.item()):
        raise InputError(f"graph {place} has the label {label!r}; give it one whole number")
    return graph, int(known.item())


def as_batch(x: Any) -> Graph | Task:
    """What a learner learns from anything that `as_graph` takes.

    A `Task` is returned as it is, and so is a graph without masks: all its labelled nodes count.
    A graph with masks becomes a task. Its training nodes are those of `train_mask`; without one,
    all labelled nodes outside `val_mask` and `test_mask`. Validation nodes are those of `val_mask`
    whose class has a training node. All other labels are hidden.
    """
    graph = with_class_ids(x)
    if isinstance(x, Task):
        return x
    if not graph.masks:
        return graph
    labels, masks = graph.labelled(), own_masks(graph)
    known = labels >= 0
    val, test = (masks.get(name, torch.zeros_like(known)) & known for name in ("val", "test"))
    train = masks.get("train", known & ~val & ~test) & known
    val = val & torch.isin(labels, labels[train])
    hidden = labels.masked_fill(~(train | val), -1)
    return Task(graph.with_labels(hidden), train, val, test)


def with_class_ids(x: Any) -> Graph:
    """The same graph as `as_graph`, if labels mean the same in every batch: they are numbers."""
    graph = as_graph(x)
    if graph.labels is not None and (word := graph.names.word(graph.labels)):
        problem = "is a name, and a learner in memory knows classes by number; write whole numbers"
        way = "take undrift.LearnerFolder, which knows classes by name"
        raise InputError(f"label {word!r} {problem}, or {way}")
    return graph


def _from_arrays(first: Any, second: Any, labels: Any = None) -> Graph:
    """Features and edges, or an adjacency and features in either order."""
    square = [bool(sp.issparse(x)) and x.shape[0] == x.shape[1] for x in (first, second)]
    if square == [False, True]:
        return Graph.from_scipy(first, second, labels)
    edges = False
    if not sp.issparse(second):
        array = np.asarray(second.detach().cpu() if isinstance(second, Tensor) else second)
        edges = array.size == 0 or (array.shape[0] == 2 and array.dtype.kind in "iu")
    if square[0] and not edges:
        return Graph.from_scipy(second, first, labels)
    return Graph.from_arrays(first, second, labels)


def _is_networkx(x: Any) -> bool:
    return all(hasattr(x, name) for name in ("nodes", "edges", "is_directed"))


def _from_tables(nodes: Any, edges: Any) -> Graph:
    nodes, edges = Table(nodes, "the table of nodes"), Table(edges, "the table of edges")
    if "id" not in nodes:
        way = "rename the column that names the nodes, as in nodes.rename(columns={...: 'id'})"
        raise InputError(f"the table of nodes has no column 'id', only {', '.join(nodes)}; {way}")
    ends = ["source", "target"] if {"source", "target"} <= set(edges) else list(edges)
    if len(ends) != 2:
        way = "name two of them 'source' and 'target', or leave out the others"
        raise InputError(f"the table of edges has the columns {', '.join(edges)}; {way}")
    label = "label" if "label" in nodes else None
    found = read_tables(nodes, edges, label=label, source=ends[0], target=ends[1])
    if found.repairs.missing_labels:
        warn(str(found.repairs), stacklevel=2)
    return found.graph


def graph_from_networkx(
    g: Any,
    features: str | Sequence[str] = "x",
    label: str | None = "label",
    *,
    weight: str | None = None,
) -> Graph:
    """The graph of a NetworkX graph, directed or not; node i is the i-th of `list(g)`.

    `features` is the node attribute that holds a vector or a number, or a list of such. `label` is
    that with the class (`as_class_ids`); a node without it is unlabelled. `weight` is an edge
    attribute, 1 where there is none; parallel edges then add up, and else count once.
    Self-loops are left out.

    >>> import networkx as nx
    >>> g = nx.Graph([("a", "b")])
    >>> g.add_nodes_from([("a", {"x": [0, 1], "label": "red"}), ("b", {"x": [1, 0]})])
    >>> graph_from_networkx(g)
    Graph(2 nodes, 2 edges, 2 features dense, 1 classes)
    """
    if not _is_networkx(g):
        raise InputError(f"graph_from_networkx needs a NetworkX graph, not a {type(g).__name__}")
    nodes: list[tuple[Any, Mapping[str, Any]]] = list(g.nodes(data=True))
    if not nodes:
        raise InputError("the NetworkX graph has no nodes; add some with features")
    names = [features] if isinstance(features, str) else features
    if not names:
        raise InputError("features names no node attribute; name at least one")
    matrix = np.hstack([_node_attribute(nodes, name) for name in names])
    labels: Array | None = None
    called: dict[int, str] = {}
    if label is not None:
        given = [as_text(_plain(attributes.get(label))) for _, attributes in nodes]
        labels, called = as_class_ids(given, f"node attribute {label!r}")
    index = {node: i for i, (node, _) in enumerate(nodes)}
    ids = Names(plain_ids(list(map(as_text, index))), called)
    ends = np.array([(index[u], index[v]) for u, v in g.edges()], np.int64).reshape(-1, 2).T
    if weight is None:
        graph = Graph.from_arrays(matrix, ends, labels, undirected=not g.is_directed())
        return graph.named(ids)
    weights = []
    for u, v, value in g.edges(data=weight, default=1.0):
        if (found := _vector(value)) is None or found.size != 1:
            what = f"the edge from {u!r} to {v!r} has {weight}={value!r}"
            raise InputError(f"{what}; an edge weight must be a finite number")
        weights.append(found.item())
    links = sp.csr_matrix((np.array(weights, np.float32), ends[::-1]), (len(nodes), len(nodes)))
    links = links if g.is_directed() else links + links.T
    return Graph.from_scipy(matrix, links, labels).named(ids)


def _plain(label: Any) -> Any:
    """The label of a node as PyG would have it: an entry of a tensor, a truth value as 0 or 1."""
    if isinstance(label, Tensor | np.ndarray | np.generic) and np.prod(label.shape) == 1:
        label = label.item()
    return int(label) if isinstance(label, bool) else label


def _node_attribute(nodes: Sequence[tuple[Any, Mapping[str, Any]]], name: str) -> Array:
    """One attribute of all nodes as a float32 matrix, each a vector as long as the first."""
    missing = [node for node, attributes in nodes if name not in attributes]
    if missing:
        what = f"{len(missing):,} of the {len(nodes):,} nodes have no attribute {name!r}"
        way = "name others, as in undrift.graph_from_networkx(g, features=...)"
        raise InputError(f"{what}, first {missing[0]!r}; set it, or {way}")
    rows = [_vector(attributes[name]) for _, attributes in nodes]
    for (node, attributes), row in zip(nodes, rows, strict=True):
        if row is None or rows[0] is None or row.size != rows[0].size:
            shown = shorten(repr(attributes[name]), 60, placeholder="...")
            way = "must be a finite number, or a vector of them as long as the first node's"
            raise InputError(f"attribute {name!r} of node {node!r} is {shown}; a feature {way}")
    return np.array(rows, np.float32)


def _vector(value: Any) -> Array | None:
    """A number, or a vector of numbers, as a vector; None if it is no such thing, or not finite."""
    try:
        value = value.detach().cpu() if isinstance(value, Tensor) else value
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    good = array.ndim <= 1 and not isinstance(value, str) and bool(np.isfinite(array).all())
    return array.ravel() if good else None
