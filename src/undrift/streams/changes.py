"""What tells one batch from another: its digest, what differs, and which rows that reaches."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.graphs.field import rings
from undrift.graphs.fingerprint import Fingerprint
from undrift.sparse import Csr
from undrift.streams.task import Task

Array = np.ndarray[Any, np.dtype[Any]]
_SUMS = "sums:"  # how a digest begins; in older files it is a SHA-256 of all bytes


def batch_digest(task: Task) -> str:
    """A digest of all that a learner sees of a batch, in its order of nodes.

    Tasks of equal features, edges, splits and labels have the same one, whether features are dense
    or sparse, and wherever the graph is. It tells batches that differ by accident, as they do in
    practice; somebody who wants to can make two with one digest (`Fingerprint`). Cost: one pass
    over features and edges on the graph's device.
    """
    graph, seen = task.graph, task.train | task.val
    marks = Fingerprint.of_places(graph.num_nodes, graph.device)
    splits = task.train.long() + 2 * task.val.long()
    told = (
        graph.num_nodes,
        graph.num_features,
        marks.features(graph.features),
        marks.edges(graph.adjacency),
        marks.labels(4 * task.labels.masked_fill(~seen, -1) + splits),
    )
    return f"{_SUMS}{sha256(repr(told).encode()).hexdigest()[:32]}"


def is_digest_of(digest: str, task: Task) -> bool:
    """Whether a digest that was kept, by this version or one before, is that of this batch."""
    return digest == (batch_digest(task) if digest.startswith(_SUMS) else _of_bytes(task))


def _of_bytes(task: Task) -> str:
    """The digest that saved encoders of earlier versions know their batch by."""
    digest = sha256(repr((task.classes, tuple(task.graph.features.shape))).encode())
    adjacency, features = task.graph.adjacency, task.graph.features
    columns = [adjacency.indptr, adjacency.indices, adjacency.values, task.train, task.val]
    labels = task.labels.masked_fill(~(task.train | task.val), -1)
    if isinstance(features, Csr):
        columns += [features.indptr, features.indices, features.values]
    else:
        columns.append(features)
    for column in (labels, *columns):
        digest.update(column.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def changed_nodes(before: Task, after: Task, ids: tuple[Any, Any] | None) -> tuple[Tensor, Tensor]:
    """Masks over the nodes of both: those whose features, edges, label or split differ.

    A node that the other side lacks has changed, and so have its neighbours. `ids` names the
    nodes of both; without it node i is the same node in both. Cost: one pass over both graphs.
    """
    here, there = _same_nodes(before.graph.num_nodes, after.graph.num_nodes, ids)
    differ = _differ(before, after, here, there)
    masks = []
    for graph, common in ((before.graph, here), (after.graph, there)):
        lacking = np.ones(graph.num_nodes, dtype=bool)
        lacking[common] = False
        links = graph.adjacency.to("cpu").to_scipy()
        ones = np.ones(links.nnz, dtype=np.float32)
        pattern = sp.csr_matrix((ones, links.indices, links.indptr), links.shape)
        around = (pattern @ lacking + pattern.T @ lacking) > 0
        differ |= around[common]
        masks.append(lacking)
    masks[0][here] = differ
    masks[1][there] = differ
    found = [
        torch.from_numpy(mask).to(task.graph.device)
        for mask, task in zip(masks, (before, after), strict=True)
    ]
    return found[0], found[1]


def within_reach(graph: Graph, touched: Tensor, reach: Tensor) -> Tensor:
    """The nodes whose row looks at a touched node: at most `reach` hops away, per node.

    Cost: the edges out of the nodes that are passed; a transpose of a directed graph.
    """
    farthest = int(reach.max()) if reach.numel() else 0
    reached = touched.clone()
    found = rings(graph.adjacency.t(), touched.nonzero().flatten())
    for hops, ring in enumerate(islice(found, farthest), start=1):
        reached[ring[reach[ring] >= hops]] = True
    return reached


def _same_nodes(n: int, m: int, ids: tuple[Any, Any] | None) -> tuple[Array, Array]:
    """The places of the nodes that are in both, on either side."""
    if ids is None:
        common = np.arange(min(n, m))
        return common, common
    names = [np.asarray(each).astype(str) for each in ids]
    for each, nodes, which in zip(names, (n, m), ("before", "after"), strict=True):
        if each.shape != (nodes,) or np.unique(each).size != nodes:
            raise InputError(
                f"the ids of the batch {which} must be {nodes} different names, one per node"
            )
    _, here, there = np.intersect1d(names[0], names[1], return_indices=True)
    return here, there


def _differ(before: Task, after: Task, here: Array, there: Array) -> Array:
    """Of the nodes that are in both: whether something of the node itself is different."""
    differ = np.zeros(here.size, dtype=bool)
    for name in ("train", "val"):
        a, b = (getattr(task, name).cpu().numpy() for task in (before, after))
        differ |= a[here] != b[there]
    labels = [task.labels.cpu().numpy() for task in (before, after)]
    known = [(task.train | task.val).cpu().numpy() for task in (before, after)]
    differ |= (labels[0][here] != labels[1][there]) & (known[0][here] | known[1][there])
    a, b = (_scipy(task.graph.features) for task in (before, after))
    if a.shape[1] != b.shape[1]:
        raise InputError(
            f"the batch has {a.shape[1]} features before and {b.shape[1]} after; give both the "
            "same columns"
        )
    differ |= _rows_that_differ(a[here], b[there])
    links = [task.graph.adjacency.to("cpu").to_scipy() for task in (before, after)]
    unequal = (links[0][here][:, here] != links[1][there][:, there]).tocoo()
    differ[unequal.row] = True
    differ[unequal.col] = True
    return differ


def _scipy(rows: Tensor | Csr) -> Any:
    return rows.to("cpu").to_scipy() if isinstance(rows, Csr) else rows.cpu().numpy()


def _rows_that_differ(a: Any, b: Any) -> Array:
    if sp.issparse(a) != sp.issparse(b):
        a, b = sp.csr_matrix(a), sp.csr_matrix(b)
    if not sp.issparse(a):
        found: Array = (a != b).any(axis=1)
        return found
    unequal = (a != b).tocsr()
    changed: Array = np.diff(unequal.indptr) > 0
    return changed
