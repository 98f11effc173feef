"""`KeptSum`: a part of a learner's state that is a sum over rows; `kept_sums` lists them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.privacy.attacks.seen import Seen
from undrift.streams.task import Task

RowsOf = Callable[[Graph, Tensor], Tensor]
"""The rows of some nodes (indices) of a graph, dense float64, as they were summed."""

Nodes = Literal["train", "all"]


@dataclass(frozen=True, eq=False)
class KeptSum:
    """One sum of a state, and how its rows are made.

    `gram`: `sum z z^T` over the `nodes` of every batch. `means`: `[d, C]`, a column per class that
    points where the mean of its rows points. `counts`: the rows behind each. `class_grams`:
    `[C, d, d]`, where each class has its own. `count`: all rows. `current` is False where rows of
    batches before the last were made by an encoder that the state no longer has. `linear`: how many
    of the leading columns are linear in features; 0 is all. `seen`: R through a few directions,
    where no more of it is kept; then `gram` is what can be made of that.
    """

    name: str
    rows: RowsOf = field(repr=False)
    count: int
    classes: tuple[int, ...] = ()
    nodes: Nodes = "train"
    gram: Tensor | None = field(default=None, repr=False)
    means: Tensor | None = field(default=None, repr=False)
    counts: Tensor | None = field(default=None, repr=False)
    class_grams: Tensor | None = field(default=None, repr=False)
    current: bool = True
    linear: int = 0
    seen: Seen | None = field(default=None, repr=False)

    @property
    def width(self) -> int:
        """Columns of a row."""
        for table in (self.gram, self.means):
            if table is not None:
                return int(table.shape[0])
        return 0

    def members(self, task: Task) -> Tensor:
        """The mask of a batch's nodes whose rows are in the sum."""
        return torch.ones_like(task.train) if self.nodes == "all" else task.train

    def smallest(self, among: Collection[int] | None = None) -> int | None:
        """The column of the class with the fewest rows, of those with any."""
        if self.counts is None:
            return None
        sizes = {
            column: rows
            for column, rows in enumerate(self.counts.tolist())
            if rows > 0.5 and (among is None or self.classes[column] in among)
        }
        return min(sizes, key=lambda column: sizes[column], default=None)

    def columns_of(self, labels: Tensor) -> Tensor | None:
        """The place of each label in `classes`; None where one is unknown."""
        if not self.classes:
            return None
        hits = labels.unsqueeze(1) == torch.tensor(self.classes)
        return hits.to(torch.uint8).argmax(dim=1) if bool(hits.any(dim=1).all()) else None

    def own_rows_of(self, task: Task, mask: Tensor) -> Tensor:
        """The rows that these nodes would have without any neighbour: their own features."""
        everyone = torch.arange(task.graph.num_nodes, device=task.graph.device)
        alone = task.graph.isolated(everyone)
        return self.rows(alone, mask.nonzero().flatten()).double().cpu()

    def rows_of(self, task: Task, mask: Tensor) -> Tensor:
        """The rows of these nodes of a batch, in its graph."""
        return self.rows(task.graph, mask.nonzero().flatten()).double().cpu()


def kept_sums(learner: Learner) -> list[KeptSum]:
    """The sums in a learner's state; none for one that keeps weights alone.

    >>> from undrift.learners.propagation import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> first, *_ = tiny_stream()
    >>> [(each.name, each.count) for each in kept_sums(Propagation().observe(first))][0]
    ('mix', 12)
    """
    from undrift.privacy.attacks.kept_encoded import ENCODED
    from undrift.privacy.attacks.kept_propagated import PROPAGATED

    if learner.learned_ is None:
        return []
    for kind, adaptor in {**PROPAGATED, **ENCODED}.items():
        if isinstance(learner, kind):
            return list(adaptor(learner))
    return []


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
