"""Graphs in `.npz` files of two layouts: gnn-benchmark's and that of heterophilous-graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from undrift.datasets.arrays import Array, Npz, open_npz
from undrift.errors import InputError
from undrift.graphs import Graph

_LARGEST = 2**31 - 1
_HOLDS = "a gnn-benchmark file holds adj_*, attr_* and labels"


def read_npz(path: str | Path) -> Graph:
    """The graph in a file with the arrays `adj_*` and `attr_*` (two CSR matrices) and `labels`
    (Shchur et al., 2018), or `edges`, `node_features` and `node_labels` (Platonov et al., 2023).

    The adjacency becomes binary and symmetric (an edge in either direction is an edge in both)
    without self-loops. Features are sparse. Labels may have gaps and keep them. Only these
    arrays are read: files of this family also carry object arrays, which only pickle could load
    and which are never touched. A damaged or wrong file is an `InputError` that names the file
    and the array.
    """
    path = Path(path)
    with open_npz(path, _HOLDS) as archive:
        if "node_features" in archive:
            if archive.shape("node_labels")[:1] != archive.shape("node_features")[:1]:
                raise InputError(
                    f"{path} has {archive.shape('node_labels')} labels and features of shape "
                    f"{archive.shape('node_features')}; they must agree"
                )
            labels = archive.array("node_labels", "iu")
            features = sp.csr_matrix(
                archive.array("node_features", "iuf", ndim=2, dtype=np.float32)
            )
            adjacency = _links(archive, labels.size)
        else:
            _check_sizes(archive)
            adjacency = _matrix(archive, "adj")
            features = _matrix(archive, "attr")
            labels = archive.array("labels", "iu")
    try:
        return Graph.from_scipy(features, _undirected(adjacency), labels)
    except InputError as error:
        raise InputError(f"in {path}, {error}") from error


def read_topology(path: str | Path) -> tuple[sp.csr_matrix, Array]:
    """Edges and labels of a file of this layout, whether or not it has features.

    The adjacency is as `read_npz` makes it: binary, symmetric, without self-loops. Labels are
    int64.
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
    try:
        if lengths[0] != (rows + 1,) or lengths[1] != lengths[2]:
            raise ValueError("their lengths do not belong together")
        data = archive.array(f"{prefix}_data", "iufb")
        indices = archive.array(f"{prefix}_indices", "iu")
        indptr = archive.array(f"{prefix}_indptr", "iu")
        # scipy asks for it only where the last pointer is not 0
        if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
            raise ValueError("the row pointers do not rise from 0 to the number of entries")
        if prefix == "adj" and data.dtype.kind == "f" and not np.isfinite(data).all():
            raise ValueError("an edge has a weight that is NaN or infinite")
        matrix = sp.csr_matrix((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
    except InputError:
        raise
    except ValueError as error:
        raise _no_matrix(archive, prefix, error) from error
    return matrix


def _shape(archive: Npz, prefix: str) -> tuple[int, int]:
    """Rows and columns of a matrix."""
    shape = archive.array(f"{prefix}_shape", "iu").tolist()
    if len(shape) != 2 or min(shape) < 0 or max(shape) > _LARGEST:
        raise _no_matrix(archive, prefix, f"the shape is {shape}")
    return shape[0], shape[1]


def _no_matrix(archive: Npz, prefix: str, why: object) -> InputError:
    return InputError(
        f"the arrays {prefix}_data, {prefix}_indices, {prefix}_indptr and {prefix}_shape of "
        f"{archive.path} are not a CSR matrix ({why}); fetch the file again from its source"
    )


def _links(archive: Npz, nodes: int) -> sp.csr_matrix:
    """The adjacency of `edges`, a list of pairs of nodes."""
    edges = archive.array("edges", "iu", ndim=2)
    if edges.shape[1:] != (2,) or (edges.size and not 0 <= edges.min() <= edges.max() < nodes):
        raise InputError(
            f"edges of {archive.path} must be pairs of nodes from 0 to {nodes - 1}; fetch the file "
            "again from its source"
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
