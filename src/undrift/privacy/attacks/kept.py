"""`kept_sums`: the sums over rows in a state; `Candidates`: rows to try on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from undrift.graphs import Graph, Scaling
from undrift.learners.base import Learner
from undrift.learners.kept import KeptSum
from undrift.streams.task import Task


def kept_sums(learner: Learner) -> list[KeptSum]:
    """The sums that a learner says it keeps (`Learner.inventory`).

    >>> from undrift.learners.propagation import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> first, *_ = tiny_stream()
    >>> [(each.name, each.count) for each in kept_sums(Propagation().observe(first))][0]
    ('mix', 12)
    """
    return [_in_units(each, learner.scaling_) for each in learner.inventory().sums]


def _in_units(kept: KeptSum, scaling: Scaling | None) -> KeptSum:
    """The same sum, with rows made of graphs as users give them."""
    if scaling is None:
        return kept

    def rows(graph: Graph, nodes: Tensor) -> Tensor:
        return kept.rows(graph.scaled(scaling), nodes)

    return replace(kept, rows=rows)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that an attacker holds: which are members, and their classes (-1 unknown).

    Every row is made in the graph of its batch, members' and others' alike, so that what tells
    them apart is membership alone.
    """

    rows: Tensor
    members: Tensor
    labels: Tensor

    @classmethod
    def of(cls, kept: KeptSum, tasks: Iterable[Task], labels: Tensor | None = None) -> Candidates:
        """All nodes of these batches: those in the sum, and the others.

        `labels`: the class of every node of all batches, where a batch hides some.
        """
        batches = list(tasks)
        known = torch.cat([task.labels.cpu() for task in batches])
        return cls(
            torch.cat([kept.rows_of(task, torch.ones_like(task.train)) for task in batches]),
            torch.cat([kept.members(task).cpu() for task in batches]),
            known if labels is None else labels.cpu(),
        )
