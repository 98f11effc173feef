"""`Graph`: nodes with features and labels, and who sends messages to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import warn

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.cells import Table, as_texts
from undrift.checks import checked
from undrift.errors import InputError, not_installed
from undrift.graphs.encoding import Encoding, Nearest
from undrift.graphs.inputs import (
    as_edges,
    as_features,
    as_labels,
    as_matrix,
    as_numbers,
    as_tensor,
    check_mask,
    class_numbers,
    listed_class_ids,
)
from undrift.graphs.names import NAMELESS, Names, plain_ids
from undrift.graphs.normalise import Operators
from undrift.graphs.scaling import Scaling
from undrift.machine import check_device
from undrift.sparse import Csr, row_index, stacked

UNLABELLED = -1
_MASKS = ("train", "val", "test")  # the names that PyG knows, without its `_mask`


@dataclass(frozen=True, eq=False)
class Graph:
    """An immutable graph, checked when it is built.

    `features` is a dense float tensor `[nodes, width]` or a `Csr` of that shape. `adjacency` has a
    row per receiver: `adjacency @ h` adds up what each node's neighbours send, so an edge
    `source -> target` stands at `[target, source]`. Self-loops are not stored: normalisation adds
    them. `labels` holds a class id per node, -1 where it is unknown, or is None.
    `operator(kind, self_loops=True)` is the normalised adjacency, built once and kept. `masks` are
    boolean columns by name (`train`, `val`, `test`), if `with_masks` gave some. `nearest` says how
    `from_table` linked the rows of a table: then some of the nodes are linked anew. `names`: what
    its nodes, classes and columns were called in a table or a NetworkX graph; `numbered` drops it.

    Build one with `from_arrays`, `from_scipy`, `from_pyg` or `from_table`. Dense float32 features
    are shared with the caller, everything else is copied.

    >>> g = Graph.from_arrays(np.eye(3), edges=[[0, 1], [1, 0]], labels=[0, 1, 1])
    >>> g
    Graph(3 nodes, 2 edges, 3 features dense, 2 classes)
    """

    features: Tensor | Csr
    adjacency: Csr
    labels: Tensor | None = None
    # no fields of the constructor: none is part of a saved state
    operator: Operators = field(init=False, repr=False)
    masks: Mapping[str, Tensor] = field(default_factory=dict, init=False, repr=False)
    nearest: Nearest | None = field(default=None, init=False, repr=False)
    names: Names = field(default=NAMELESS, init=False, repr=False)

    def __post_init__(self) -> None:
        n, shape = int(as_matrix(self.features).shape[0]), self.adjacency.shape
        if shape != (n, n):
            problem = f"the adjacency matrix is {shape[0]} x {shape[1]} but there are {n} nodes"
            raise InputError(f"{problem} in features; give both the same nodes")
        for name, part in (("adjacency", self.adjacency), ("labels", self.labels)):
            if part is not None and part.device != self.features.device:
                problem = (
                    f"the features are on {self.features.device} but the {name} on {part.device}"
                )
                raise InputError(f"{problem}; move them to one device")
        _check_finite(self.features)
        if not _is_finite(self.adjacency.values):
            raise InputError("edge weights contain NaN or infinity; remove or replace them")
        y = self.labels
        if y is not None and (y.shape != (n,) or y.dtype != torch.int64):
            must = f"{n} whole numbers (int64), one per node"
            raise InputError(f"labels must be {must}, not {tuple(y.shape)} of {y.dtype}")
        if y is not None and n and int(y.min()) < UNLABELLED:
            way = "use class ids from 0, and -1 for unknown ones"
            raise InputError(f"label {int(y.min())} is negative; {way}")
        object.__setattr__(self, "operator", Operators(self.adjacency))

    @classmethod
    def from_arrays(
        cls, features: Any, edges: Any, labels: Any = None, *, undirected: bool = False
    ) -> Graph:
        """From a feature matrix (numpy, torch or scipy) and `[2, edges]` source-target pairs.

        `undirected=True` adds the reverse of every edge. Duplicate edges count once and
        self-loops are left out.
        """
        feature_matrix = as_features(features)
        n = feature_matrix.shape[0]
        source, target = as_edges(edges, n)
        if undirected:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        ones = np.ones(source.size, dtype=np.float32)
        matrix = sp.csr_matrix((ones, (target, source)), shape=(n, n))
        matrix.data[:] = 1.0  # duplicates were added up: an edge counts once
        return cls.from_scipy(feature_matrix, matrix, labels)

    @classmethod
    def from_scipy(cls, features: Any, adjacency: Any, labels: Any = None) -> Graph:
        """From a feature matrix and a scipy adjacency with a row per receiver; keeps weights.

        Duplicate entries are added up; self-loops and edges of weight zero are left out.
        """
        feature_matrix, known = as_features(features), as_labels(labels)
        # a copy: what follows works in place, and the caller's matrix is not ours
        matrix = sp.csr_matrix(adjacency, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        if matrix.diagonal().any():
            rows = np.arange(matrix.shape[0], dtype=matrix.indices.dtype)
            matrix.data[matrix.indices == np.repeat(rows, np.diff(matrix.indptr))] = 0.0
        matrix.eliminate_zeros()
        symmetric = matrix.shape[0] == matrix.shape[1] and (matrix != matrix.T).nnz == 0
        links, device = Csr.from_scipy(matrix, symmetric=symmetric), feature_matrix.device
        return cls(feature_matrix, links.to(device), None if known is None else known.to(device))

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """From a PyG `Data` with `x`, `edge_index` or `adj_t`, and if there are any `y` and masks.

        An `edge_weight` and the values of `adj_t` are kept, and weights of duplicate edges add up;
        without them every edge counts once. A weight below 0 gives a warning. A `y` below 0 or NaN
        is an unknown label. `train_mask`, `val_mask` and `test_mask` become `masks["train"]` and so
        on. Nothing else is read: no `edge_attr`.
        """
        x, edges, adj_t, weights, y = (
            getattr(data, name, None) for name in ("x", "edge_index", "adj_t", "edge_weight", "y")
        )
        if x is None:
            raise InputError("this PyG Data has no node features `x`; set data.x first")
        if edges is None and adj_t is None:
            raise InputError("this PyG Data has no edges `edge_index`; set data.edge_index first")
        x = as_features(x)
        if y is not None:
            y = class_numbers(y, "y")
            if y.size == 1 != x.shape[0]:
                way = "if it is that of the whole graph, give a list of graphs, as in [data]"
                raise InputError(f"`y` of this PyG Data is one label for all its nodes; {way}")
        if edges is None:
            # a tensor of torch, or of the package torch_sparse
            as_coo = getattr(adj_t, "to_torch_sparse_coo_tensor", lambda: adj_t)
            sparse = as_features(as_coo())
            if not isinstance(sparse, Csr):
                raise InputError("`adj_t` of this PyG Data is dense; give data.adj_t.to_sparse()")
            graph = cls.from_scipy(x, sparse.to("cpu").to_scipy(), y)
        elif weights is None:
            graph = cls.from_arrays(x, edges, y)
        else:
            source, target = as_edges(edges, x.shape[0])
            weights = as_numbers(weights, "edge_weight")
            if weights.shape != source.shape:
                must = f"{source.size} numbers, one per edge"
                raise InputError(f"edge_weight must be {must}, not of shape {weights.shape}")
            entries = (weights, (target, source))
            graph = cls.from_scipy(x, sp.csr_matrix(entries, shape=(x.shape[0],) * 2), y)
        if below := int((graph.adjacency.values < 0).sum()):
            warn(f"{below:,} edge weights are below 0, so neighbours are subtracted", stacklevel=2)
        masks = {name: getattr(data, f"{name}_mask", None) for name in _MASKS}
        return graph.with_masks(**{name: m for name, m in masks.items() if m is not None})

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        target: str | None = None,
        neighbours: int = 10,
        encoding: Encoding | Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        id: str = "id",
    ) -> Graph:
        """From a table without edges: a node per row, linked to the rows that look most alike.

        `frame`: a dict of columns, or a table of pandas, Polars or PyArrow. Every column but `id`,
        if there is one, and `target` is a feature (`Encoding`). Give every batch the `encoding` of
        the first, which its learner keeps as `encoding_`; a mapping fixes some columns before there
        are data. `target` holds class ids, -1 where it is unknown, or names that `classes` lists.
        Edges go both ways between a row and its `neighbours` nearest (`nearest` has the cost); 0:
        none. With ids, which are all different, the order of lines does not matter.

        >>> table = {"age": [30, 31, 70, 72], "smoke": ["no", "no", "yes", ""], "ill": [0, 0, 1, 1]}
        >>> graph = Graph.from_table(table, target="ill", neighbours=1)
        >>> graph
        Graph(4 nodes, 4 edges, 6 features dense, 2 classes)
        >>> print(graph.encoding)
        age: 50.5 +- 29.5, smoke: no | yes
        """
        cells = frame if isinstance(frame, Table) else Table(frame, "the table")
        if checked("neighbours", int, neighbours) < 0:
            raise InputError(f"neighbours must be 0 or more, not {neighbours}")
        for name in (target, id if id != "id" else None):
            if name is not None and name not in cells:
                raise InputError(f"{cells} has no column {name!r}, only {', '.join(cells)}")
        inputs = {name: cells[name] for name in cells if name not in (id, target)}
        rows = len(next(iter(cells.values()), ()))
        if not rows:
            raise InputError(f"{cells} has no rows; a graph needs nodes")
        if not isinstance(encoding, Encoding):
            encoding = Encoding.of(inputs, encoding, str(cells))
        features = as_features(encoding.matrix(inputs, str(cells)))
        words = as_texts(cells.get(id, ()), f"column {id!r} of {cells}")
        twice = next((word for word, n in Counter(words).items() if n > 1), None)
        if twice is not None:
            raise InputError(f"the id {twice!r} stands twice in {cells}; give every row its own")
        order = sorted(range(rows), key=words.__getitem__) if words else range(rows)
        near = Nearest(encoding, neighbours, torch.tensor(order).argsort())
        labels = None if target is None else listed_class_ids(cells[target], classes, target)
        graph = cls(features, near.links(features), as_labels(labels))._changed(nearest=near)
        return graph.named(Names(plain_ids(words))) if words else graph

    def to_pyg(self, *, dense: bool = False) -> Any:
        """As a PyG `Data` (extra `undrift[pyg]`); sparse features stay sparse unless `dense`.

        Weights become `edge_weight`; a graph without weights (all one) has none. Masks become
        `train_mask` and so on.
        """
        try:
            from torch_geometric.data import Data
        except ImportError as error:
            raise not_installed("to_pyg needs PyTorch Geometric", "pyg") from error
        coo = self.adjacency.to_scipy().tocoo()
        edge_index = torch.from_numpy(np.stack([coo.col, coo.row]).astype(np.int64))
        x: Any = self.features
        if isinstance(x, Csr):
            x = x.to_dense() if dense else x._torch
        data = Data(x=x, edge_index=edge_index.to(self.device), y=self.labels)
        for name, mask in self.masks.items():
            data[f"{name}_mask"] = mask
        if not bool((self.adjacency.values == 1).all()):
            data.edge_weight = self.adjacency.values.clone()  # in the order of the edges above
        return data

    @property
    def num_nodes(self) -> int:
        """How many nodes."""
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        """The width of a node's features."""
        return int(self.features.shape[1])

    @property
    def num_edges(self) -> int:
        """Directed edges: an undirected edge counts twice."""
        return self.adjacency.nnz

    @property
    def encoding(self) -> Encoding | None:
        """What the columns of the table mean that it was made from; None: it was not."""
        return None if self.nearest is None else self.nearest.encoding

    @property
    def device(self) -> torch.device:
        """Where its tensors live."""
        return self.adjacency.device

    def __repr__(self) -> str:
        kind = "sparse" if isinstance(self.features, Csr) else "dense"
        known = self.labels[self.labels >= 0] if self.labels is not None else None
        classes = "no labels" if known is None else f"{known.unique().numel()} classes"
        sizes = f"{self.num_nodes} nodes, {self.num_edges} edges, {self.num_features} features"
        return f"Graph({sizes} {kind}, {classes})"

    def labelled(self) -> Tensor:
        """The labels of a graph that must have them."""
        if self.labels is None:
            way = "y of a PyG Data, label or y of NetworkX nodes, or a column label of a table"
            raise InputError(f"this graph has no labels; give them, -1 where unknown, as {way}")
        return self.labels

    def _changed(self, **parts: Any) -> Graph:
        """A copy with other parts, which are not checked."""
        same = copy(self)
        for name, part in parts.items():
            object.__setattr__(same, name, part)
        return same

    def with_labels(self, labels: Tensor) -> Graph:
        """The same graph with other labels, which are not checked."""
        return self._changed(labels=labels, names=replace(self.names, classes={}))

    def named(self, names: Names) -> Graph:
        """The same graph with these names, which are not checked."""
        return self._changed(names=names)

    def numbered(self) -> Graph:
        """The same graph, whose nodes and classes go by their numbers and by nothing else.

        >>> graph = Graph.from_table({"id": [8, 9], "age": [30, 40]})
        >>> graph.names.nodes.tolist(), graph.numbered().names.nodes
        ([8, 9], None)
        """
        plain = self.names.nodes is None and not self.names.classes
        return self if plain else self.named(replace(self.names, nodes=None, classes={}))

    def with_masks(self, **masks: Any) -> Graph:
        """The same graph with these boolean masks over its nodes, one column per split.

        >>> g = Graph.from_arrays(np.eye(2), []).with_masks(train=[True, False])
        >>> g.masks["train"].tolist()
        [True, False]
        """
        columns = {name: as_tensor(mask, f"the {name} mask") for name, mask in masks.items()}
        for name, mask in columns.items():
            check_mask(mask, self.num_nodes, f"{name} mask", columns=True)
        there = {name: mask.to(self.device) for name, mask in columns.items()}
        return self._changed(masks=there)

    def subgraph(self, nodes: Any) -> Graph:
        """The induced subgraph of these nodes (indices or a boolean mask), in that order.

        Rows of a table (`from_table`) are linked as if the others had never been in it.
        """
        index = row_index(as_tensor(nodes, "nodes").to(self.device), self.num_nodes, "node")
        near = None if self.nearest is None else self.nearest.some(index)
        if near is not None and index.numel() < self.num_nodes:
            adjacency = near.links(self.features[index])
        elif bool((index[1:] > index[:-1]).all()):
            adjacency = self.adjacency.block(index)
        else:
            rows, whole = index.cpu().numpy(), self.adjacency
            some = whole.to_scipy()[rows][:, rows]
            adjacency = Csr.from_scipy(some, dtype=whole.dtype, symmetric=whole.symmetric)
        labels = None if self.labels is None else self.labels[index]
        part = Graph(self.features[index], adjacency.to(self.device), labels)
        part = part._changed(nearest=near, names=self.names.some(index))
        return part.with_masks(**{name: mask[index] for name, mask in self.masks.items()})

    def scaled(self, scaling: Scaling | None = None) -> Graph:
        """The same graph with every column of features in units of its spread (`Scaling`).

        Without a scaling it is that of this graph. Give all batches of a learner one and the same.

        >>> g = Graph.from_arrays([[0.1, 900.0], [0.3, 100.0], [0.5, 300.0]], [])
        >>> bool(g.scaled().features.abs().max() <= 4)
        True
        """
        if self.nearest is not None:  # its edges and its encoding are of the units that it has
            what = "the columns of a table are in units already, those of its encoding"
            raise InputError(f"{what}; give others as encoding= to Graph.from_table")
        known = Scaling.of(self.features) if scaling is None else scaling
        return self._changed(features=known.apply(self.features))

    def isolated(self, nodes: Tensor) -> Graph:
        """The same nodes without the edges of these (indices), so that nobody sees them."""
        if self.nearest is None:
            left = self.adjacency.cleared(nodes)
        else:
            kept = torch.ones(self.num_nodes, dtype=torch.bool)
            kept[nodes.cpu()] = False
            left = self.nearest.links(self.features, kept.nonzero().flatten())
        return self._changed(adjacency=left, operator=Operators(left))

    def part(self, nodes: Tensor) -> Graph:
        """The induced subgraph of these nodes (indices that rise), without labels and masks.

        An edge weighs in its operators what it weighs in this graph's. Cost: the edges into them.
        """
        part = Graph(self.features[nodes], self.adjacency.block(nodes))
        degrees = self.operator.degrees.of(nodes)
        return part._changed(operator=Operators(part.adjacency, degrees))

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device; itself when it is there already."""
        check_device(device)
        features = self.features.to(device)
        if features is self.features:  # torch knows that cuda is cuda:0
            return self
        labels = None if self.labels is None else self.labels.to(device)
        there = Graph(features, self.adjacency.to(device), labels).with_masks(**self.masks)
        return there._changed(nearest=self.nearest, names=self.names)


def _check_finite(features: Tensor | Csr) -> None:
    values = features.values if isinstance(features, Csr) else features
    if _is_finite(values):
        return
    first = int((~torch.isfinite(values)).flatten().nonzero()[0])
    row, column = divmod(first, features.shape[1])
    if isinstance(features, Csr):
        row, column = int(features.row_of_entry()[first]), int(features.indices[first])
    problem = f"features contain NaN or infinity, first at node {row}, column {column}"
    raise InputError(f"{problem}; clean them (for example with numpy.nan_to_num) and try again")


def _is_finite(values: Tensor) -> bool:
    """Where the sum is, all are, and nothing was written; large ones may add up to infinity."""
    return bool(torch.isfinite(values.sum())) or bool(torch.isfinite(values).all())


def disjoint_union(*graphs: Graph) -> Graph:
    """Graphs side by side, without an edge between them; nodes of the first come first.

    Features are sparse if one side's are. A side without labels counts as unlabelled (-1);
    without any there are none. The union is on the device of the first.

    >>> one = Graph.from_arrays(np.eye(2), edges=[[0], [1]], labels=[0, 1])
    >>> two = Graph.from_arrays(np.ones((1, 2)), edges=[[], []])
    >>> disjoint_union(one, two).labels.tolist()
    [0, 1, -1]
    """
    first, device = graphs[0], graphs[0].device
    for place, graph in enumerate(graphs):
        if graph.num_features != first.num_features:
            problem = f"graph {place} has {graph.num_features} features per node, graph 0 has"
            raise InputError(f"{problem} {first.num_features}; give all the same columns")
    links = [graph.adjacency for graph in graphs]
    blocks = sp.block_diag([each.to_scipy() for each in links], format="csr")
    symmetric = all(each.symmetric for each in links)
    whole = Csr.from_scipy(blocks, dtype=links[0].dtype, symmetric=symmetric).to(device)
    known = None
    if any(graph.labels is not None for graph in graphs):
        unknown = torch.tensor([UNLABELLED], device=device)
        labels = (unknown.expand(g.num_nodes) if g.labels is None else g.labels for g in graphs)
        known = torch.cat([each.to(device) for each in labels])
    return Graph(stacked([graph.features.to(device) for graph in graphs]), whole, known)
