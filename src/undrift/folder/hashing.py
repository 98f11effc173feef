"""Keyed hashes: who has the key can tell that data is the same; who has not learns nothing.

The same data has the same hash in any order of rows and columns, as tables or as a graph folder.
"""

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any
from unicodedata import normalize

import numpy as np
import torch

from undrift.folder.batch import Array, Batch, LargeBatch
from undrift.graphs.fingerprint import Fingerprint, wrapped
from undrift.scale.graph_folder import GraphFolder
from undrift.sparse import Csr

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


def content_hash(batch: Batch | LargeBatch, key: bytes) -> str:
    """The hash of a batch, which tells data that differs by accident (`Fingerprint`).

    Cost: one pass over ids, features and edges, in memory 16 bytes per node.
    """
    seed = int.from_bytes(blake2b(key, digest_size=7, person=b"undrift seed").digest(), "big")
    numbers = ids = batch.ids  # a whole number per id: its own, where it is one in any file
    if ids.dtype.kind not in "iu" or ids.dtype == np.uint64:
        numbers = np.fromiter((_number(str(n), key) for n in ids.tolist()), np.int64, len(ids))
    marks = Fingerprint.of_numbers(torch.from_numpy(numbers.astype(np.int64)), seed)
    names = {c: _number(f"class {name}", key) for c, name in batch.class_names.items()}
    parts: list[Any] = [batch.columns, batch.graph.num_features, batch.graph.num_nodes]
    if isinstance(batch, LargeBatch):
        parts += _large_sums(marks, batch.graph, names)
    else:
        graph = batch.graph
        unknown = torch.full((graph.num_nodes,), -1)
        labels = _numbered(unknown if graph.labels is None else graph.labels, names)
        parts += [
            marks.features(graph.features),
            marks.edges(graph.adjacency),
            marks.labels(labels),
        ]
        parts += [[name, marks.labels(graph.masks[name])] for name in sorted(graph.masks)]
    text = json.dumps(parts).encode()
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
    return [wrapped(features), wrapped(edges), marks.labels(_numbered(labels, names))]


def _numbered(labels: torch.Tensor, names: Mapping[int, int]) -> torch.Tensor:
    """For every label the number of its class, 0 where it has none."""
    numbers = torch.zeros_like(labels)
    for c, number in names.items():
        numbers[labels == c] = number
    return numbers


def _number(word: str, key: bytes) -> int:
    """The number that a word writes, in its one way, or else a hash; both of 64 bits."""
    if _WHOLE.fullmatch(word) and -(2**63) <= int(word) < 2**63:
        return int(word)
    digest = blake2b(word.encode(), key=key, digest_size=8, person=b"undrift word").digest()
    return int.from_bytes(digest, "big", signed=True)


def spellings(name: str, *, kind: bool = False) -> list[str]:
    """A name as it is given, then without blanks around it and in either form of Unicode.

    `kind`: after a word for what it is, as in "user u9".

    >>> spellings("user  u9", kind=True)
    ['user  u9', 'user u9']
    """
    word, blank, bare = name.partition(" ") if kind else ("", "", name)
    bare = bare.strip()
    forms = (bare, normalize("NFC", bare), normalize("NFD", bare))
    return list(dict.fromkeys([name, *(f"{word}{blank}{form}" for form in forms)]))


def node_hashes(ids: Iterable[object], key: bytes) -> Array:
    """A hash of 8 bytes per node id, as int64."""
    words = [
        blake2b(str(name).encode(), key=key, digest_size=8, person=b"undrift node").digest()
        for name in ids
    ]
    return np.frombuffer(b"".join(words), dtype=">i8").astype(np.int64)
