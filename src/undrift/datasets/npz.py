"""Graphs in `.npz` files: gnn-benchmark's layout, that of heterophilous-graphs, and Reddit's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from undrift.datasets.archives import FETCH_AGAIN, Array, Npz, open_npz
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.sparse import Csr

_LARGEST = 2**31 - 1
_HOLDS = "a gnn-benchmark file holds adj_*, attr_* and labels"
_REDDIT_DATA = "reddit_data.npz holds feature, label, node_ids and node_types"
_REDDIT_GRAPH = "reddit_graph.npz holds row, col, data, shape and format, a scipy COO matrix"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Inside, an error of making the graph also names its file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"in {path}, {error}") from error


def read_npz(path: str | Path) -> Graph:
    """The graph in a file with the arrays `adj_*` and `attr_*` (two CSR matrices) and `labels`
    (Shchur et al., 2018), or `edges`, `node_features` and `node_labels` (Platonov et al., 2023).

    The adjacency becomes binary and symmetric (an edge in either direction is an edge in both)
    without self-loops. Features are sparse. Labels may have gaps and keep them.
    """
    with open_npz(path, _HOLDS) as archive:
        if "node_features" in archive:
            labels = archive.array("node_labels", "iu")
            dense = archive.array("node_features", "iuf", ndim=2, dtype=np.float32)
            features, adjacency = sp.csr_matrix(dense), _links(archive, labels.size)
        else:
            adjacency, features = _matrix(archive, "adj"), _matrix(archive, "attr")
            labels = archive.array("labels", "iu")
    with naming(Path(path)):
        return Graph.from_scipy(features, _undirected(adjacency), labels)


def read_topology(path: str | Path) -> tuple[sp.csr_matrix, Array]:
    """Edges, as `read_npz` makes them, and labels of a file that may have no features."""
    with open_npz(path, _HOLDS) as archive:
        adjacency = _matrix(archive, "adj")
        labels = archive.array("labels", "iu", dtype=np.int64)
    if labels.size != adjacency.shape[0]:
        told = f"{adjacency.shape[0]} nodes in adj_shape and {labels.size} in labels"
        raise InputError(f"{path} has {told}; they must agree")
    return _undirected(adjacency), labels


def _matrix(archive: Npz, prefix: str) -> sp.csr_matrix:
    """A CSR matrix; the adjacency must be square and its weights finite."""

    def wrong(why: object) -> InputError:
        names = ", ".join(f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape"))
        return InputError(f"{names} of {archive.path} are not a CSR matrix ({why}); {FETCH_AGAIN}")

    shape = archive.array(f"{prefix}_shape", "iu").tolist()
    if len(shape) != 2 or min(shape) < 0 or max(shape) > _LARGEST:
        raise wrong(f"the shape is {shape}")
    if prefix == "adj" and shape[0] != shape[1]:
        raise InputError(f"adj_shape of {archive.path} is {shape[0]} x {shape[1]}, not square")
    # by their headers, before any of them is unpacked
    lengths = [archive.shape(f"{prefix}_{part}")[:1] for part in ("indptr", "indices", "data")]
    if lengths[0] != (shape[0] + 1,) or lengths[1] != lengths[2]:
        raise wrong("their lengths do not belong together")
    data = archive.array(f"{prefix}_data", "iufb")
    indices, indptr = (archive.array(f"{prefix}_{part}", "iu") for part in ("indices", "indptr"))
    # scipy asks for it only where the last pointer is not 0
    if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise wrong("the row pointers do not rise from 0 to their number")
    if prefix == "adj" and data.dtype.kind == "f" and not np.isfinite(data).all():
        raise wrong("an edge has a weight that is NaN or infinite")
    try:
        matrix = sp.csr_matrix((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise wrong(error) from error
    return matrix


def _links(archive: Npz, nodes: int) -> sp.csr_matrix:
    """The adjacency of `edges`, a list of pairs of nodes."""
    edges = archive.array("edges", "iu", ndim=2)
    if edges.shape[1:] != (2,):
        raise InputError(f"edges of {archive.path} must be pairs of nodes; {FETCH_AGAIN}")
    _check_ends(edges, nodes, archive.path)
    return sp.csr_matrix((np.ones(len(edges)), edges.T), shape=(nodes, nodes))


def _check_ends(ends: Array, nodes: int, path: Path) -> None:
    low, high = (ends.min(), ends.max()) if ends.size else (0, -1)
    if low < 0 or high >= nodes:
        told = f"names node {low if low < 0 else high}, but there are {nodes}, numbered from 0"
        raise InputError(f"an edge of {path} {told}; {FETCH_AGAIN}")


def _undirected(adjacency: sp.csr_matrix) -> sp.csr_matrix:
    """A or A^T, binary, without the diagonal."""
    links = adjacency != 0
    links = (links + links.T).tocsr().astype(np.float32)
    links.setdiag(0.0)
    links.eliminate_zeros()
    return links


def read_reddit(data_path: str | Path, graph_path: str | Path) -> Graph:
    """The Reddit graph (Hamilton et al., 2017) in the two files that DGL publishes:
    `reddit_data.npz` (features and labels) and `reddit_graph.npz` (edges).

    The adjacency becomes binary and symmetric without self-loops. The published split by time,
    `node_types`, is not read. Cost: 20 bytes an edge, under 3 GB for the published 115 million.
    """
    adjacency = _reddit_edges(Path(graph_path))
    with open_npz(data_path, _REDDIT_DATA) as archive:
        features = archive.array("feature", "iuf", ndim=2, dtype=np.float32)
        labels = torch.from_numpy(archive.array("label", "iu", dtype=np.int64))
    with naming(Path(data_path)):
        return Graph(torch.from_numpy(np.ascontiguousarray(features)), adjacency, labels)


def _reddit_edges(path: Path) -> Csr:
    with open_npz(path, _REDDIT_GRAPH) as archive:
        shape = archive.array("shape", "iu").tolist()
        if len(shape) != 2 or not 0 <= shape[0] == shape[1] <= _LARGEST:
            raise InputError(f"shape of {path} is {shape}; a square matrix is needed")
        nodes = int(shape[0])
        sizes = [archive.shape(name) for name in ("row", "col", "data")]
        if len(set(sizes)) > 1:
            raise InputError(f"row, col and data of {path} have the shapes {sizes}; {FETCH_AGAIN}")
        row, column = (archive.array(name, "iu", dtype=np.int32) for name in ("row", "col"))
        there = archive.array("data", "iufb", dtype=np.bool_)  # a byte each, whatever their type
    _check_ends(row, nodes, path)
    _check_ends(column, nodes, path)
    keep = there & (row != column)  # an entry of weight zero is no edge
    if not keep.all():
        row, column = row[keep], column[keep]
    # of booleans the sum is the union: duplicates are one edge
    links = sp.csr_matrix((np.ones(row.size, np.bool_), (row, column)), shape=(nodes, nodes))
    del row, column, there, keep
    links = links + links.T
    links.sort_indices()
    indptr, indices = torch.from_numpy(links.indptr), torch.from_numpy(links.indices)
    return Csr(indptr, indices, torch.ones(links.nnz), (nodes, nodes), symmetric=True)
