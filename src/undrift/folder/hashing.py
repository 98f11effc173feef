"""Keyed hashes: who has the key can tell that data is the same; who has not learns nothing.

The same nodes, features, labels and edges have the same hash, in whatever order a file has its
rows and columns. `data_hash` depends on the form: tables and a graph folder of one content have
two. `content_hash` does not: its sums can be made of a graph that is read in pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from undrift.folder.batch import Batch, LargeBatch
from undrift.graphs.fingerprint import Fingerprint, wrapped
from undrift.scale.graph_folder import GraphFolder
from undrift.sparse import Csr

Array = np.ndarray[Any, np.dtype[Any]]
_ROWS = 65_536
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


def data_hash(batch: Batch | LargeBatch, key: bytes) -> str:
    """The hash of a batch in its form, which must have its columns in the learner's order.

    Cost: a sort of the ids and one pass over features and edges; of a graph folder none, as it was
    hashed when it was imported.
    """
    if isinstance(batch, LargeBatch):
        content = batch.graph.manifest.content.encode()
        return blake2b(content, key=key, digest_size=16, person=b"undrift large").hexdigest()
    names, labels = batch.words, batch.labels
    order = sorted(range(len(names)), key=names.__getitem__)
    graph = batch.graph.subgraph(np.array(order, dtype=np.int64))
    digest = blake2b(key=key, digest_size=16, person=b"undrift data")
    told: list[Any] = [batch.columns, graph.num_features]
    told += [[names[i] for i in order], [labels[i] for i in order]]
    digest.update(json.dumps(told).encode())
    for start in range(0, graph.num_nodes, _ROWS):
        rows = graph.features[torch.arange(start, min(start + _ROWS, graph.num_nodes))]
        _update(digest, rows.to_scipy() if isinstance(rows, Csr) else rows.numpy())
    _update(digest, graph.adjacency.to_scipy())
    for name in sorted(graph.masks):
        digest.update(name.encode() + graph.masks[name].numpy().tobytes())
    return digest.hexdigest()


def _update(digest: Any, matrix: Any) -> None:
    """A matrix by its entries that are not zero, so that dense and sparse are the same."""
    csr = sp.csr_matrix(matrix)
    csr.sort_indices()
    csr.eliminate_zeros()
    for array, kind in ((csr.indptr, "<i8"), (csr.indices, "<i8"), (csr.data, "<f4")):
        digest.update(array.astype(kind).tobytes())


def content_hash(batch: Batch | LargeBatch, key: bytes) -> str:
    """The hash of a batch, in whatever form it came; its columns are in the learner's order.

    Cost: one pass over ids, features and edges, in memory 16 bytes per node. It tells data that
    differs by accident (`Fingerprint`).
    """
    seed = int.from_bytes(blake2b(key, digest_size=7, person=b"undrift seed").digest(), "big")
    marks = Fingerprint.of_numbers(_numbers(batch.ids, key), seed)
    names = {c: _number(f"class {name}", key) for c, name in batch.class_names.items()}
    told: list[Any] = [batch.columns, batch.graph.num_features, batch.graph.num_nodes]
    if isinstance(batch, LargeBatch):
        told += _large_sums(marks, batch.graph, names)
    else:
        graph = batch.graph
        unknown = torch.full((graph.num_nodes,), -1)
        labels = _told(unknown if graph.labels is None else graph.labels, names)
        told += [marks.features(graph.features), marks.edges(graph.adjacency), marks.labels(labels)]
        told += [[name, marks.labels(graph.masks[name])] for name in sorted(graph.masks)]
    text = json.dumps(told).encode()
    return blake2b(text, key=key, digest_size=16, person=b"undrift content").hexdigest()


def _large_sums(marks: Fingerprint, graph: GraphFolder, names: Mapping[int, int]) -> list[int]:
    """The sums of a graph folder, a piece at a time."""
    features, edges, n = [], [], graph.num_nodes
    for chunk, start in enumerate(range(0, n, graph.manifest.rows)):
        rows = torch.from_numpy(graph.rows(chunk).astype(np.float32))
        features.append(marks.features(rows, start))
    for shard, indptr, indices, _ in graph.shards():
        parts = torch.from_numpy(indptr), torch.from_numpy(indices), torch.ones(len(indices))
        edges.append(marks.edges(Csr.trusted(*parts, (len(indptr) - 1, n)), shard.start))
    labels = torch.from_numpy(graph.labels).long()
    return [wrapped(features), wrapped(edges), marks.labels(_told(labels, names))]


def _told(labels: torch.Tensor, names: Mapping[int, int]) -> torch.Tensor:
    """For every label the number of its class, 0 where it has none."""
    if not names:
        return torch.zeros_like(labels)
    known = torch.tensor(sorted(names), dtype=torch.int64)
    numbers = torch.tensor([names[c] for c in known.tolist()])
    place = torch.searchsorted(known, labels).clamp(max=len(names) - 1)
    return numbers[place].masked_fill(known[place] != labels, 0)


def _numbers(ids: Array, key: bytes) -> torch.Tensor:
    """A whole number per id: its own, where it is one, however a file writes it."""
    if ids.dtype.kind in "iu" and ids.dtype != np.uint64:
        return torch.from_numpy(ids.astype(np.int64))
    numbers = (_number(str(name), key) for name in ids.tolist())
    return torch.from_numpy(np.fromiter(numbers, np.int64, len(ids)))


def _number(word: str, key: bytes) -> int:
    """The number that a word writes, in its one way, or else a hash; both of 64 bits."""
    if _WHOLE.fullmatch(word) and -(2**63) <= int(word) < 2**63:
        return int(word)
    digest = blake2b(word.encode(), key=key, digest_size=8, person=b"undrift word").digest()
    return int.from_bytes(digest, "big", signed=True)


def node_hashes(ids: Iterable[object], key: bytes) -> Array:
    """A hash of 8 bytes per node id, sorted, as int64."""
    words = [
        blake2b(str(name).encode(), key=key, digest_size=8, person=b"undrift node").digest()
        for name in ids
    ]
    return np.sort(np.frombuffer(b"".join(words), dtype=">i8").astype(np.int64))
