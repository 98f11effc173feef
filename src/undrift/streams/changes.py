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

    Tasks of equal features, edges, splits and labels have the same one, dense or sparse and on any
    device. It tells batches that differ by accident, and is no guard against a forger
    (`Fingerprint`). Cost: one pass over features and edges.
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
    labels = task.labels.masked_fill(~(task.train | task.val), -1)
    rows = _parts(features) if isinstance(features, Csr) else [features]
    for column in (labels, *_parts(adjacency), task.train, task.val, *rows):
        digest.update(column.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _parts(matrix: Csr) -> list[Tensor]:
    return [matrix.indptr, matrix.indices, matrix.values]


def changed_nodes(before: Task, after: Task, ids: tuple[Any, Any] | None) -> tuple[Tensor, Tensor]:
    """Masks over the nodes of both: those whose features, edges, label or split differ.

    A node that the other side lacks has changed, and so have its neighbours. `ids` names the
    nodes of both; without it node i is the same node in both. Cost: one pass over both graphs.
    """
    here, there = _same_nodes(before.graph.num_nodes, after.graph.num_nodes, ids)
    differ = torch.from_numpy(_differ(before, after, here, there))
    masks = []
    for task, common in ((before, here), (after, there)):
        links = task.graph.adjacency.to("cpu")
        lacking = torch.ones(links.shape[0], dtype=torch.bool)
        lacking[common] = False
        around = torch.zeros_like(lacking)
        for neighbours in (links, links.t()):
            around[neighbours.columns_of(lacking.nonzero().flatten())] = True
        differ |= around[common]
        masks.append(lacking)
    masks[0][here], masks[1][there] = differ, differ
    return masks[0].to(before.graph.device), masks[1].to(after.graph.device)


def within_reach(graph: Graph, touched: Tensor, reach: Tensor) -> Tensor:
    """The nodes whose row looks at a touched node: at most `reach` hops away, per node."""
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
    a, b = ((task.train.long() + 2 * task.val.long()).cpu().numpy() for task in (before, after))
    differ: Array = a[here] != b[there]
    known = (a[here] > 0) | (b[there] > 0)
    a, b = (task.labels.cpu().numpy() for task in (before, after))
    differ |= (a[here] != b[there]) & known
    rows = [task.graph.features for task in (before, after)]
    if rows[0].shape[1] != rows[1].shape[1]:
        raise InputError(
            f"the batch has {rows[0].shape[1]} features before and {rows[1].shape[1]} after; give "
            "both the same columns"
        )
    if any(isinstance(each, Csr) for each in rows):
        a, b = map(_scipy, rows)
        differ |= np.diff((a[here] != b[there]).tocsr().indptr) > 0
    else:
        a, b = (each.to_dense().cpu().numpy() for each in rows)
        differ |= (a[here] != b[there]).any(axis=1)
    a, b = (_scipy(task.graph.adjacency) for task in (before, after))
    unequal = (a[here][:, here] != b[there][:, there]).tocoo()
    differ[unequal.row] = differ[unequal.col] = True
    return differ


def _scipy(rows: Tensor | Csr) -> Any:
    rows = rows.to("cpu")
    return rows.to_scipy() if isinstance(rows, Csr) else sp.csr_matrix(rows.numpy())
