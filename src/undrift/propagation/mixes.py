"""Propagated features: a fixed function of the graph, so nothing that is summed goes stale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from undrift.analytic.random_maps import Sketch
from undrift.analytic.statistics import chunks
from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.parameters import check_positive
from undrift.sparse import Csr, beside, dense_columns, plus, product_in_cache
from undrift.typing import Rows

Mix = Literal["adaptive", "mean", "hop", "concat", "separate"]
_SPREAD = -1.5  # power of a degree: fits the noise of rows of four citation graphs and Photo
_LEAST = 1e-3  # a hop that weighs less at a node is left out there
_NEIGHBOUR_SCALE = 2.0  # a mean over neighbours is shorter than one row; about makes up for it
_FEW = 16  # of more than one in so many nodes no field is looked for
_FARTHEST = 1000  # hops: farther than any graph of people, papers or shops is wide
_DENSE_FROM = 24  # rows with more than one entry in this many cells are cheaper dense
_MANY = 4  # from one in so many nodes on, evidence is summed at all of them
_BLOCK = {"cpu": 2**21, "cuda": 2**28}  # cells of a block, held for every hop; a GPU has room
_NARROWEST = 64  # columns of a block, at least
_COUNTED: WeakKeyDictionary[Graph, Tensor] = WeakKeyDictionary()  # what each node of a graph has
Evidence = Callable[[int, Tensor], Tensor]
"""`e(k, nodes) = (B + I)^k m` at these nodes (indices), m their effective feature counts."""


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
        check_positive(evidence_threshold=self.evidence_threshold)
        if not 0 <= self.homophily <= 1:
            raise InputError(f"homophily must be from 0 to 1, not {self.homophily}")

    @property
    def blocks(self) -> int:
        """How many times the features stand side by side in a row."""
        return self.hops + 1 if self.mix in ("concat", "separate") else 1

    def weights_at(self, graph: Graph, nodes: Tensor) -> list[Tensor]:
        """The entries of D_0, D_1, ... at these nodes (indices)."""
        same = self.same_for_all()
        if same is None:
            return self.by_evidence(evidence_of(graph), nodes)
        return [torch.full_like(nodes, w, dtype=torch.float64, device=graph.device) for w in same]

    def by_evidence(self, evidence: Evidence, nodes: Tensor) -> list[Tensor]:
        """The adaptive weights D_0, D_1, ... at these nodes, up to the last hop that one takes."""
        ones = torch.ones(nodes.numel(), dtype=torch.float64, device=nodes.device)
        weights, taking = [ones], torch.arange(nodes.numel(), device=nodes.device)
        for k in range(1, self.hops + 1):
            held = evidence(k - 1, nodes[taking])
            lacking = (1 - held / self.evidence_threshold).clamp(min=0)
            found = lacking * self.homophily**k
            weight = torch.zeros_like(ones)
            weight[taking] = torch.where(found < _LEAST, 0.0, found)
            taking = (weight > 0).nonzero().flatten()
            if not taking.numel():
                break
            weights.append(weight)
        return weights

    def log_noise(self, weights: Sequence[Tensor], degrees: Tensor) -> Tensor:
        """How much of a lone node's noise averaging leaves, as a logarithm: at most 0.

        Of these hop weights and degrees d. Were features noise, the variance of `sum_k w_k A^k X`
        would hold `w_k w_l (A^(k+l))_ii`, which is taken to be `(d + 1)^-1.5` but for k = l = 0.
        """
        each = torch.stack([*weights])
        own = each[0].square()
        every = each.sum(dim=0).square() if self.blocks == 1 else each.square().sum(dim=0)
        share = own / every.clamp(min=1e-300)
        return torch.lerp((degrees + 1).pow(_SPREAD), torch.ones_like(own), share).log()

    def same_for_all(self) -> list[float] | None:
        """The weight of each hop, where it is the same at every node; else None (`by_evidence`)."""
        if self.mix == "adaptive":
            return None
        if self.mix == "separate":
            return [1.0, *([_NEIGHBOUR_SCALE] * self.hops)]
        every = range(self.hops + 1)
        return [self.homophily**k * (self.mix != "hop" or k == self.hops) for k in every]

    def reach(self, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        """How many hops away the rows of these nodes look; None: at much of the graph.

        Adaptive nodes take hops while they lack evidence, so the field grows hop by hop, and only
        around those that take another.
        """
        if nodes.numel() * _FEW > graph.num_nodes:
            return None
        same = self.same_for_all()
        if same is not None:
            return max((k for k, weight in enumerate(same) if weight > 0), default=0)
        nodes = nodes.to(graph.device)
        reach, taking = torch.zeros_like(nodes), torch.arange(nodes.numel(), device=nodes.device)
        for k in range(self.hops):
            field = ReceptiveField.of(graph, nodes[taking], k)
            if field is None:
                return None
            taking = taking[self._takes(field.graph, field.at, k + 1)]
            if not taking.numel():
                break
            reach[taking] = k + 1
        return reach

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        same = self.same_for_all()
        if same is not None:
            return torch.full(nodes.shape, any(same[hops:]), device=nodes.device)
        field = ReceptiveField.of(graph, nodes, hops - 1)
        return self._takes(*((graph, nodes) if field is None else (field.graph, field.at)), hops)

    def _takes(self, graph: Graph, nodes: Tensor, hop: int) -> Tensor:
        weights = replace(self, hops=min(hop, self.hops)).weights_at(graph, nodes)
        return weights[hop] > 0 if hop < len(weights) else torch.zeros_like(nodes).bool()

    def rows(self, graph: Graph, nodes: Tensor, sketch: Sketch | None = None) -> Rows:
        """Z at these nodes (indices), rows of length one: `rows_of_mixes` of this one."""
        return rows_of_mixes([self], graph, nodes, sketch)[0]

    def unscaled_scores(
        self, graph: Graph, weights: Tensor, nodes: Tensor, sketch: Sketch | None = None
    ) -> Tensor:
        """`Z W` for these nodes, up to a positive factor per node, which no argmax sees.

        `sum_k D_k A^k (X W)` multiplies `nodes x classes` numbers instead of `nodes x width`. With
        channels it is `X W_0 + A (X W_1 + A (...))`. Cost: 2 nnz(X) C + 2 hops nnz(A) C
        operations, with channels (hops + 1) times the first.
        """
        blocks = [sketch.lift(w) if sketch else w for w in weights.chunk(self.blocks)]
        if self.blocks == 1:
            hops = Hops.at_nodes([self], graph, nodes)
            held = _times(hops.first(graph.features), blocks[0])
            return hops.mixed(held, dtype=weights.dtype)[0].to_dense()
        each = self.same_for_all() or []
        total = each[-1] * _times(graph.features, blocks[-1])
        for k in reversed(range(self.hops)):
            features = graph.features if k else graph.features[nodes]
            further = graph.operator.times(total, None if k else nodes, **self.operator)
            total = further.add_(_times(features, blocks[k]), alpha=each[k])
        return total

    @property
    def operator(self) -> dict[str, Any]:
        """Which operator of a graph A is, as `Graph.operator` takes it."""
        return {"kind": "row", "self_loops": False} if self.mix == "separate" else {}


@dataclass(frozen=True, eq=False)
class Taken:
    """What a mix takes of a hop: `held[at]`, weighed, belongs to the rows `rows`."""

    rows: Tensor
    at: Tensor
    weight: Tensor

    def of(self, held: Any) -> Any:
        """The part of these rows."""
        return held[self.at] * self.weight.to(held.dtype).unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Hops:
    """`sum_k D_k A^k H` at some nodes: hop k only where one takes it or a later hop passes.

    Several mixes of the same hops are made in one pass. `start`: the nodes at which H is read,
    rising. `products[k]`: from hop k to the next. `taken[k]`: what each mix takes of hop k.
    `channels`: how many hops stand side by side in each mix; 1: they are summed.
    """

    start: Tensor
    products: list[Csr]
    taken: list[list[Taken]]
    channels: Sequence[int]

    @classmethod
    def at_nodes(cls, mixes: Sequence[Propagated], graph: Graph, nodes: Tensor) -> Hops:
        """For these nodes (indices) of a graph."""
        products: list[Csr] = []
        taken: list[list[Taken]] = []
        weights = [mix.weights_at(graph, nodes) for mix in mixes]
        for k in reversed(range(max(map(len, weights)))):
            own = [each[k] if k < len(each) else nodes * 0.0 for each in weights]
            rows = [(w > 0 if k else w >= 0).nonzero().flatten() for w in own]  # H is for all
            there = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
            for some in (*(nodes[taking] for taking in rows), *(p.indices for p in products[:1])):
                there[some] = True
            computed = there.nonzero().flatten()
            whole = computed.numel() == graph.num_nodes
            if products and not whole:
                products[0] = products[0].over(computed)
            each = zip(rows, own, strict=True)
            at = [Taken(r, torch.searchsorted(computed, nodes[r]), w[r]) for r, w in each]
            taken.insert(0, at)
            if k:
                of, kind = graph.operator, mixes[0].operator
                products.insert(0, of(**kind) if whole else of.rows(computed, **kind))
        return cls(computed, products, taken, [mix.blocks for mix in mixes])

    def first(self, rows: Rows) -> Rows:
        """Of the rows of all nodes those at `start`."""
        return rows if self.start.numel() == rows.shape[0] else rows[self.start]

    def mixed(
        self, held: Rows, scale: Tensor | None = None, dtype: torch.dtype = torch.float64
    ) -> list[Rows]:
        """Each mix in this type, where `held` are the rows of H at `start`.

        Sparse rows stay sparse while that is cheaper; then, some columns at a time, they are
        dense. `scale`: a factor of every row of a dense H.
        """
        (count, width), done = (self.taken[0][0].rows.numel(), held.shape[1]), 0
        parts: list[list[Rows]] = [[] for _ in self.channels]
        if isinstance(held, Csr):
            parts = [[taken.of(held)] for taken in self.taken[0]]
            while done < len(self.products) and held.nnz * _DENSE_FROM <= held.shape[0] * width:
                held = self.products[done].to(dtype=dtype) @ held
                done += 1
                for mine, taken, side in zip(parts, self.taken[done], self.channels, strict=True):
                    part = taken.of(held).at_rows(taken.rows, count)
                    if side > done:
                        mine.append(part)
                    elif taken.rows.numel():
                        mine[0] = plus(mine[0], part)
            if done == len(self.products):
                return [mine[0] if len(mine) == 1 else beside(mine) for mine in parts]
        shapes = [(count, width * side) for side in self.channels]
        results = [torch.zeros(shape, dtype=dtype, device=held.device) for shape in shapes]
        for result, mine in zip(results, parts, strict=True):
            for k, part in enumerate(mine):
                result[:, k * width : (k + 1) * width] = part.to_dense()
        left = range(done + bool(parts[0]), len(self.taken))
        size = max(_NARROWEST, _BLOCK[held.device.type] // max(1, held.shape[0]))
        for start in range(0, width, size):
            columns = slice(start, min(start + size, width))
            some = dense_columns(held, columns).to(dtype)
            some = some if scale is None else some * scale.to(dtype).unsqueeze(1)
            for k in left:
                some = product_in_cache(self.products[k - 1], some) if k else some
                self._add_(results, k, columns, some)
        return [*results]

    def _add_(self, results: list[Tensor], k: int, columns: slice, held: Tensor) -> None:
        """Add what each mix takes of some columns of hop k."""
        for result, taken, side in zip(results, self.taken[k], self.channels, strict=True):
            if not taken.rows.numel():
                continue
            shift = 0 if side == 1 else k * (result.shape[1] // side)
            there = result[:, columns.start + shift : columns.stop + shift]
            if not k:
                there[:] = taken.of(held)
            elif taken.rows.numel() == result.shape[0]:
                there += taken.of(held)
            else:
                there[taken.rows] += taken.of(held)


def rows_of_mixes(
    mixes: Sequence[Propagated],
    graph: Graph,
    nodes: Tensor,
    sketch: Sketch | None = None,
    dtype: torch.dtype = torch.float64,
) -> list[Rows]:
    """Z at these nodes (indices) for each mix of the same hops, rows of length one, in one pass.

    In float64 a row does not depend, to 1e-12, on which others there are. A `sketch` of the
    columns comes first: `(A X) S = A (X S)`. Cost: 2 columns operations per edge into a node that
    a hop computes.
    """
    hops = Hops.at_nodes(mixes, graph, nodes.to(graph.device))
    held = hops.first(graph.features)
    if isinstance(held, Csr) or sketch is not None:
        held = row_normalised(held.to(dtype=dtype))
        mixed = hops.mixed(held if sketch is None else sketch(held), dtype=dtype)
    else:  # a copy of dense features in another type is made some columns at a time
        mixed = hops.mixed(held, inverse_lengths(held), dtype)
    return [_scaled_in_place(z) for z in mixed]


def evidence_of(graph: Graph) -> Evidence:
    """Of a graph in memory; where few nodes are asked for, it is made at few."""
    if graph not in _COUNTED:  # rows and their noise ask one after the other
        _COUNTED[graph] = effective_feature_count(graph.features)
    edges, everywhere = graph.adjacency, [_COUNTED[graph]]

    def within(hops: int, nodes: Tensor) -> Tensor:
        rings: list[tuple[Tensor, Csr]] = []  # no recursion: it would keep the graph in a cycle
        while hops >= len(everywhere) and nodes.numel() * _MANY <= graph.num_nodes:
            rows, asked = edges[nodes], torch.zeros_like(everywhere[0], dtype=torch.bool)
            asked[nodes] = asked[rows.indices] = True
            rings.append((nodes, rows))
            nodes, hops = asked.nonzero().flatten(), hops - 1
        while hops >= len(everywhere):
            everywhere.append(everywhere[-1] + edges.sums_over_columns(everywhere[-1]))
        found = everywhere[hops][nodes]
        for inner, rows in reversed(rings):
            known = torch.zeros_like(everywhere[0])
            known[nodes] = found
            nodes, found = inner, known[inner] + rows.sums_over_columns(known)
        return found

    return within


def effective_feature_count(features: Rows) -> Tensor:
    """`|x|_1^2 / |x|_2^2` of every row, in float64: the number of entries where all are equal.

    >>> effective_feature_count(torch.tensor([[1.0, 1.0, 1.0, 0.0], [5.0, 0.0, 0.0, 0.0]])).tolist()
    [3.0, 1.0]
    """

    def of(part: Rows) -> Tensor:
        exact = part.double()
        total, square = exact.abs().sum(dim=1), exact.square().sum(dim=1)
        return total**2 / torch.where(square > 0, square, 1.0)

    return _in_chunks(features, of, _at_once(features))


def inverse_lengths(rows: Rows) -> Tensor:
    """One over the Euclidean length of every row, in float64; one for a row of zeros."""
    squares = _in_chunks(rows, lambda part: part.double().square().sum(dim=1), _at_once(rows))
    length = squares.sqrt()
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


def _times(features: Rows, weights: Tensor) -> Tensor:
    """Rows of length one times weights: no copy of dense features."""

    def of(part: Rows) -> Tensor:
        product: Tensor = part.to(dtype=weights.dtype) @ weights
        return product.mul_(inverse_lengths(part).to(weights).unsqueeze(1))

    return _in_chunks(features, of, 64 if isinstance(features, Csr) else 8)


def _in_chunks(rows: Rows, of: Callable[[Rows], Tensor], megabytes: float) -> Tensor:
    """What `of` gives for rows, some at a time."""
    return torch.cat([of(rows[:0]), *(of(part) for _, part in chunks(rows, megabytes))])


def _at_once(rows: Rows) -> float:
    """Megabytes of dense rows: few, so that a copy stays in the cache; of sparse ones more."""
    return 64.0 if isinstance(rows, Csr) or rows.device.type != "cpu" else 1.0
