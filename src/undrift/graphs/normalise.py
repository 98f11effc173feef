"""From an adjacency matrix to the operator that a layer aggregates with."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from undrift.errors import unknown_name
from undrift.sparse import Csr

Normalisation = Literal["symmetric", "row", "sum"]
NORMALISATIONS: tuple[str, ...] = get_args(Normalisation)


def normalise(adjacency: Csr, kind: Normalisation = "symmetric", *, self_loops: bool = True) -> Csr:
    """The weights omega_oj of eq. 5 as a matrix.

    `symmetric` is D^-1/2 (A + I) D^-1/2 (Kipf and Welling), `row` the mean D^-1 (A + I), `sum`
    the plain A + I; D is the degree into the receiver, and out of the sender on the right side.
    Without self-loops the I is left out; a node without neighbours (or whose weights do not sum
    to more than zero) then aggregates to zero, never to NaN. Cost: one pass over the edges.

    >>> a = Csr.from_scipy(sp.csr_matrix([[0.0, 1.0], [1.0, 0.0]]), symmetric=True)
    >>> normalise(a).to_dense().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    if kind not in NORMALISATIONS:
        raise unknown_name("normalisation", kind, NORMALISATIONS)
    matrix = adjacency.to_scipy().astype(np.float64)
    if self_loops:
        matrix = (matrix + sp.identity(matrix.shape[0], format="csr")).tocsr()
    into = np.asarray(matrix.sum(axis=1)).ravel()
    if kind == "symmetric":
        out = into if adjacency.symmetric else np.asarray(matrix.sum(axis=0)).ravel()
        matrix = sp.diags(_power(into, -0.5)) @ matrix @ sp.diags(_power(out, -0.5))
    elif kind == "row":
        matrix = sp.diags(_power(into, -1.0)) @ matrix
    matrix = matrix.tocsr()
    matrix.sort_indices()
    return Csr.from_scipy(
        matrix, dtype=adjacency.dtype, symmetric=adjacency.symmetric and kind != "row"
    ).to(adjacency.device)


class Operators:
    """The normalised forms of one adjacency matrix: each is made when asked for, and kept.

    Memory: the edges once more, and the nodes, for every kind asked for.
    """

    def __init__(self, adjacency: Csr) -> None:
        self._adjacency = adjacency
        self._made: dict[tuple[str, bool], Csr] = {}

    def __call__(self, kind: Normalisation = "symmetric", *, self_loops: bool = True) -> Csr:
        """`normalise` of the adjacency."""
        if (kind, self_loops) not in self._made:
            made = normalise(self._adjacency, kind, self_loops=self_loops)
            self._made[kind, self_loops] = made
        return self._made[kind, self_loops]


def _power(degrees: np.ndarray, exponent: float) -> np.ndarray:
    safe = np.where(degrees > 0, degrees, 1.0)
    return np.where(degrees > 0, safe**exponent, 0.0)
