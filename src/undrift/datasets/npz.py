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
    without self-loops. Features are sparse. Labels may have gaps and keep them. Only these
    arrays are read: other ones may be object arrays, which only pickle could load.
    """
    path = Path(path)
    with open_npz(path, _HOLDS) as archive:
        if "node_features" in archive:
            shapes = [archive.shape(name) for name in ("node_labels", "node_features")]
            if shapes[0][:1] != shapes[1][:1]:
                raise InputError(
                    f"{path} has {shapes[0]} labels and features of shape {shapes[1]}; they must "
                    "agree"
                )
            labels = archive.array("node_labels", "iu")
            dense = archive.array("node_features", "iuf", ndim=2, dtype=np.float32)
            features, adjacency = sp.csr_matrix(dense), _links(archive, labels.size)
        else:
            _check_sizes(archive)
            adjacency = _matrix(archive, "adj")
            features = _matrix(archive, "attr")
            labels = archive.array("labels", "iu")
    with naming(path):
        return Graph.from_scipy(features, _undirected(adjacency), labels)


def read_topology(path: str | Path) -> tuple[sp.csr_matrix, Array]:
    """Edges and labels of a file of this layout, whether or not it has features.

    The adjacency is as `read_npz` makes it. Labels are int64.
    """
    with open_npz(path, _HOLDS) as archive:
        _check_sizes(archive, features=False)
        adjacency = _matrix(archive, "adj")
        labels = archive.array("labels", "iu", dtype=np.int64)
    return _undirected(adjacency), labels


def _matrix(archive: Npz, prefix: str) -> sp.csr_matrix:
    rows, columns = _shape(archive, prefix)
    # by their headers, before any of them is unpacked
    lengths = [archive.shape(f"{prefix}_{part}")[:1] for part in ("indptr", "indices", "data")]
    if lengths[0] != (rows + 1,) or lengths[1] != lengths[2]:
        raise _no_matrix(archive, prefix, "their lengths do not belong together")
    data = archive.array(f"{prefix}_data", "iufb")
    indices = archive.array(f"{prefix}_indices", "iu")
    indptr = archive.array(f"{prefix}_indptr", "iu")
    # scipy asks for it only where the last pointer is not 0
    if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise _no_matrix(archive, prefix, "the row pointers do not rise from 0 to their number")
    if prefix == "adj" and data.dtype.kind == "f" and not np.isfinite(data).all():
        raise _no_matrix(archive, prefix, "an edge has a weight that is NaN or infinite")
    try:
        matrix = sp.csr_matrix((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise _no_matrix(archive, prefix, error) from error
    return matrix


def _shape(archive: Npz, prefix: str) -> tuple[int, int]:
    shape = archive.array(f"{prefix}_shape", "iu").tolist()
    if len(shape) != 2 or min(shape) < 0 or max(shape) > _LARGEST:
        raise _no_matrix(archive, prefix, f"the shape is {shape}")
    return shape[0], shape[1]


def _no_matrix(archive: Npz, prefix: str, why: object) -> InputError:
    return InputError(
        f"the arrays {prefix}_data, {prefix}_indices, {prefix}_indptr and {prefix}_shape of "
        f"{archive.path} are not a CSR matrix ({why}); {FETCH_AGAIN}"
    )


def _links(archive: Npz, nodes: int) -> sp.csr_matrix:
    """The adjacency of `edges`, a list of pairs of nodes."""
    edges = archive.array("edges", "iu", ndim=2)
    if edges.shape[1:] != (2,) or (edges.size and not 0 <= edges.min() <= edges.max() < nodes):
        raise InputError(
            f"edges of {archive.path} must be pairs of nodes from 0 to {nodes - 1}; {FETCH_AGAIN}"
        )
    return sp.csr_matrix((np.ones(len(edges)), edges.T), shape=(nodes, nodes))


def _check_sizes(archive: Npz, *, features: bool = True) -> None:
    """What the shapes and the header of the labels say, before anything is unpacked."""
    n, columns = _shape(archive, "adj")
    if columns != n:
        raise InputError(f"adj_shape of {archive.path} is {n} x {columns}; it must be square")
    rows = _shape(archive, "attr")[0] if features else n
    labels = archive.shape("labels")
    if rows != n or (len(labels) == 1 and labels[0] != n):
        middle = f", {rows} in attr_shape" if features else ""
        raise InputError(
            f"{archive.path} has {n} nodes in adj_shape{middle} and {labels[0]} in labels; they "
            "must agree"
        )


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
    `node_types`, is not read: a stream makes its own. Cost: built for 115 million edges, which
    are sorted by counting, in about 20 bytes an edge: under 3 GB for the published files.
    """
    data_path, graph_path = Path(data_path), Path(graph_path)
    adjacency = _reddit_edges(graph_path)
    n = adjacency.shape[0]
    with open_npz(data_path, _REDDIT_DATA) as archive:
        # by their headers, before either is unpacked
        counts = [(*archive.shape(name), 0)[0] for name in ("feature", "label")]
        if counts != [n, n]:
            raise InputError(
                f"{data_path} has {counts[0]} nodes in feature and {counts[1]} in label, but "
                f"{graph_path} has {n}; take both files from one reddit.zip"
            )
        features = archive.array("feature", "iuf", ndim=2, dtype=np.float32)
        labels = torch.from_numpy(archive.array("label", "iu", dtype=np.int64))
    with naming(data_path):
        return Graph(torch.from_numpy(np.ascontiguousarray(features)), adjacency, labels)


def _reddit_edges(path: Path) -> Csr:
    with open_npz(path, _REDDIT_GRAPH) as archive:
        kind = archive.text("format")
        if kind != "coo":
            raise InputError(f"{path} is a scipy matrix in {kind!r} format; the COO one is needed")
        shape = archive.array("shape", "iu").tolist()
        if len(shape) != 2 or shape[0] != shape[1] or not 0 <= shape[0] <= _LARGEST:
            raise InputError(f"shape of {path} is {shape}; a square matrix is needed")
        nodes = int(shape[0])
        sizes = [(*archive.shape(name), 0)[0] for name in ("row", "col", "data")]
        if len(set(sizes)) > 1:
            raise InputError(
                f"row, col and data of {path} have {sizes[0]}, {sizes[1]} and {sizes[2]} entries; "
                f"{FETCH_AGAIN}"
            )
        row, column = _ends(archive, "row", nodes), _ends(archive, "col", nodes)
        there = archive.array("data", "iufb", dtype=np.bool_)  # a byte each, whatever their type
    if not there.all():  # an entry of weight zero is no edge
        row, column = row[there], column[there]
    del there
    links = _sorted(row, column, nodes)
    turned = links.tocsc()  # the transpose in CSR: equal arrays are a symmetric matrix
    pairs = ((turned.indptr, links.indptr), (turned.indices, links.indices))
    if not all(np.array_equal(one, other) for one, other in pairs):
        links = links + turned.T
    indptr, indices = torch.from_numpy(links.indptr), torch.from_numpy(links.indices)
    return Csr(indptr, indices, torch.ones(links.nnz), (nodes, nodes), symmetric=True)


def _ends(archive: Npz, name: str, nodes: int) -> Array:
    """One end of every edge, as int32."""
    ends = archive.array(name, "iu", dtype=np.int32)
    low, high = (ends.min(), ends.max()) if ends.size else (0, -1)
    if low < 0 or high >= nodes:
        raise InputError(
            f"array {name!r} of {archive.path} names node {low if low < 0 else high}, but there "
            f"are {nodes}, numbered from 0; {FETCH_AGAIN}"
        )
    return ends


def _sorted(row: Array, column: Array, nodes: int) -> sp.csr_matrix:
    """The CSR matrix of these entries, its columns sorted, without duplicates or a diagonal.

    Sorted by counting: entries put in order of their columns, and then, keeping that order, of
    their rows.
    """
    ones = np.ones(row.size, np.int8)
    turned = sp.coo_matrix((ones, (column, row)), shape=(nodes, nodes))
    turned.has_canonical_format = True  # not so, but it spares a sort: the next pass sorts anyway
    turned = turned.tocsr()
    links = turned.tocsc().T  # the same arrays, read as a CSR matrix
    del turned
    links.sum_duplicates()
    links.data[:] = 1  # duplicates were added up: an edge counts once
    if links.diagonal().any():
        rows = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(links.indptr))
        links.data[links.indices == rows] = 0
        links.eliminate_zeros()
    return links
