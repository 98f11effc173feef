"""What takes long to generate, kept on disk: 0/1 matrices as plain arrays."""

from collections.abc import Callable, Mapping
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from undrift.datasets.archives import Array, kept
from undrift.datasets.folder import stand_in_folder
from undrift.errors import InputError

VERSION = 1
"""Raise it when a generator changes: matrices of other versions are not read."""

SMALLEST = 1_000_000
"""Entries from which on a matrix is kept: a smaller one is made in no time."""

_KINDS = {"shape": ("iu", 1), "indptr": ("iu", 1), "indices": ("iu", 1)}


def cached_matrix(
    name: str, labels: Array, shape: tuple[int, int], make: Callable[[], sp.csr_matrix]
) -> sp.csr_matrix:
    """The 0/1 matrix kept under this name (int8 ones, columns sorted), else what `make` gives.

    Only its pattern is kept, as int32, under a name that also depends on the nodes' `labels`:
    from others another matrix is drawn. What is damaged, of another version or shape is made
    again and replaced; what is small is not kept. `undrift data list` shows what is.
    """

    def pattern() -> dict[str, Array]:
        matrix = make()
        return {
            "shape": np.array(matrix.shape),
            "indptr": matrix.indptr.astype(np.int32),
            "indices": matrix.indices.astype(np.int32, copy=False),
        }

    def build(arrays: Mapping[str, Array]) -> sp.csr_matrix:
        ones = np.ones(arrays["indices"].size, np.int8)
        try:
            matrix = sp.csr_matrix((ones, arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"the {name} that was kept is no matrix") from error
        if tuple(arrays["shape"].tolist()) != shape or not matrix.has_canonical_format:
            raise InputError(f"the {name} that was kept has another shape or order")
        return matrix

    key = f"{name}-{crc32(labels.tobytes()):08x}-v{VERSION}"

    def worth(matrix: sp.csr_matrix) -> bool:
        return bool(matrix.nnz >= SMALLEST)

    return kept(stand_in_folder() / f"{key}.npz", key, pattern, build, _KINDS, worth=worth)
