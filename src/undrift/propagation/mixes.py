"""Propagated features: a fixed function of the graph, so nothing that is summed goes stale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from undrift.analytic.gram import chunks
from undrift.analytic.random_maps import Sketch
from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph, ReceptiveField
from undrift.propagation.hops import Hops, Mixing
from undrift.sparse import Csr
from undrift.typing import Rows

Mix = Literal["adaptive", "mean", "hop", "concat", "separate"]
_LEAST = 1e-3  # a hop that weighs less at a node is left out there
_NEIGHBOUR_SCALE = 2.0  # a mean over neighbours is shorter than one row; about makes up for it

_FEW = 16  # of more than one in so many nodes no field is looked for
_MANY = 4  # from one in so many nodes on, evidence is summed at all of them

_FARTHEST = 1000  # hops: farther than any graph of people, papers or shops is wide


@dataclass(frozen=True)
class Propagated:
    """`Z = sum_k D_k A^k X`, rows scaled to length one before and after.

    A is the symmetric-normalised adjacency with self-loops, D_k a diagonal of hop weights:

    - `mean`: `D_k = I` for k = 0..hops; `hop`: only k = hops; `concat`: `[X, AX, A^2 X, ...]`.
    - `adaptive`: each node takes hops until it has enough evidence. `e_k = (B + I)^k m` is the
      effective feature count within k hops (m a node's own, B the unweighted adjacency), and
      hop k + 1 weighs `max(0, 1 - e_k / evidence_threshold)`. No label enters.
    - `separate`: `[X, 2NX, 2N^2 X, ...]` with N the mean over neighbours without the node
      itself: ego and neighbour channels, which ridge can weigh with either sign (heterophily).

    `homophily` in 0..1 damps hop k by `homophily^k`; `separate` ignores it. Isolated nodes keep
    their own features; rows of zeros stay zeros.

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

    def weights_at(self, graph: Graph, nodes: Tensor | None = None) -> list[Tensor]:
        """The entries of D_0, D_1, ... at these nodes (indices); None: at all."""
        if nodes is None:
            nodes = torch.arange(graph.num_nodes, device=graph.device)
        ones = torch.ones(nodes.numel(), dtype=torch.float64, device=graph.device)
        same = self.same_for_all()
        if same is not None:
            return [weight * ones for weight in same]
        evidence, weights = Evidence(graph), [ones]
        taking = torch.arange(nodes.numel(), device=graph.device)
        for k in range(1, self.hops + 1):
            weight = torch.zeros_like(ones)
            weight[taking] = self._weight(evidence.within(k - 1, nodes[taking]), k)
            taking = (weight > 0).nonzero().flatten()
            if not taking.numel():
                break
            weights.append(weight)
        return weights

    def _weight(self, reached: Tensor, hop: int) -> Tensor:
        """What a hop weighs where so much evidence is reached before it."""
        weight = (1 - reached / self.evidence_threshold).clamp(min=0) * self.homophily**hop
        return torch.where(weight < _LEAST, 0.0, weight)

    def same_for_all(self) -> list[float] | None:
        """The weight of each hop, where it is the same at every node; else None (`by_evidence`)."""
        if self.mix == "separate":
            return [1.0, *([_NEIGHBOUR_SCALE] * self.hops)]
        if self.mix == "adaptive":
            return None
        taken = [self.mix != "hop" or k == self.hops for k in range(self.hops + 1)]
        return [self.homophily**k * there for k, there in enumerate(taken)]

    def by_evidence(self, counts: Tensor, spread: Callable[[Tensor], Tensor]) -> Iterator[Tensor]:
        """The adaptive weights D_0, D_1, ... of feature counts; `spread` is the product with B."""
        yield torch.ones_like(counts)
        reached = counts
        for k in range(1, self.hops + 1):
            weight = self._weight(reached, k)
            if not bool(weight.any()):
                return
            yield weight
            if k < self.hops:
                reached = reached + spread(reached)

    def reach(self, graph: Graph) -> Tensor:
        """For every node, the hops that its row looks away."""
        reach = torch.zeros(graph.num_nodes, dtype=torch.int64, device=graph.device)
        for k, weight in enumerate(self.weights_at(graph)):
            reach[weight > 0] = k
        return reach

    def hops_of(self, graph: Graph, nodes: Tensor, least: int = 0) -> int | Tensor | None:
        """How many hops the rows of these nodes look away, at least so many; None: far.

        Adaptive nodes take hops while they lack evidence, so the field grows hop by hop, and only
        around those that take another.
        """
        if nodes.numel() * _FEW > graph.num_nodes:
            return None
        if self.mix != "adaptive":
            return max(self.hops, least)
        nodes = nodes.to(graph.device)
        taken = torch.full_like(nodes, least)
        taking = torch.arange(nodes.numel(), device=graph.device)
        for k in range(self.hops):
            field = ReceptiveField.of(graph, nodes[taking], k)
            if field is None:
                return None
            taking = taking[self._takes(field.graph, k + 1)[field.at]]
            if not taking.numel():
                break
            taken[taking] = max(k + 1, least)
        return taken

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        field = ReceptiveField.of(graph, nodes, hops - 1)
        if field is None:
            return self._takes(graph, hops)[nodes]
        return self._takes(field.graph, hops)[field.at]

    def _takes(self, graph: Graph, hop: int) -> Tensor:
        weights = self.weights_at(graph)
        if hop >= len(weights):
            return torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
        return weights[hop] > 0

    def rows(
        self,
        graph: Graph,
        nodes: Tensor,
        sketch: Sketch | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> Rows:
        """Z at these nodes (indices), rows of length one: `rows_of_mixes` of this one."""
        return rows_of_mixes([self], graph, nodes, sketch, dtype)[0]

    def of_columns(self, graph: Graph, nodes: Tensor, columns: Tensor) -> Tensor:
        """`sum_k D_k A^k C` at these nodes, for other columns C of every node, dense."""
        hops = self._hops([self], graph, nodes)
        return hops.mixed(columns[hops.start], dtype=columns.dtype)[0].to_dense()

    def spread(
        self,
        graph: Graph,
        weights: Tensor,
        sketch: Sketch | None = None,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """`Z W` for all or these nodes, up to a positive factor per node, which no argmax sees.

        `sum_k D_k A^k (X W)` multiplies `nodes x classes` numbers instead of `nodes x width`. With
        channels it is `X W_0 + A (X W_1 + A (...))`. Cost: 2 nnz(X) C + 2 hops nnz(A) C
        operations, with channels (hops + 1) times the first.
        """
        blocks = [sketch.lift(w) if sketch else w for w in weights.chunk(self.blocks)]
        if self.blocks == 1:
            asked = torch.arange(graph.num_nodes, device=graph.device) if nodes is None else nodes
            hops = self._hops([self], graph, asked)
            held = graph.features if hops.everywhere else graph.features[hops.start]
            return hops.mixed(_times(held, blocks[0]), dtype=weights.dtype)[0].to_dense()
        each = self.same_for_all() or []
        total = each[-1] * _times(graph.features, blocks[-1])
        for k in range(len(blocks) - 2, -1, -1):
            at = nodes if k == 0 else None
            features = graph.features if at is None else graph.features[at]
            further = graph.operator.times(total, at, **self._kind())
            total = further.add_(_times(features, blocks[k]), alpha=each[k])
        return total

    @staticmethod
    def _hops(mixes: Sequence[Propagated], graph: Graph, nodes: Tensor) -> Hops:
        mixing = [Mixing(mix.weights_at(graph, nodes), mix.blocks == 1) for mix in mixes]
        operator = partial(mixes[0]._operator, graph)
        return Hops.at_nodes(operator, mixing, nodes, graph.num_nodes)

    def _operator(self, graph: Graph, nodes: Tensor | None = None) -> Csr:
        """A, or its rows of these nodes."""
        kind = self._kind()
        return graph.operator(**kind) if nodes is None else graph.operator.rows(nodes, **kind)

    def _kind(self) -> dict[str, Any]:
        return {"kind": "row", "self_loops": False} if self.mix == "separate" else {}

    def same_hops(self, other: Propagated) -> bool:
        """Whether both are mixed of the same hops."""
        return (self.mix == "separate") == (other.mix == "separate")


def rows_of_mixes(
    mixes: Sequence[Propagated],
    graph: Graph,
    nodes: Tensor,
    sketch: Sketch | None = None,
    dtype: torch.dtype = torch.float64,
) -> list[Rows]:
    """Z at these nodes (indices) for each mix of the same hops, rows of length one, in one pass.

    Sparse features stay sparse while that is cheaper, then they are dense, some columns at a time.
    In float64 a row does not depend, to 1e-12, on which others there are. A `sketch` of the
    columns comes first: `(A X) S = A (X S)`. Cost: 2 columns operations per edge into a node that
    a hop computes.
    """
    hops = Propagated._hops(mixes, graph, nodes.to(graph.device))
    held = graph.features if hops.everywhere else graph.features[hops.start]
    if isinstance(held, Csr) or sketch is not None:
        held = row_normalised(held.to(dtype=dtype))
        mixed = hops.mixed(held if sketch is None else sketch(held), dtype=dtype)
    else:  # a copy of dense features in another type is made some columns at a time
        mixed = hops.mixed(held, inverse_lengths(held), dtype)
    return [_scaled_in_place(z) for z in mixed]


class Evidence:
    """The effective feature counts within so many hops, where they are asked for."""

    def __init__(self, graph: Graph) -> None:
        self._edges = graph.adjacency
        self._everywhere = [effective_feature_count(graph.features)]

    def within(self, hops: int, nodes: Tensor) -> Tensor:
        """`(B + I)^hops m` at these nodes (indices), B the unweighted adjacency, m their counts."""
        if hops < len(self._everywhere):
            return self._everywhere[hops][nodes]
        if nodes.numel() * _MANY > self._edges.shape[0]:
            while hops >= len(self._everywhere):
                known = self._everywhere[-1]
                self._everywhere.append(known + self._edges.sums_over_columns(known))
            return self._everywhere[hops][nodes]
        rows = self._edges[nodes]
        there = torch.zeros(self._edges.shape[0], dtype=torch.bool, device=nodes.device)
        there[nodes] = True
        there[rows.indices] = True
        around = there.nonzero().flatten()
        known = torch.zeros_like(self._everywhere[0])
        known[around] = self.within(hops - 1, around)
        return known[nodes] + rows.sums_over_columns(known)


def effective_feature_count(features: Rows) -> Tensor:
    """`|x|_1^2 / |x|_2^2` of every row, in float64: the number of entries where all are equal.

    >>> effective_feature_count(torch.tensor([[1.0, 1.0, 1.0, 0.0], [5.0, 0.0, 0.0, 0.0]])).tolist()
    [3.0, 1.0]
    """
    counts = [torch.zeros(0, dtype=torch.float64, device=features.device)]
    for _, part in chunks(features, _at_once(features)):
        exact = part.double()
        total, square = exact.abs().sum(dim=1), exact.square().sum(dim=1)
        counts.append(torch.where(square > 0, total**2 / torch.where(square > 0, square, 1.0), 0))
    return torch.cat(counts)


def inverse_lengths(rows: Rows) -> Tensor:
    """One over the Euclidean length of every row, in float64; one for a row of zeros."""
    squares = [torch.zeros(0, dtype=torch.float64, device=rows.device)]
    for _, part in chunks(rows, _at_once(rows)):
        squares.append(part.double().square().sum(dim=1))
    length = torch.cat(squares).sqrt()
    return torch.where(length > 0, length, 1.0).reciprocal()


def row_normalised(rows: Rows) -> Rows:
    """Rows of length one (Euclid); rows of zeros stay."""
    return rows * inverse_lengths(rows).unsqueeze(1).to(rows.dtype)


def _scaled_in_place(rows: Rows) -> Rows:
    """`row_normalised` of rows that nobody else has."""
    if isinstance(rows, Csr):
        return row_normalised(rows)
    for where, part in chunks(rows, _at_once(rows)):
        rows[where] *= inverse_lengths(part).to(rows).unsqueeze(1)
    return rows


def _at_once(rows: Rows) -> float:
    """Megabytes of dense rows: few, so that a copy stays in the cache; of sparse ones more."""
    return 64.0 if isinstance(rows, Csr) or rows.device.type != "cpu" else 1.0


def _times(features: Rows, weights: Tensor) -> Tensor:
    """Rows of length one times weights, some rows at a time: no copy of dense features."""
    parts = [weights.new_zeros(0, weights.shape[1])]
    for _, part in chunks(features, 64 if isinstance(features, Csr) else 8):
        typed = part.to(dtype=weights.dtype)
        parts.append((typed @ weights).mul_(inverse_lengths(part).to(weights).unsqueeze(1)))
    return torch.cat(parts)
