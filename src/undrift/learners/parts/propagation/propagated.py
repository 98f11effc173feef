"""Propagated features: a fixed function of the graph, so nothing that is summed goes stale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.analytic.gram import Rows
from undrift.analytic.sketch import Sketch
from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph
from undrift.sparse import Csr, sparse_product

__all__ = ["Mix", "Propagated", "beside", "effective_words", "row_normalised", "times"]

Mix = Literal["adaptive", "mean", "hop", "concat", "apart"]
_FULL_FROM = 8  # rows with more than one entry in this many cells are cheaper dense
_LEAST = 1e-3  # a hop that weighs less than this at a node is left out there
_LOUD = 2.0  # a mean over neighbours is shorter than one row; this about makes up for it


@dataclass(frozen=True)
class Propagated:
    """`Z = sum_k D_k A^k X`, rows scaled to length one before and after.

    A is the symmetric-normalised adjacency with self-loops, D_k a diagonal of hop weights:

    - `mean`: `D_k = I` for k = 0..hops; `hop`: only k = hops; `concat`: every `A^k X` keeps
      columns of its own, so a row is (hops + 1) times as wide.
    - `adaptive`: a node takes another hop as long as what it has reached is too little to go
      by. `e_k = (B + I)^k m` counts the words within k steps (m words of its own, B who is
      linked to whom), and hop k + 1 weighs `max(0, 1 - e_k / words)`. A node of five words and
      two neighbours looks six steps far, one of 250 words and thirty neighbours two. No label
      enters, so it cannot be fooled by a task graph that is purer than the world.
    - `apart`: as `concat`, but `2 N^k X` with N the mean over neighbours, the node itself left
      out. What neighbours say never mixes with what the node says, so ridge can weigh it with
      either sign: for graphs where neighbours differ in a way that tells.

    `trust` in 0..1 says how far neighbours resemble a node: hop k weighs `trust^k` times as
    much, and at 0 the features are the node's own (`apart` leaves that to ridge). Isolated
    nodes keep their own features and rows of zeros stay zeros.

    Cost: rows for m nodes visit only the nodes within reach; sparse features stay sparse, at
    most the width per row. `spread`, which scores a whole graph, never forms Z.

    >>> graph = Graph.from_arrays(torch.eye(2), [[0, 1], [1, 0]])
    >>> rows = Propagated(mix="mean", hops=1).rows(graph, torch.tensor([0]))
    >>> rows.double().round(decimals=3).tolist()
    [[0.949, 0.316]]
    """

    mix: Mix = "adaptive"
    hops: int = 8
    words: float = 1e4
    trust: float = 1.0

    def __post_init__(self) -> None:
        if self.mix not in get_args(Mix):
            raise unknown_name("mix", self.mix, get_args(Mix))
        if self.hops < 0 or self.hops != int(self.hops):
            raise InputError(f"hops must be a whole number of at least 0, not {self.hops}")
        if not self.words > 0:
            raise InputError(f"words must be greater than 0, not {self.words}")
        if not 0 <= self.trust <= 1:
            raise InputError(f"trust must be from 0 to 1, not {self.trust}")

    def width(self, num_features: int) -> int:
        """Columns of a row."""
        return num_features * self.blocks

    @property
    def blocks(self) -> int:
        """How many times the features stand side by side in a row."""
        return self.hops + 1 if self.mix in ("concat", "apart") else 1

    def hop_weights(self, graph: Graph) -> list[Tensor]:
        """The diagonals D_0, D_1, ... in float64; trailing hops that nobody takes are left out."""
        n, device = graph.num_nodes, graph.device
        ones = torch.ones(n, dtype=torch.float64, device=device)
        if self.mix == "apart":
            return [ones, *([_LOUD * ones] * self.hops)]
        if self.mix != "adaptive":
            own = ones * (self.mix != "hop" or self.hops == 0)
            later = [
                ones * self.trust**k * (self.mix != "hop" or k == self.hops)
                for k in range(1, self.hops + 1)
            ]
            return [own, *later]
        links = _links(graph)
        reached = effective_words(graph.features)
        weights = [ones]
        for k in range(1, self.hops + 1):
            weight = (1 - reached / self.words).clamp(min=0) * self.trust**k
            weight = torch.where(weight < _LEAST, 0.0, weight)
            if not bool(weight.any()):
                break
            weights.append(weight)
            reached = reached + (links @ reached.unsqueeze(1)).squeeze(1)
        return weights

    def rows(self, graph: Graph, nodes: Tensor, sketch: Sketch | None = None) -> Rows:
        """Z at these nodes (indices), rows of length one.

        Sparse features stay sparse until a hop fills an eighth of the cells, then they are
        dense in their own type. Hop k is computed only where a node asked for takes it, or a
        later hop passes through. A `sketch` of the columns comes first, as it is linear and
        makes every hop cheaper: `(A X) S = A (X S)`.
        """
        weights = self.hop_weights(graph)
        reach = self._reach(graph, weights, nodes)
        operator = self._operator(graph)
        held = row_normalised(graph.features)
        if sketch is not None:
            held = sketch(held)
        blocks: list[Rows] = [_picked(held, nodes, weights[0])]
        for k in range(1, len(weights)):
            held = _stepped(operator, _dense_if_full(held), reach[k])
            part = _picked(held, nodes, weights[k])
            if self.blocks > 1:
                blocks.append(part)
            else:
                blocks[0] = _sum(blocks[0], part)
        return row_normalised(blocks[0] if len(blocks) == 1 else beside(blocks))

    def spread(self, graph: Graph, weights: Tensor, sketch: Sketch | None = None) -> Tensor:
        """`Z W` for every node, up to a positive factor per node, which no argmax sees.

        `sum_k D_k A^k (X W)`: the order that multiplies `nodes x classes` numbers instead of
        `nodes x width`. The factor is the length of Z's row, which is not computed. Cost:
        2 nnz(X) C + 2 hops nnz(A) C operations.
        """
        diagonals = self.hop_weights(graph)
        features = row_normalised(graph.features)
        count = len(diagonals)
        blocks = weights.chunk(self.blocks) if self.blocks > 1 else (weights,) * count
        operator = self._operator(graph).to(dtype=torch.float64)
        total = torch.zeros(graph.num_nodes, weights.shape[1]).to(weights)
        lifted = _distinct(blocks)
        if sketch is not None:
            lifted = [sketch.lift(block) for block in lifted]
        held = [times(features, block) for block in lifted]
        for k, diagonal in enumerate(diagonals):
            mine = held[k if len(held) > 1 else 0]
            total += diagonal.unsqueeze(1) * mine
            if k + 1 < count:
                held = [operator @ h if len(held) == 1 or i > k else h for i, h in enumerate(held)]
        return total

    def _operator(self, graph: Graph) -> Csr:
        if self.mix == "apart":
            return graph.operator("row", self_loops=False)
        return graph.operator()

    def _reach(self, graph: Graph, weights: list[Tensor], nodes: Tensor) -> list[Tensor]:
        """For every hop, the nodes at which it must be computed, from the last to the first."""
        wanted = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
        wanted[nodes] = True
        reach = [torch.empty(0)] * len(weights)
        through = torch.zeros_like(wanted)
        for k in range(len(weights) - 1, 0, -1):
            here = through | (wanted & (weights[k] > 0))
            reach[k] = here.nonzero().flatten()
            senders = self._operator(graph).select(reach[k]).indices.long()
            through = torch.zeros_like(wanted)
            through[senders] = True
        return reach


def effective_words(features: Rows) -> Tensor:
    """How many words a row has: `|x|_1^2 / |x|_2^2`, in float64, 0 for a row of zeros.

    The number of entries where all are equal, fewer where a few stand out.

    >>> effective_words(torch.tensor([[1.0, 1.0, 1.0, 0.0], [5.0, 0.0, 0.0, 0.0]])).tolist()
    [3.0, 1.0]
    """
    total, square = _row_sums(features)
    return torch.where(
        square > 0, total**2 / square.where(square > 0, torch.ones(()).to(square)), 0
    )


def row_normalised(rows: Rows) -> Rows:
    """Rows of length one (Euclid); rows of zeros stay."""
    _, square = _row_sums(rows)
    scale = torch.where(square > 0, square, 1.0).rsqrt()
    return _scaled(rows, scale)


def _row_sums(rows: Rows) -> tuple[Tensor, Tensor]:
    """Sums of the absolute values and of the squares of every row, in float64."""
    if not isinstance(rows, Csr):
        return rows.double().abs().sum(dim=1), rows.double().square().sum(dim=1)
    where = _row_of_entry(rows)
    empty = torch.zeros(rows.shape[0], dtype=torch.float64, device=rows.device)
    values = rows.values.double()
    return empty.index_add(0, where, values.abs()), empty.index_add(0, where, values.square())


def _row_of_entry(rows: Csr) -> Tensor:
    index = torch.arange(rows.shape[0], device=rows.device)
    return torch.repeat_interleave(index, rows.indptr.diff().long())


def _scaled(rows: Rows, scale: Tensor) -> Rows:
    if not isinstance(rows, Csr):
        return rows * scale.unsqueeze(1).to(rows)
    values = rows.values * scale.to(rows.values)[_row_of_entry(rows)]
    return Csr(rows.indptr, rows.indices, values, rows.shape)


def _links(graph: Graph) -> Csr:
    """Who is linked to whom, without the weights, in float64."""
    a = graph.adjacency
    ones = torch.ones(a.nnz, dtype=torch.float64, device=a.device)
    return Csr(a.indptr, a.indices, ones, a.shape, a.symmetric)


def _stepped(operator: Csr, held: Rows, nodes: Tensor) -> Rows:
    """One more hop at these nodes; the other rows become zeros, as nobody asks for them."""
    n = operator.shape[0]
    part = operator.select(nodes)
    lengths = torch.zeros(n, dtype=part.indptr.dtype, device=part.device)
    lengths[nodes] = part.indptr.diff()
    start = torch.zeros(1, dtype=part.indptr.dtype, device=part.device)
    pointers = torch.cat([start, lengths.cumsum(0, dtype=part.indptr.dtype)])
    thinned = Csr(pointers, part.indices, part.values, operator.shape)
    if isinstance(held, Csr):
        return sparse_product(thinned, held)
    return thinned.to(dtype=held.dtype) @ held


def _picked(rows: Rows, nodes: Tensor, weights: Tensor) -> Rows:
    chosen = rows.select(nodes) if isinstance(rows, Csr) else rows[nodes]
    return _scaled(chosen, weights[nodes])


def _sum(a: Rows, b: Rows) -> Rows:
    if isinstance(a, Csr) and isinstance(b, Csr):
        return Csr.from_scipy(a.to_scipy() + b.to_scipy(), dtype=a.dtype).to(a.device)
    return _dense(a) + _dense(b)


def beside(parts: Sequence[Rows]) -> Rows:
    """Columns side by side; sparse where every part is."""
    if not all(isinstance(part, Csr) for part in parts):
        return torch.cat([_dense(part) for part in parts], dim=1)
    sparse = [part for part in parts if isinstance(part, Csr)]
    stacked = sp.hstack([part.to_scipy() for part in sparse])
    return Csr.from_scipy(stacked, dtype=sparse[0].dtype).to(sparse[0].device)


def _dense(rows: Rows) -> Tensor:
    return rows.to_dense() if isinstance(rows, Csr) else rows


def _dense_if_full(rows: Rows) -> Rows:
    if isinstance(rows, Csr) and rows.nnz * _FULL_FROM > rows.shape[0] * rows.shape[1]:
        return rows.to_dense()
    return rows


def times(rows: Rows, weights: Tensor) -> Tensor:
    """Rows times weights, in the precision of the weights."""
    if isinstance(rows, Csr):
        return rows.to(dtype=weights.dtype) @ weights
    return rows.to(weights.dtype) @ weights


def _distinct(blocks: Sequence[Tensor]) -> Sequence[Tensor]:
    """One block where all hops share their weights."""
    return blocks[:1] if all(block is blocks[0] for block in blocks) else blocks
