"""`Hops`: weighted sums of hops, computed at the nodes that they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from undrift.sparse import Csr, beside, dense_columns, plus, product_in_cache
from undrift.typing import Rows

_FULL_FROM = 24  # rows with more than one entry in this many cells are cheaper dense
_BLOCK = {
    "cpu": 2**21,
    "cuda": 2**28,
}  # cells of a block of columns, held for every hop; a GPU has room
_NARROWEST = 64  # columns of a block, at least


@dataclass(frozen=True)
class Mixing:
    """A way to mix hops: weights D_0, D_1, ... at the nodes asked for; summed or side by side."""

    weights: Sequence[Tensor]
    summed: bool


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
class Hop:
    """One hop: `held = product @ held`, of which each mix takes a part."""

    product: Csr
    taken: tuple[Taken, ...]


@dataclass(frozen=True, eq=False)
class Hops:
    """`sum_k D_k A^k H` at some nodes: hop k only where one takes it or a later hop passes.

    Several mixes of the same hops are made in one pass. `start`: the nodes at which H is read,
    rising, of which mixes take `first`.
    """

    start: Tensor
    first: tuple[Taken, ...]
    steps: tuple[Hop, ...]
    mixes: tuple[Mixing, ...]
    everywhere: bool

    @classmethod
    def at_nodes(
        cls,
        operator: Callable[[Tensor | None], Csr],
        mixes: Sequence[Mixing],
        nodes: Tensor,
        num_nodes: int,
    ) -> Hops:
        """For these nodes (indices) of so many; `operator` gives all rows of A, or some."""
        most = max(len(mix.weights) for mix in mixes)
        hops = range(most - 1, 0, -1)
        weights = {k: [_at_hop(mix, k) for mix in mixes] for k in hops}
        taking = {k: [(each > 0).nonzero().flatten() for each in weights[k]] for k in hops}
        computed: dict[int, Tensor] = {}
        products: dict[int, Csr] = {}
        through = nodes[:0]
        for k in hops:
            computed[k] = _either([*(nodes[rows] for rows in taking[k]), through], num_nodes)
            every = computed[k].numel() == num_nodes
            products[k] = operator(None if every else computed[k])
            through = products[k].indices
        computed[0] = _either([nodes, through], num_nodes)
        steps = []
        for k in reversed(hops):
            whole = computed[k - 1].numel() == num_nodes
            product = products[k] if whole else products[k].over(computed[k - 1])
            taken = tuple(
                Taken(rows, torch.searchsorted(computed[k], nodes[rows]), weight[rows])
                for weight, rows in zip(weights[k], taking[k], strict=True)
            )
            steps.append(Hop(product, taken))
        at = torch.searchsorted(computed[0], nodes)
        all_rows = torch.arange(nodes.numel(), device=nodes.device)
        first = tuple(Taken(all_rows, at, mix.weights[0]) for mix in mixes)
        everywhere = computed[0].numel() == num_nodes
        return cls(computed[0], first, tuple(steps), tuple(mixes), everywhere)

    def mixed(
        self, held: Rows, scale: Tensor | None = None, dtype: torch.dtype = torch.float64
    ) -> list[Rows]:
        """Each mix in this type, where `held` are the rows of H at `start`.

        Sparse rows stay sparse while that is cheaper; then, some columns at a time, they are
        dense. `scale`: a factor of every row of a dense H.
        """
        if not isinstance(held, Csr):
            scale = None if scale is None else scale.to(dtype).unsqueeze(1)
            return list(self._dense(held, scale, self.steps, [None] * len(self.mixes), dtype))
        count = self.first[0].rows.numel()
        parts: list[list[Rows]] = [[taken.of(held)] for taken in self.first]
        done = 0
        while done < len(self.steps) and not _full(held):
            step, done = self.steps[done], done + 1
            held = step.product.to(dtype=dtype) @ held
            for mix, mine, taken in zip(self.mixes, parts, step.taken, strict=True):
                if done < len(mix.weights):
                    part = taken.of(held).at_rows(taken.rows, count)
                    mine[:] = [plus(mine[0], part)] if mix.summed else [*mine, part]
        before = [mine[0] if len(mine) == 1 else beside(mine) for mine in parts]
        left = self.steps[done:]
        return list(self._dense(held, None, left, before, dtype)) if left else before

    def _dense(
        self,
        held: Rows,
        scale: Tensor | None,
        left: Sequence[Hop],
        before: Sequence[Rows | None],
        dtype: torch.dtype,
    ) -> list[Tensor]:
        """The mixes after the steps that are left; `before`: what they hold of those before."""
        width, count = held.shape[1], self.first[0].rows.numel()
        results = [
            _room(mix, old, count, held, dtype) for mix, old in zip(self.mixes, before, strict=True)
        ]
        done = len(self.steps) - len(left)
        for columns in _column_blocks(held):
            some = dense_columns(held, columns).to(dtype)
            some = some if scale is None else some * scale
            if before[0] is None:
                for result, taken in zip(results, self.first, strict=True):
                    result[:, columns] = taken.of(some)
            for k, step in enumerate(left, start=done + 1):
                some = product_in_cache(step.product, some)
                for mix, result, taken in zip(self.mixes, results, step.taken, strict=True):
                    shift = 0 if mix.summed else k * width
                    if not taken.rows.numel():
                        continue
                    there = slice(columns.start + shift, columns.stop + shift)
                    if taken.rows.numel() == count:
                        result[:, there] += taken.of(some)
                    else:
                        result[taken.rows, there] += taken.of(some)
        return results


def _at_hop(mix: Mixing, k: int) -> Tensor:
    """The weights of hop k; zeros where the mix ends before it."""
    return mix.weights[k] if k < len(mix.weights) else torch.zeros_like(mix.weights[0])


def _room(mix: Mixing, before: Rows | None, count: int, held: Rows, dtype: torch.dtype) -> Tensor:
    """Where a mix is added up: what it holds already, or zeros, as wide as it will be."""
    wide = held.shape[1] * (1 if mix.summed else len(mix.weights))
    if before is None and mix.summed:
        return torch.empty(count, wide, dtype=dtype, device=held.device)
    room = torch.zeros(count, wide, dtype=dtype, device=held.device)
    if before is not None:
        room[:, : before.shape[1]] = before.to_dense()
    return room


def _either(lists: Sequence[Tensor], num_nodes: int) -> Tensor:
    """The nodes in one list or another, each once, rising."""
    there = torch.zeros(num_nodes, dtype=torch.bool, device=lists[0].device)
    for nodes in lists:
        there[nodes] = True
    return there.nonzero().flatten()


def _full(rows: Csr) -> bool:
    return rows.nnz * _FULL_FROM > rows.shape[0] * rows.shape[1]


def _column_blocks(rows: Rows) -> list[slice]:
    width = rows.shape[1]
    size = max(_NARROWEST, _BLOCK[rows.device.type] // max(1, rows.shape[0]))
    return [slice(start, min(start + size, width)) for start in range(0, width, size)]
