"""Sums of integers that tell whether two graphs are the same, on whatever device they are.

Each part of a graph is one sum over its nodes, modulo 2^64, of a node's name mixed with
`sum_j bits(x_j) w_j`. So the order of nodes and edges does not count, nor whether features are
dense. Two graphs that differ by accident have one sum once in 2^64 times; a forger can make two.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.sparse import Csr
from undrift.typing import Rows

_GOLDEN, _FIRST, _SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
_APART = 0x9E3779B97F4A7C1
_FEATURES, _EDGES, _LABELS, _PLACES = 1, 2, 3, 4  # a part's own numbers
_AT_ONCE = {"cpu": 2**18, "cuda": 2**24}  # entries: on the CPU, what a cache holds


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The sums of a graph whose nodes have these names, of rows from `start` on if need be."""

    names: Tensor
    seed: int = 0

    @classmethod
    def of_places(cls, n: int, device: torch.device) -> Fingerprint:
        """Nodes that go by their place."""
        return cls(_drawn(n, _PLACES, device))

    @classmethod
    def of_numbers(cls, numbers: Tensor, seed: int) -> Fingerprint:
        """Nodes that go by whole numbers of their own."""
        return cls(_mixed(numbers * _GOLDEN + seed), seed)

    def features(self, rows: Rows, start: int = 0) -> int:
        """Of the features of some nodes, columns in their order."""
        weights = _drawn(rows.shape[1], self.seed + _FEATURES, self.names.device)
        return self._total(_weighed(rows, weights), start, _FEATURES)

    def edges(self, rows: Csr, start: int = 0) -> int:
        """Of all edges into some nodes, with their weights."""
        senders = _mixed(self.names + self.seed) | 1
        return self._total(_weighed(rows, senders), start, _EDGES)

    def labels(self, values: Tensor, start: int = 0) -> int:
        """Of one whole number per node, such as its class."""
        return self._total(values.long(), start, _LABELS)

    def _total(self, values: Tensor, start: int, part: int) -> int:
        names = self.names[start : start + values.shape[0]]
        return int(_mixed(_mixed(values + part * _APART) + names).sum())


def wrapped(sums: list[int]) -> int:
    """The sum of sums, as one over all rows would have given it."""
    return (sum(sums) + 2**63) % 2**64 - 2**63


def _weighed(rows: Rows, weights: Tensor) -> Tensor:
    """`sum_j bits(x_j) w_j` of every row."""
    found = [weights.new_zeros(0)]
    at_once = _AT_ONCE[rows.device.type]
    if isinstance(rows, Csr):
        alike = rows.nnz > 0 and bool((rows.values == 1).all())  # edges are, mostly
        for where in rows.ranges(at_once):
            part = rows[where]
            entries = weights.index_select(0, part.indices)
            entries = entries if alike else entries * _bits(part.values)
            running = torch.cat([entries.new_zeros(1), entries.cumsum(0)])
            found.append(running.index_select(0, part.indptr).diff())
        sums = torch.cat(found)
        return sums * _bits(rows.values[:1]) if alike else sums
    for part in rows.split(max(1, at_once // max(1, rows.shape[1]))):
        found.append((_bits(part) * weights).sum(dim=1))
    return torch.cat(found)


def _bits(values: Tensor) -> Tensor:
    """The bits of floats as whole numbers, both zeros as 0, the upper ones in the lower too."""
    values = values + 0.0  # minus zero becomes zero
    if values.dtype == torch.float32:
        bits = values.view(torch.int32).long()
        return bits + (bits >> 16)
    bits = values.double().view(torch.int64)
    return bits ^ ((bits >> 32) & 0xFFFFFFFF)


def _drawn(n: int, seed: int, device: torch.device) -> Tensor:
    """So many odd numbers that look random."""
    return _mixed((torch.arange(n, device=device) + 1) * _GOLDEN + seed) | 1


def _mixed(x: Tensor) -> Tensor:
    """A number whose every bit depends on every bit of `x`, one to one (splitmix64)."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _FIRST
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return x ^ ((x >> 31) & 0x1FFFFFFFF)
