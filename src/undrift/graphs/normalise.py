"""From an adjacency matrix to the operator that a layer aggregates with."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from undrift.errors import unknown_name
from undrift.sparse import Csr

Normalisation = Literal["symmetric", "row", "sum"]
Array = np.ndarray[Any, Any]
NORMALISATIONS: tuple[str, ...] = get_args(Normalisation)


class Degrees:
    """The sums of edge weights into and out of each node, in float64, without self-loops.

    Of some nodes of a larger graph (`of`) they are those of the larger one.
    """

    def __init__(self, adjacency: Csr) -> None:
        self._adjacency = adjacency

    @cached_property
    def into(self) -> Array:
        """What each node receives."""
        return self._adjacency.row_sums()

    @cached_property
    def out(self) -> Array:
        """What each node sends. Cost: a pass over all edges, once, if the graph is directed."""
        if self._adjacency.symmetric:
            return self.into
        columns, values = (
            part.cpu().numpy() for part in (self._adjacency.indices, self._adjacency.values)
        )
        sums: Array = np.bincount(columns, values, self._adjacency.shape[1])
        return sums

    def of(self, nodes: Tensor) -> Degrees:
        """Those of some nodes. Cost: the edges into them."""
        return _SomeDegrees(self, nodes)


class _SomeDegrees(Degrees):
    def __init__(self, whole: Degrees, nodes: Tensor) -> None:
        super().__init__(whole._adjacency)
        self._whole, self._nodes = whole, nodes

    @cached_property
    def into(self) -> Array:
        return self._adjacency.row_sums(self._nodes)

    @cached_property
    def out(self) -> Array:
        if self._adjacency.symmetric:
            return self.into
        some: Array = self._whole.out[self._nodes.cpu().numpy()]
        return some

    def of(self, nodes: Tensor) -> Degrees:
        return _SomeDegrees(self._whole, self._nodes[nodes])


def normalise(
    adjacency: Csr,
    kind: Normalisation = "symmetric",
    *,
    self_loops: bool = True,
    degrees: Degrees | None = None,
) -> Csr:
    """The weights omega_oj of eq. 5 as a matrix.

    `symmetric` is D^-1/2 (A + I) D^-1/2 (Kipf and Welling), `row` the mean D^-1 (A + I), `sum`
    the plain A + I; D is the degree into the receiver, and out of the sender on the right side.
    Without self-loops the I is left out; a node without neighbours (or whose weights do not sum
    to more than zero) then aggregates to zero, never to NaN. `degrees`: those of D, if not the
    matrix's own. Cost: one pass over the edges.

    >>> a = Csr.from_scipy(sp.csr_matrix([[0.0, 1.0], [1.0, 0.0]]), symmetric=True)
    >>> normalise(a).to_dense().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    if kind not in NORMALISATIONS:
        raise unknown_name("normalisation", kind, NORMALISATIONS)
    matrix = adjacency.to_scipy().astype(np.float64)
    if self_loops:
        matrix = (matrix + sp.identity(matrix.shape[0], format="csr")).tocsr()
    degrees, loop = degrees or Degrees(adjacency), float(self_loops)
    if kind == "symmetric":
        into, out = degrees.into + loop, degrees.out + loop
        matrix = sp.diags(_power(into, -0.5)) @ matrix @ sp.diags(_power(out, -0.5))
    elif kind == "row":
        matrix = sp.diags(_power(degrees.into + loop, -1.0)) @ matrix
    matrix = matrix.tocsr()
    matrix.sort_indices()
    return Csr.from_scipy(
        matrix, dtype=adjacency.dtype, symmetric=adjacency.symmetric and kind != "row"
    ).to(adjacency.device)


class Operators:
    """The normalised forms of one adjacency matrix: each is made when asked for, and kept.

    Memory: the edges once more, and the nodes, for every kind asked for.
    """

    def __init__(self, adjacency: Csr, degrees: Degrees | None = None) -> None:
        self._adjacency = adjacency
        self.degrees = degrees or Degrees(adjacency)
        self._made: dict[tuple[str, bool], Csr] = {}

    def __call__(self, kind: Normalisation = "symmetric", *, self_loops: bool = True) -> Csr:
        """`normalise` of the adjacency."""
        if (kind, self_loops) not in self._made:
            settings: dict[str, Any] = {"self_loops": self_loops, "degrees": self.degrees}
            made = normalise(self._adjacency, kind, **settings)
            self._made[kind, self_loops] = made
        return self._made[kind, self_loops]


def _power(degrees: np.ndarray, exponent: float) -> np.ndarray:
    safe = np.where(degrees > 0, degrees, 1.0)
    return np.where(degrees > 0, safe**exponent, 0.0)
