"""Keyed hashes: who has the key can tell that data is the same; who has not learns nothing.

The same nodes, features, labels and edges have the same hash, in whatever order a file has its
rows and columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from undrift.folder.batch import Batch
from undrift.folder.large_batch import LargeBatch
from undrift.sparse import Csr

Array = np.ndarray[Any, np.dtype[Any]]
_ROWS = 65_536


def data_hash(batch: Batch | LargeBatch, key: bytes) -> str:
    """The hash of a batch, which must have its columns in the learner's order.

    Cost: a sort of the ids and one pass over features and edges. A graph folder has been hashed
    when it was imported, in another way: what is in both forms has two hashes.
    """
    if isinstance(batch, LargeBatch):
        content = batch.graph.manifest.content.encode()
        return blake2b(content, key=key, digest_size=16, person=b"undrift large").hexdigest()
    names = [str(name) for name in batch.ids.tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    graph = batch.graph.subgraph(np.array(order, dtype=np.int64))
    labels = batch.labels
    digest = blake2b(key=key, digest_size=16, person=b"undrift data")
    told = [
        batch.columns,
        graph.num_features,
        [names[i] for i in order],
        [labels[i] for i in order],
    ]
    digest.update(json.dumps(told).encode())
    for start in range(0, graph.num_nodes, _ROWS):
        rows = graph.features[torch.arange(start, min(start + _ROWS, graph.num_nodes))]
        _update(digest, rows.to_scipy() if isinstance(rows, Csr) else rows.numpy())
    _update(digest, graph.adjacency.to_scipy())
    for name in sorted(graph.masks):
        digest.update(name.encode() + graph.masks[name].numpy().tobytes())
    return digest.hexdigest()


def node_hashes(ids: Iterable[object], key: bytes) -> Array:
    """A hash of 8 bytes per node id, sorted, as int64."""
    words = [
        blake2b(str(name).encode(), key=key, digest_size=8, person=b"undrift node").digest()
        for name in ids
    ]
    return np.sort(np.frombuffer(b"".join(words), dtype=">i8").astype(np.int64))


def _update(digest: Any, matrix: Any) -> None:
    """A matrix by its entries that are not zero, so that dense and sparse are the same."""
    csr = sp.csr_matrix(matrix)
    csr.sort_indices()
    csr.eliminate_zeros()
    for array, kind in ((csr.indptr, "<i8"), (csr.indices, "<i8"), (csr.data, "<f4")):
        digest.update(array.astype(kind).tobytes())
