"""Columns that tell how many features a node has, which rows of length one do not."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from undrift.learners.parts.propagation.propagated import effective_feature_count
from undrift.sparse import Csr
from undrift.typing import Rows

COUNTS = 26
"""How many columns there are: two to each doubling, up to some eight thousand."""

_STEPS = 2  # columns to each doubling
_WEIGHT = 3.0  # of the columns: so much less than words they are shrunk


def count_columns(features: Rows) -> Csr:
    """`[nodes, 26]` in float64: each node's effective feature count, between two of the columns.

    Column k stands for a count of `2^(k / 2) - 1`. A count lies between two columns and weighs on
    both, more on the nearer one, so that a linear function of the columns is any curve over the
    logarithm. A node's own features decide: no edge does, so that a row is the same in a batch's
    graph and in the world.

    >>> import torch
    >>> count_columns(torch.tensor([[1.0, 1.0, 1.0]])).to_dense().nonzero().tolist()
    [[0, 4]]
    """
    held = effective_feature_count(features)
    count = held.cpu().numpy()
    place = np.clip(_STEPS * np.log2(1 + count), 0, COUNTS - 1)
    first = np.minimum(place.astype(np.int64), COUNTS - 2)
    right = place - first
    values = _WEIGHT * np.stack([1 - right, right], axis=1).ravel()
    columns = np.stack([first, first + 1], axis=1).ravel()
    pointers = np.arange(len(count) + 1) * 2
    matrix = sp.csr_matrix((values, columns, pointers), shape=(len(count), COUNTS))
    matrix.eliminate_zeros()
    return Csr.from_scipy(matrix, dtype=held.dtype).to(held.device)
