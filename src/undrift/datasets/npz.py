"""Graphs in `.npz` files of the gnn-benchmark layout (Shchur et al., 2018)."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from undrift.errors import InputError
from undrift.graphs import Graph

__all__ = ["read_npz"]

Array = np.ndarray[Any, np.dtype[Any]]
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


def read_npz(path: str | Path) -> Graph:
    """The graph in a file with the arrays `adj_*` and `attr_*` (two CSR matrices) and `labels`.

    The adjacency becomes binary and symmetric (an edge in either direction is an edge in both)
    without self-loops. Features stay sparse. Only these nine arrays are read: files of this
    family also carry object arrays, which only pickle could load and which are never touched.
    A damaged or wrong file is an `InputError` that names the file and the array.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path")
    with path.open("rb") as file:  # opened here: np.load leaves a file open when it fails
        archive = _open(file, path)
        adjacency = _matrix(archive, "adj", path)
        features = _matrix(archive, "attr", path)
        labels = _array(archive, "labels", "iu", path)
    _check_sizes(adjacency, features, labels, path)
    try:
        return Graph.from_scipy(features, _undirected(adjacency), labels)
    except InputError as error:
        raise InputError(f"in {path}, {error}") from error


def _open(file: BinaryIO, path: Path) -> Any:
    try:
        archive = np.load(file, allow_pickle=False)
    except _DAMAGE as error:
        raise InputError(
            f"{path} is damaged or not an .npz file; fetch it again from its source"
        ) from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"{path} holds a single array; an .npz file of named arrays is needed")
    return archive


def _array(archive: Any, name: str, kinds: str, path: Path) -> Array:
    """One array by its name; `kinds` are the numpy type kinds it may have (i, u, f, b)."""
    if name not in archive.files:
        raise InputError(
            f"{path} has no array {name!r}; a gnn-benchmark file holds adj_*, attr_* and labels"
        )
    try:
        array: Array = archive[name]
    except _DAMAGE as error:
        raise InputError(
            f"array {name!r} of {path} is damaged or not made of numbers; fetch the file again "
            "from its source"
        ) from error
    if array.dtype.kind not in kinds or array.ndim != 1:
        wanted = "whole numbers" if kinds == "iu" else "numbers"
        raise InputError(
            f"array {name!r} of {path} must be a list of {wanted}, not {array.dtype} of shape "
            f"{array.shape}"
        )
    return array


def _matrix(archive: Any, prefix: str, path: Path) -> sp.csr_matrix:
    data = _array(archive, f"{prefix}_data", "iufb", path)
    indices = _array(archive, f"{prefix}_indices", "iu", path)
    indptr = _array(archive, f"{prefix}_indptr", "iu", path)
    shape = _array(archive, f"{prefix}_shape", "iu", path)
    try:
        rows, columns = shape.tolist()
        matrix = sp.csr_matrix((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(
            f"the arrays {prefix}_data, {prefix}_indices, {prefix}_indptr and {prefix}_shape of "
            f"{path} are not a CSR matrix ({error}); fetch the file again from its source"
        ) from error
    return matrix


def _check_sizes(
    adjacency: sp.csr_matrix, features: sp.csr_matrix, labels: Array, path: Path
) -> None:
    n = adjacency.shape[0]
    if adjacency.shape[1] != n:
        raise InputError(f"adj_shape of {path} is {n} x {adjacency.shape[1]}; it must be square")
    if features.shape[0] != n or labels.size != n:
        raise InputError(
            f"{path} has {n} nodes in adj_shape, {features.shape[0]} in attr_shape and "
            f"{labels.size} in labels; the three must agree"
        )


def _undirected(adjacency: sp.csr_matrix) -> sp.csr_matrix:
    """A or A^T, binary, without the diagonal."""
    links = adjacency != 0
    links = (links + links.T).tocsr().astype(np.float32)
    links.setdiag(0.0)
    links.eliminate_zeros()
    return links
