"""From an adjacency matrix to the operator that a layer aggregates with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Tensor

from undrift.errors import unknown_name
from undrift.sparse import Csr, product_in_cache

Normalisation = Literal["symmetric", "row", "sum"]
"""The type of a normalisation's name, for annotations.

>>> get_args(Normalisation) == NORMALISATIONS
True
"""

NORMALISATIONS: tuple[str, ...] = get_args(Normalisation)
"""The names that `Graph.operator` and `normalise` take.

>>> NORMALISATIONS
('symmetric', 'row', 'sum')
"""


@dataclass(eq=False)
class Degrees:
    """The sums of weights into and out of each node, or of `nodes` of the `whole`, in float64."""

    adjacency: Csr
    nodes: Tensor | None = None
    whole: Degrees | None = None

    @cached_property
    def into(self) -> Tensor:
        """What each node receives."""
        return self.adjacency.row_sums(self.nodes)

    @cached_property
    def out(self) -> Tensor:
        """What each node sends. Cost: a transpose, once, if the graph is directed."""
        if self.adjacency.symmetric:
            return self.into
        if self.whole is not None:
            return self.whole.out[self.nodes]
        return self.adjacency.t().row_sums()

    def of(self, nodes: Tensor) -> Degrees:
        """Those of some nodes. Cost: the edges into them."""
        inside = nodes if self.nodes is None else self.nodes[nodes]
        return Degrees(self.adjacency, inside, self.whole or self)


def normalise(
    adjacency: Csr,
    kind: Normalisation = "symmetric",
    *,
    self_loops: bool = True,
    degrees: Degrees | None = None,
    rows: Tensor | None = None,
) -> Csr:
    """The adjacency with the weights that a layer aggregates by (omega_oj of eq. 5).

    `symmetric` is D^-1/2 (A + I) D^-1/2 (Kipf and Welling), `row` the mean D^-1 (A + I), `sum` the
    plain A + I; D is the degree into the receiver, and out of the sender on the right side. Without
    self-loops there is no I. A node whose weights do not sum to more than zero aggregates to zero.
    `degrees`: those of D, if not the matrix's own. `rows`: of these only (indices). Cost: one pass.

    >>> from scipy.sparse import csr_matrix
    >>> a = Csr.from_scipy(csr_matrix([[0.0, 1.0], [1.0, 0.0]]), symmetric=True)
    >>> normalise(a).to_dense().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    if kind not in NORMALISATIONS:
        raise unknown_name("normalisation", kind, NORMALISATIONS)
    left, right = _factors(degrees or Degrees(adjacency), kind, float(self_loops))

    def made(part: Csr, at: Tensor) -> Csr:
        exact = part.double()
        if self_loops:
            exact = exact.with_loops(at)
        if left is not None:
            exact = exact.scaled(left[at], right)
        return exact.to(dtype=adjacency.dtype)

    symmetric = rows is None and adjacency.symmetric and kind != "row"
    return adjacency.by_rows(made, rows, more=int(self_loops)).promised(symmetric=symmetric)


class Operators:
    """The normalised forms of one adjacency matrix: each is made when asked for, and kept."""

    def __init__(self, adjacency: Csr, degrees: Degrees | None = None) -> None:
        self._adjacency = adjacency
        self.degrees = degrees or Degrees(adjacency)
        self._made: dict[tuple[str, bool], Csr] = {}

    def __call__(self, kind: Normalisation = "symmetric", *, self_loops: bool = True) -> Csr:
        """`normalise` of the adjacency."""
        if (kind, self_loops) not in self._made:
            self._made[kind, self_loops] = self._normalised(kind, self_loops)
        return self._made[kind, self_loops]

    def rows(
        self, nodes: Tensor, kind: Normalisation = "symmetric", *, self_loops: bool = True
    ) -> Csr:
        """The rows of these nodes (indices) of an operator, which is not made for them."""
        made = self._made.get((kind, self_loops))
        return self._normalised(kind, self_loops, nodes) if made is None else made[nodes]

    def _normalised(self, kind: Normalisation, loops: bool, rows: Tensor | None = None) -> Csr:
        return normalise(self._adjacency, kind, self_loops=loops, degrees=self.degrees, rows=rows)

    def times(
        self,
        dense: Tensor,
        nodes: Tensor | None = None,
        kind: Normalisation = "symmetric",
        *,
        self_loops: bool = True,
    ) -> Tensor:
        """An operator, or its rows of these nodes, times a matrix, by products with diagonals."""
        made = self._made.get((kind, self_loops))
        if made is not None:
            return product_in_cache(made if nodes is None else made[nodes], dense)
        left, right = _factors(self.degrees, kind, float(self_loops))
        sent = dense if right is None else dense * right.to(dense).unsqueeze(1)
        edges = self._adjacency if nodes is None else self._adjacency[nodes]
        received = product_in_cache(edges, sent)
        if self_loops:
            received += sent if nodes is None else sent[nodes]
        if left is not None:
            received *= (left if nodes is None else left[nodes]).to(dense).unsqueeze(1)
        return received


def _factors(
    degrees: Degrees, kind: Normalisation, loop: float
) -> tuple[Tensor | None, Tensor | None]:
    """What every row and every column of `A + loop I` is multiplied with; None: nothing."""
    if kind == "symmetric":
        return _power(degrees.into + loop, -0.5), _power(degrees.out + loop, -0.5)
    return (_power(degrees.into + loop, -1.0) if kind == "row" else None), None


def _power(degrees: Tensor, exponent: float) -> Tensor:
    safe = torch.where(degrees > 0, degrees, 1.0)
    return torch.where(degrees > 0, safe**exponent, 0.0)
