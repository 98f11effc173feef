"""What takes long to generate, kept on disk: 0/1 matrices as plain arrays."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from undrift.datasets.arrays import Array, open_npz
from undrift.datasets.folder import cache_folder
from undrift.errors import InputError
from undrift.storage.files import write_atomically

__all__ = ["cached_matrix"]

VERSION = 1
"""Raise it when a generator changes: matrices of other versions are not read."""

SMALLEST = 1_000_000
"""Entries from which on a matrix is kept: a smaller one is made in no time."""


def cached_matrix(
    name: str, labels: Array, shape: tuple[int, int], make: Callable[[], sp.csr_matrix]
) -> sp.csr_matrix:
    """The 0/1 matrix kept under this name (int8 ones, columns sorted), else what `make` gives.

    Only its pattern is kept, as int32, under a name that also depends on the nodes' `labels`:
    from others another matrix is drawn. A file that is damaged, of another version or of another
    shape is made again and replaced. Where nothing can be written, nothing is kept, nor is a
    matrix that is small.
    """
    path = cache_folder("stand-ins") / f"{name}-{crc32(labels.tobytes()):08x}-v{VERSION}.npz"
    if path.is_file():
        with suppress(InputError, ValueError):
            return _read(path, shape)
    matrix = make()
    if matrix.nnz >= SMALLEST:
        with suppress(InputError):  # a cache is a convenience: a full disk must not stop a run
            _write(path, matrix)
    return matrix


def _read(path: Path, shape: tuple[int, int]) -> sp.csr_matrix:
    with open_npz(path, "a stand-in's matrix is made of indptr, indices and shape") as archive:
        found = tuple(archive.array("shape", "iu").tolist())
        indptr = archive.array("indptr", "iu", dtype=np.int32)
        indices = archive.array("indices", "iu", dtype=np.int32)
    if found != shape:
        raise InputError(f"{path} holds a matrix of another shape")
    matrix = sp.csr_matrix((np.ones(indices.size, np.int8), indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        raise InputError(f"the columns of a row do not rise in {path}")
    return matrix


def _write(path: Path, matrix: sp.csr_matrix) -> None:
    buffer = io.BytesIO()
    np.savez(
        buffer,
        shape=np.array(matrix.shape),
        indptr=matrix.indptr.astype(np.int32),
        indices=matrix.indices.astype(np.int32, copy=False),
    )
    write_atomically(path, buffer.getvalue())
