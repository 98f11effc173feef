"""`GraphSet`: many graphs, each with one label; and `Pooling`, which makes a row of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs.graph import Graph, disjoint_union
from undrift.graphs.inputs import as_labels, as_tensor
from undrift.graphs.row_set import RowSet
from undrift.sparse import Csr, as_scipy

_BEYOND = 16  # places beyond the whole numbers, two to each doubling


@dataclass(frozen=True)
class Pooling:
    """From the nodes of one graph to its row: a fixed function of that graph alone.

    For each hop k from 0 to `hops`: the mean of `A^k X` over the nodes, and a curve over its sum.
    A curve has a column for each whole number from 1 to `places`, then two for each doubling. A sum
    lies between two of them and weighs on both, so that a linear function of them is any curve
    over the sum, which can tell 7 from 8. A sum below zero weighs with a minus. A is the symmetric
    operator of the graph.

    >>> Pooling(hops=0, places=4).width(num_features=3)
    63
    """

    hops: int = 2
    places: int = 40

    def __post_init__(self) -> None:
        if self.hops < 0 or self.places < 1:
            raise InputError(f"pooling needs hops >= 0 and places >= 1, not {self}")

    def width(self, num_features: int) -> int:
        """Columns of a row."""
        return (self.hops + 1) * num_features * (1 + self.places + _BEYOND)

    def rows(self, graph: Graph, index: Tensor, count: int) -> Csr:
        """A row for each of `count` graphs; `index` is the graph of each node.

        Cost: `hops` products with the adjacency, and at most two entries for each sum.
        """
        nodes = index.cpu().numpy()
        member = sp.csr_matrix((np.ones(len(nodes)), (nodes, np.arange(len(nodes)))))
        sizes = sp.diags(1 / np.bincount(nodes, minlength=count))
        operator = graph.operator().double().to_scipy()
        h = as_scipy(graph.features).astype(np.float64)
        parts = []
        for hop in range(self.hops + 1):
            h = operator @ h if hop else h
            sums = member @ h
            parts += [sizes @ sums, self._curves(sums.tocoo())]
        return Csr.from_scipy(sp.hstack(parts, format="csr"))

    def _curves(self, sums: sp.coo_matrix) -> sp.csr_matrix:
        size, last = np.abs(sums.data), self.places + _BEYOND
        beyond = self.places + 2 * np.log2(np.maximum(size, self.places) / self.places)
        place = np.minimum(np.where(size <= self.places, size, beyond), last)
        left = np.minimum(place.astype(np.int64), last - 1)  # column 0 is of sum 0: it has none
        share, sign = place - left, np.sign(sums.data)
        rows, columns = np.tile(sums.row, 2), last * sums.col.astype(np.int64) - 1
        columns = np.concatenate([columns + left, columns + left + 1])
        values = np.concatenate([sign * (1 - share) * (left > 0), sign * share])
        there = values != 0
        shape = (sums.shape[0], last * sums.shape[1])
        return sp.csr_matrix((values[there], (rows[there], columns[there])), shape=shape)


@dataclass(frozen=True, eq=False)
class GraphSet(RowSet):
    """Many graphs as one block-diagonal `graph`, checked when it is built.

    `index` is the graph of each node, 0 to the number of graphs less one. `labels` has a class id
    per graph, -1 where it is unknown, or is None; labels of nodes are not read. Give it to any verb
    of a learner: what `pooled` returns is learned, in which a graph is a node.

    >>> pair, dot = Graph.from_arrays(np.eye(2), [[0], [1]]), Graph.from_arrays([[1, 1]], [])
    >>> GraphSet.of([pair, dot], labels=[1, 0])
    GraphSet(2 graphs of 3 nodes, 2 features, 2 classes)
    """

    graph: Graph
    index: Tensor
    labels: Tensor | None = None
    pooling: Pooling = field(default_factory=Pooling)

    def __post_init__(self) -> None:
        index, nodes = as_tensor(self.index, "the graph of each node"), self.graph.num_nodes
        labels = as_labels(self.labels)
        if index.shape != (nodes,) or index.is_floating_point() or index.dtype == torch.bool:
            must = f"{nodes} whole numbers, the graph of each node"
            raise InputError(f"index must be {must}, not {tuple(index.shape)} of {index.dtype}")
        if labels is not None and labels.dim() != 1:
            problem = f"labels must be one class id per graph, not of shape {tuple(labels.shape)}"
            raise InputError(f"{problem}; give a column of them")
        if not nodes:
            raise InputError("a set of graphs needs at least one graph with a node")
        index = index.long().to(self.graph.device)
        count = int(index.max()) + 1 if labels is None else labels.shape[0]
        outside = index[(index < 0) | (index >= count)]
        if outside.numel():
            problem = f"a node is of graph {int(outside[0])}, but there are {count} labels"
            raise InputError(f"{problem}; give one label per graph, and number graphs from 0")
        empty = (torch.bincount(index, minlength=count) == 0).nonzero()
        if empty.numel():
            problem = f"graph {int(empty[0])} has no node, so it has no row"
            raise InputError(f"{problem}; leave it out with its label")
        links = self.graph.adjacency
        sender, receiver = links.indices.long(), links.row_of_entry().long()
        across = (index[sender] != index[receiver]).nonzero()
        if across.numel():
            ends = (int(end[across[0]]) for end in (sender, receiver))
            problem = " with ".join(f"node {node} of graph {int(index[node])}" for node in ends)
            raise InputError(f"an edge joins {problem}; edges stay within a graph")
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "labels", None if labels is None else labels.to(index.device))

    @classmethod
    def of(
        cls, graphs: Sequence[Graph], labels: Any = None, pooling: Pooling | None = None
    ) -> GraphSet:
        """Of a list of graphs of the same columns; `labels` has a class id for each."""
        kinds = {type(graph) for graph in graphs} - {Graph}
        if kinds:
            problem = f"GraphSet.of takes undrift Graphs, not a {kinds.pop().__name__}"
            raise InputError(f"{problem}; read other kinds with undrift.as_graph_set(graphs)")
        sizes = torch.tensor([graph.num_nodes for graph in graphs], dtype=torch.int64)
        if not graphs or not bool(sizes.all()):
            which = f"graph {int((sizes == 0).nonzero()[0])}" if graphs else "the list of graphs"
            raise InputError(f"{which} is empty; every graph needs at least one node")
        whole = disjoint_union(*(graph.to("cpu") for graph in graphs))
        index = torch.arange(len(graphs)).repeat_interleave(sizes)
        known = as_labels(labels)
        if known is not None and known.shape[:1] != (len(graphs),):
            problem = f"there are {len(graphs)} graphs but {known.shape[0]} labels"
            raise InputError(f"{problem}; give one per graph")
        return cls(whole, index, known, pooling or Pooling())

    def __len__(self) -> int:
        return int(self.index.max()) + 1

    def __repr__(self) -> str:
        return f"GraphSet({len(self)} graphs of {self.graph.num_nodes} nodes, {self._about()})"

    def subset(self, graphs: Any) -> GraphSet:
        """Some of the graphs (numbers or a boolean mask), in their order here."""
        rows, labels = self._some(graphs, "graph")
        chosen = torch.isin(self.index, rows)
        index = torch.searchsorted(rows, self.index[chosen])
        return GraphSet(self.graph.subgraph(chosen), index, labels, self.pooling)

    def rows(self) -> Csr:
        """`Pooling.rows`: each depends on its own graph alone, so it is the same in any batch."""
        return self.pooling.rows(self.graph, self.index, len(self))
