"""What tells that a batch is one that was seen before."""

from __future__ import annotations

from hashlib import sha256

from undrift.graphs.fingerprint import Fingerprint
from undrift.sparse import Csr
from undrift.streams.task import Task

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
