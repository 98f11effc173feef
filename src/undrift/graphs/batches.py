"""Exact K-hop batches: a few nodes see exactly what they would see in the full graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.sparse import Csr, row_index


@dataclass(frozen=True, eq=False)
class Hop:
    """One step of message passing from `operator.shape[1]` sources to its rows, the targets.

    `own` gives each target's place among the sources (None: they are the same nodes in the same
    order). A layer that keeps a node's own features beside its neighbours' needs it.
    """

    operator: Csr
    own: Tensor | None = None

    def targets(self, h: Tensor) -> Tensor:
        """The rows of `h` that belong to the targets."""
        return h if self.own is None else h[self.own]


def receptive_field(operators: Sequence[Csr], nodes: Tensor) -> tuple[tuple[Hop, ...], Tensor]:
    """The hops that compute `nodes` exactly, and the input nodes they start from.

    `nodes` are indices, in any order and with repeats if need be, or a boolean mask. The input
    nodes come sorted, each once; the last hop's rows are `nodes` as given.

    Weights are those of the full operator, so forward and gradient equal the full-batch ones.
    Cost: the entries of the rows visited; no sampling, no compiled add-on.
    """
    hops: list[Hop] = []
    targets = nodes
    if operators:
        last = operators[-1]
        targets = row_index(nodes.to(last.device), last.shape[0], "node")
    for k in range(len(operators) - 1, -1, -1):
        rows = operators[k][targets]
        sources = torch.unique(torch.cat([rows.indices.long(), targets]))
        columns = torch.searchsorted(sources, rows.indices.long())
        block = Csr(
            rows.indptr,
            columns.to(rows.indices.dtype),
            rows.values,
            (int(targets.numel()), int(sources.numel())),
        )
        hops.append(Hop(block, torch.searchsorted(sources, targets)))
        targets = sources
    return tuple(reversed(hops)), targets


def narrowed(hops: Sequence[Hop], targets: Tensor) -> tuple[tuple[Hop, ...], tuple[Tensor, ...]]:
    """The hops that lead to some of the targets, which are places among all of them.

    And where the rows that are left stood among all: before the first hop, and after each.
    """
    made: list[Hop] = []
    stood = [targets]
    for hop in reversed(hops):
        rows = hop.operator[targets]
        own = targets if hop.own is None else hop.own[targets]
        sources = torch.unique(torch.cat([rows.indices.long(), own]))
        columns = torch.searchsorted(sources, rows.indices.long())
        shape = int(targets.numel()), int(sources.numel())
        block = Csr(rows.indptr, columns.to(rows.indices.dtype), rows.values, shape)
        made.append(Hop(block, torch.searchsorted(sources, own)))
        targets = sources
        stood.append(sources)
    return tuple(reversed(made)), tuple(reversed(stood))
