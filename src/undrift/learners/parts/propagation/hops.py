"""`Hops`: a weighted sum of hops, computed at the nodes that it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from undrift.sparse import Csr, dense_columns, exact_product, plus
from undrift.typing import Rows

_FULL_FROM = 24  # rows with more than one entry in this many cells are cheaper dense
_BLOCK = {
    "cpu": 2**21,
    "cuda": 2**28,
}  # cells of a block of columns: near the cache; a GPU has room
_NARROWEST = 64  # columns of a block, at least


@dataclass(frozen=True, eq=False)
class Step:
    """One hop: `held = product @ held`; `held[at]`, weighed, belongs to the rows `taking`."""

    product: Csr
    taking: Tensor
    at: Tensor
    weight: Tensor

    @overload
    def part(self, held: Tensor) -> Tensor: ...
    @overload
    def part(self, held: Csr) -> Csr: ...
    def part(self, held: Rows) -> Rows:
        """What the rows `taking` get of this hop."""
        return held[self.at] * self.weight.unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Hops:
    """`sum_k D_k A^k H` at some nodes: hop k only where one takes it or a later hop passes.

    Few nodes take many hops, so most products have few rows. `start`: the nodes at which H is
    read, rising; `at`: where the nodes asked for stand among them.
    """

    start: Tensor
    at: Tensor
    weight: Tensor
    steps: tuple[Step, ...]
    everywhere: bool

    @classmethod
    def at_nodes(cls, operator: Csr, weights: list[Tensor], nodes: Tensor) -> Hops:
        """For the diagonals D_0, D_1, ... and these nodes (indices). Memory: 8 bytes an edge."""
        n = operator.shape[0]
        hops = range(len(weights) - 1, 0, -1)
        taking = {k: (weights[k][nodes] > 0).nonzero().flatten() for k in hops}
        computed: dict[int, Tensor] = {}
        products: dict[int, Csr] = {}
        through = nodes[:0]
        for k in hops:
            computed[k] = _either(nodes[taking[k]], through, n)
            products[k] = operator if computed[k].numel() == n else operator[computed[k]]
            through = products[k].indices
        computed[0] = _either(nodes, through, n)
        steps = []
        for k in reversed(hops):
            takes = nodes[taking[k]]
            at = torch.searchsorted(computed[k], takes)
            whole = computed[k - 1].numel() == n
            product = products[k] if whole else products[k].over(computed[k - 1])
            steps.append(Step(product, taking[k], at, weights[k][takes]))
        at = torch.searchsorted(computed[0], nodes)
        everywhere = computed[0].numel() == n
        return cls(computed[0], at, weights[0][nodes], tuple(steps), everywhere)

    def mixed(self, held: Rows, scale: Tensor | None = None) -> Rows:
        """The sum over the hops, where `held` are the rows of H at `start`.

        Sparse rows stay sparse while that is cheaper; then, some columns at a time, they are
        dense. `scale`: a factor of every row of a dense H, which may then be of any type.
        """
        left = list(self.steps)
        if isinstance(held, Csr):
            total = held[self.at] * self.weight.unsqueeze(1)
            while left and not _full(held):
                step = left.pop(0)
                held = step.product.double() @ held
                total = plus(total, step.part(held).at_rows(step.taking, total.shape[0]))
            if not left:
                return total
            dense = total.to_dense()
        else:
            shape = self.at.numel(), held.shape[1]
            dense = torch.empty(shape, dtype=torch.float64, device=held.device)
        for columns in _column_blocks(held):
            some = dense_columns(held, columns).double()
            if not isinstance(held, Csr):
                some = some if scale is None else some * scale.unsqueeze(1)
                dense[:, columns] = some[self.at] * self.weight.unsqueeze(1)
            for step in left:
                some = exact_product(step.product, some)
                dense[step.taking, columns] += step.part(some)
        return dense

    def channels(self, held: Rows) -> list[Rows]:
        """Every hop by itself, weighed; zeros where a node does not take it."""
        channels: list[Rows] = [held[self.at] * self.weight.unsqueeze(1)]
        for step in self.steps:
            held = step.product.double() @ (
                held.to_dense() if isinstance(held, Csr) and _full(held) else held
            )
            part = step.part(held)
            if isinstance(part, Csr):
                channels.append(part.at_rows(step.taking, self.at.numel()))
            else:
                zeros = part.new_zeros(self.at.numel(), part.shape[1])
                channels.append(zeros.index_copy(0, step.taking, part))
        return channels


def _either(some: Tensor, others: Tensor, num_nodes: int) -> Tensor:
    """The nodes in one list or the other, each once, rising."""
    there = torch.zeros(num_nodes, dtype=torch.bool, device=some.device)
    there[some] = True
    there[others] = True
    return there.nonzero().flatten()


def _full(rows: Csr) -> bool:
    return rows.nnz * _FULL_FROM > rows.shape[0] * rows.shape[1]


def _column_blocks(rows: Rows) -> list[slice]:
    width = rows.shape[1]
    size = max(_NARROWEST, _BLOCK[rows.device.type] // max(1, rows.shape[0]))
    return [slice(start, min(start + size, width)) for start in range(0, width, size)]
