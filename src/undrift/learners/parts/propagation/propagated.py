"""Propagated features: a fixed function of the graph, so nothing that is summed goes stale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from undrift.analytic.gram import chunks
from undrift.analytic.random_maps import Sketch
from undrift.errors import InputError, unknown_name
from undrift.graphs import Field, Graph
from undrift.learners.parts.propagation.hops import Hops
from undrift.sparse import Csr, beside, exact_product
from undrift.typing import Rows

Mix = Literal["adaptive", "mean", "hop", "concat", "separate"]
_LEAST = 1e-3  # a hop that weighs less at a node is left out there
_NEIGHBOUR_SCALE = 2.0  # a mean over neighbours is shorter than one row; about makes up for it

_FARTHEST = 1000  # hops: farther than any graph of people, papers or shops is wide


@dataclass(frozen=True)
class Propagated:
    """`Z = sum_k D_k A^k X`, rows scaled to length one before and after.

    A is the symmetric-normalised adjacency with self-loops, D_k a diagonal of hop weights:

    - `mean`: `D_k = I` for k = 0..hops; `hop`: only k = hops; `concat`: `[X, AX, A^2 X, ...]`, a
      channel per hop.
    - `adaptive`: each node takes hops until it has enough evidence. `e_k = (B + I)^k m` is the
      effective feature count within k hops (m a node's own, B the unweighted adjacency), and
      hop k + 1 weighs `max(0, 1 - e_k / evidence_threshold)`. No label enters.
    - `separate`: `[X, 2NX, 2N^2 X, ...]` with N the mean over neighbours without the node
      itself: ego and neighbour channels, which ridge can weigh with either sign (heterophily).

    `homophily` in 0..1 damps hop k by `homophily^k`; 0 leaves the node's own features, and
    `separate` ignores it. Isolated nodes keep their own features; rows of zeros stay zeros.

    Cost: rows for m nodes visit only the nodes within reach, and sparse features stay sparse.
    `spread`, which scores a whole graph, never forms Z.

    >>> graph = Graph.from_arrays(torch.eye(2), [[0, 1], [1, 0]])
    >>> rows = Propagated(mix="mean", hops=1).rows(graph, torch.tensor([0]))
    >>> rows.double().round(decimals=3).tolist()
    [[0.949, 0.316]]
    """

    mix: Mix = "adaptive"
    hops: int = 8
    evidence_threshold: float = 1e4
    homophily: float = 1.0

    def __post_init__(self) -> None:
        if self.mix not in get_args(Mix):
            raise unknown_name("mix", self.mix, get_args(Mix))
        if not 0 <= self.hops <= _FARTHEST or self.hops != int(self.hops):
            raise InputError(f"hops must be a whole number from 0 to {_FARTHEST}, not {self.hops}")
        if not self.evidence_threshold > 0:
            raise InputError(
                f"evidence_threshold must be greater than 0, not {self.evidence_threshold}"
            )
        if not 0 <= self.homophily <= 1:
            raise InputError(f"homophily must be from 0 to 1, not {self.homophily}")

    def width(self, num_features: int) -> int:
        """Columns of a row."""
        return num_features * self.blocks

    @property
    def blocks(self) -> int:
        """How many times the features stand side by side in a row."""
        return self.hops + 1 if self.mix in ("concat", "separate") else 1

    def hop_weights(self, graph: Graph) -> list[Tensor]:
        """The diagonals D_0, D_1, ... in float64; trailing hops that no node takes are left out."""
        same = self.same_for_all()
        if same is not None:
            ones = torch.ones(graph.num_nodes, dtype=torch.float64, device=graph.device)
            return [weight * ones for weight in same]
        counts = effective_feature_count(graph.features)
        return list(self.by_evidence(counts, graph.adjacency.sums_over_columns))

    def same_for_all(self) -> list[float] | None:
        """The weight of each hop, where it is the same at every node; else None (`by_evidence`)."""
        if self.mix == "separate":
            return [1.0, *([_NEIGHBOUR_SCALE] * self.hops)]
        if self.mix == "adaptive":
            return None
        taken = [self.mix != "hop" or k == self.hops for k in range(self.hops + 1)]
        return [self.homophily**k * there for k, there in enumerate(taken)]

    def by_evidence(self, counts: Tensor, spread: Callable[[Tensor], Tensor]) -> Iterator[Tensor]:
        """The adaptive weights D_0, D_1, ..., one after the other.

        `counts` are the effective feature counts, `spread` is the product with B.
        """
        yield torch.ones_like(counts)
        reached = counts
        for k in range(1, self.hops + 1):
            weight = (1 - reached / self.evidence_threshold).clamp(min=0) * self.homophily**k
            weight = torch.where(weight < _LEAST, 0.0, weight)
            if not bool(weight.any()):
                return
            yield weight
            if k < self.hops:
                reached = reached + spread(reached)

    def reach(self, graph: Graph) -> Tensor:
        """For every node, the hops that its row looks away."""
        reach = torch.zeros(graph.num_nodes, dtype=torch.int64, device=graph.device)
        for k, weight in enumerate(self.hop_weights(graph)):
            reach[weight > 0] = k
        return reach

    def field(self, graph: Graph, nodes: Tensor, least: int = 0) -> Field | None:
        """What the rows of these nodes depend on, at least so many hops; None: much of the graph.

        Adaptive nodes take hops while they lack evidence, so the field grows hop by hop, and only
        around those that take another: e_k at a node needs no more than k hops around it.
        """
        if self.mix != "adaptive":
            return Field.of(graph, nodes, max(self.hops, least))
        nodes = nodes.to(graph.device)
        taken = torch.full_like(nodes, least)
        taking = torch.arange(nodes.numel(), device=graph.device)
        for k in range(self.hops):
            field = Field.of(graph, nodes[taking], k)
            if field is None:
                return None
            taking = taking[self._takes(field.graph, k + 1)[field.at]]
            if not taking.numel():
                break
            taken[taking] = max(k + 1, least)
        return Field.of(graph, nodes, taken)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        field = Field.of(graph, nodes, hops - 1)
        if field is None:
            return self._takes(graph, hops)[nodes]
        return self._takes(field.graph, hops)[field.at]

    def _takes(self, graph: Graph, hop: int) -> Tensor:
        weights = self.hop_weights(graph)
        if hop >= len(weights):
            return torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
        return weights[hop] > 0

    def rows(self, graph: Graph, nodes: Tensor, sketch: Sketch | None = None) -> Rows:
        """Z at these nodes (indices), rows of length one.

        Sparse features stay sparse while that is cheaper, then they are dense, some columns at a
        time. All is float64, so that a row does not depend, to 1e-12, on which others there are.
        Hop k is computed only where a node asked for takes it, or a later hop passes through. A
        `sketch` of the columns comes first, as it is linear and makes every hop cheaper:
        `(A X) S = A (X S)`. Cost: 2 columns operations per edge into a node that a hop computes.
        """
        hops = Hops.at_nodes(self._operator(graph), self.hop_weights(graph), nodes.to(graph.device))
        held = graph.features if hops.everywhere else graph.features[hops.start]
        if isinstance(held, Csr) or sketch is not None or self.blocks > 1:
            held = row_normalised(held.double())
            held = held if sketch is None else sketch(held)
            z = hops.mixed(held) if self.blocks == 1 else beside(hops.channels(held))
        else:  # a copy of dense features in float64 is made some columns at a time
            z = hops.mixed(held, inverse_lengths(held))
        return row_normalised(z)

    def spread(self, graph: Graph, weights: Tensor, sketch: Sketch | None = None) -> Tensor:
        """`Z W` for every node, up to a positive factor per node, which no argmax sees.

        `sum_k D_k A^k (X W)`: the order that multiplies `nodes x classes` numbers instead of
        `nodes x width`. The factor is the length of Z's row, which is not computed. Cost:
        2 nnz(X) C + 2 hops nnz(A) C operations.
        """
        diagonals = self.hop_weights(graph)
        operator = self._operator(graph)
        total = torch.zeros(graph.num_nodes, weights.shape[1]).to(weights)
        blocks = [sketch.lift(w) if sketch else w for w in weights.chunk(self.blocks)]
        held = [_times(graph.features, block) for block in blocks]
        for k, diagonal in enumerate(diagonals):
            total += diagonal.unsqueeze(1) * held[k if len(held) > 1 else 0]
            if k + 1 < len(diagonals):
                held = [
                    exact_product(operator, h) if len(held) == 1 or i > k else h
                    for i, h in enumerate(held)
                ]
        return total

    def _operator(self, graph: Graph) -> Csr:
        if self.mix == "separate":
            return graph.operator("row", self_loops=False)
        return graph.operator()


def effective_feature_count(features: Rows) -> Tensor:
    """`|x|_1^2 / |x|_2^2` of every row, in float64, 0 for a row of zeros.

    The number of entries where all are equal, less where a few dominate.

    >>> effective_feature_count(torch.tensor([[1.0, 1.0, 1.0, 0.0], [5.0, 0.0, 0.0, 0.0]])).tolist()
    [3.0, 1.0]
    """
    counts = [torch.zeros(0, dtype=torch.float64, device=features.device)]
    for _, part in chunks(features, 64):
        exact = part.double()
        total, square = exact.abs().sum(dim=1), exact.square().sum(dim=1)
        counts.append(torch.where(square > 0, total**2 / torch.where(square > 0, square, 1.0), 0))
    return torch.cat(counts)


def inverse_lengths(rows: Rows) -> Tensor:
    """One over the Euclidean length of every row, in float64; one for a row of zeros."""
    if isinstance(rows, Csr):
        length = rows.double().square().sum(dim=1).sqrt()
    else:
        length = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return torch.where(length > 0, length, 1.0).reciprocal()


def row_normalised(rows: Rows) -> Rows:
    """Rows of length one (Euclid); rows of zeros stay."""
    return rows * inverse_lengths(rows).unsqueeze(1).to(rows.dtype)


def _times(features: Rows, weights: Tensor) -> Tensor:
    """Rows of length one times weights, some rows at a time: no copy of dense features."""
    parts = [weights.new_zeros(0, weights.shape[1])]
    for _, part in chunks(features, 64):
        parts.append(row_normalised(part.double()).to(dtype=weights.dtype) @ weights)
    return torch.cat(parts)
