"""`LinkSet`: links of a graph, each with one label, and the row of a link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.checks import checked
from undrift.errors import InputError
from undrift.graphs.graph import Graph
from undrift.graphs.inputs import Array, as_edges, as_labels, as_tensor
from undrift.graphs.normalise import normalise
from undrift.graphs.row_set import RowSet
from undrift.sparse import Csr, row_index
from undrift.typing import Rows

_MOST_HOPS = 8  # far more than help; the cost grows with each
_SIZES = 12  # of a degree: 0, 1, 2 to 3, 4 to 7, and so on to 1,024 and more


@dataclass(frozen=True, eq=False)
class LinkSet(RowSet):
    """Links between nodes of one `graph`, checked when it is built.

    `ends` is `[2, links]`: the sending nodes above the receiving ones. `labels` has a class id per
    link, -1 where it is unknown, or is None; labels of nodes are not read. The edges of the graph
    are context, and a link may be one of them or not. Give the set to any verb of a learner: what
    `pooled` returns is learned, in which a link is a node.

    The row of a link has three parts for each hop k from 0 to `hops`: `A^k X` of the sender, of the
    receiver, and their elementwise product. A is the symmetric operator of the graph with every
    edge counted both ways. X are the features, in float64. `degrees=True` puts a column for each
    doubling of what a node receives and sends beside them, counted in this graph.

    >>> graph = Graph.from_arrays(np.eye(3), [[0, 1], [1, 2]])
    >>> links = LinkSet(graph, [[0, 1, 2], [1, 2, 0]], labels=[0, 1, -1])
    >>> links
    LinkSet(3 links of 3 nodes, 3 features, 2 classes)
    >>> links.pooled()
    Graph(3 nodes, 0 edges, 27 features dense, 2 classes)
    """

    graph: Graph
    ends: Tensor
    labels: Tensor | None = None
    hops: int = 2
    degrees: bool = False

    def __post_init__(self) -> None:
        device = self.graph.device
        ends = torch.from_numpy(as_edges(self.ends, self.graph.num_nodes, "link")).to(device)
        labels, count = as_labels(self.labels), ends.shape[1]
        if not count:
            raise InputError("a set of links needs at least one link")
        if not 0 <= checked("hops", int, self.hops) <= _MOST_HOPS:
            raise InputError(f"hops of links must be 0 to {_MOST_HOPS}, not {self.hops}")
        if labels is not None and labels.shape != (count,):
            problem = f"there are {count} links but labels of shape {tuple(labels.shape)}"
            raise InputError(f"{problem}; give one per link, -1 if unknown")
        if labels is not None and int(labels.min()) < -1:
            way = "use class ids from 0, and -1 for unknown ones"
            raise InputError(f"label {int(labels.min())} of a link is negative; {way}")
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "labels", None if labels is None else labels.to(device))

    def __len__(self) -> int:
        return int(self.ends.shape[1])

    def __repr__(self) -> str:
        return f"LinkSet({len(self)} links of {self.graph.num_nodes} nodes, {self._about()})"

    def subset(self, links: Any) -> LinkSet:
        """Some of the links (numbers or a boolean mask), in their order here.

        The graph stays whole: the others are context, and rows stay the same.
        """
        places, labels = self._some(links, "link")
        return replace(self, ends=self.ends[:, places], labels=labels)

    def without(self, nodes: Any = (), links: Any = ()) -> LinkSet:
        """As if these nodes had no edge and no link, and these links were not there (numbers).

        Nodes and links keep their numbers: a link that is gone has the label -1, and no other row
        sees it. So `learner.revise(links, links.without(nodes=[5]))` erases node 5, and the learner
        is as one that never saw it. Links between the same two nodes share their edge, which goes
        with any of them; in an undirected graph it goes both ways.

        >>> graph = Graph.from_arrays(np.eye(3), [[0, 1], [1, 2]])
        >>> left = LinkSet(graph, [[0, 1], [1, 2]], labels=[0, 1]).without(nodes=[2])
        >>> left.graph.num_edges, left.labels.tolist()
        (1, [0, -1])
        """
        out = row_index(as_tensor(nodes, "nodes"), self.graph.num_nodes, "node").to(self.ends)
        gone = torch.isin(self.ends, out).any(dim=0)
        gone[row_index(as_tensor(links, "links"), len(self), "link").to(self.ends)] = True
        graph = _without_edges(self.graph.isolated(out), self.ends[:, gone])
        labels = None if self.labels is None else self.labels.masked_fill(gone, -1)
        return replace(self, graph=graph, labels=labels)

    def rows(self) -> Rows:
        """The row of each link; sparse if the features are.

        Cost: `hops` products with the adjacency, and three numbers per hop for each column of X.
        """
        sender, receiver = self.ends.cpu().numpy()
        h, operator, parts = self._inputs(), _both_ways(self.graph.adjacency), []
        for hop in range(self.hops + 1):
            h = operator @ h if hop else h
            sent, received = h[sender], h[receiver]
            parts += [sent, received, sent * received]
        if sp.issparse(h):
            return Csr.from_scipy(sp.hstack(parts, format="csr"))
        return torch.from_numpy(np.hstack(parts, dtype=np.float32, casting="same_kind"))

    def _inputs(self) -> Array | sp.csr_array:
        """X in float64, in a type of which `*` is the elementwise product."""
        features, more = self.graph.features, []
        if self.degrees:
            links = self.graph.adjacency.to("cpu")
            sent = torch.bincount(links.indices, minlength=self.graph.num_nodes)
            more = [_sizes(links.indptr.diff().numpy()), _sizes(sent.numpy())]
        if isinstance(features, Csr):
            parts = [features.to_scipy().astype(np.float64), *more]
            return sp.csr_array(sp.hstack(parts, format="csr"))
        return np.hstack([features.double().cpu().numpy(), *more])


def _sizes(degrees: Array) -> Array:
    """A column for 0, for 1, then for each doubling: a one where the degree lies."""
    place = np.minimum(np.frexp(degrees)[1], _SIZES - 1)  # the exponent: 0, 1, 2, 2, 3, ...
    return np.eye(_SIZES)[place]


def _both_ways(links: Csr) -> sp.csr_array:
    """The symmetric operator in float64; an edge and its reverse add up."""
    if not links.symmetric:
        matrix = links.to_scipy().astype(np.float64)
        links = Csr.from_scipy(matrix + matrix.T, dtype=torch.float64, symmetric=True)
    return sp.csr_array(normalise(links.double()).to_scipy())


def _without_edges(graph: Graph, ends: Tensor) -> Graph:
    """The same nodes without the edges between these ends, and their reverse if undirected."""
    links, (sender, receiver) = graph.adjacency, ends
    cut = [receiver * graph.num_nodes + sender]
    if links.symmetric:
        cut.append(sender * graph.num_nodes + receiver)
    entries = links.row_of_entry() * graph.num_nodes + links.indices
    left = links.to_scipy().copy()
    left.data[torch.isin(entries, torch.cat(cut)).cpu().numpy()] = 0
    left.eliminate_zeros()
    made = Csr.from_scipy(left, dtype=links.dtype, symmetric=links.symmetric)
    return Graph(graph.features, made.to(graph.device), graph.labels)
