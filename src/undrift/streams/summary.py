"""What a table says about the tasks of a stream, counted without making their graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from undrift.streams.stream import TaskStream

_EDGES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class TaskSummary:
    """A line of the table about a stream.

    Edges are directed (an undirected one counts twice). `dropped` are the edges into the task's
    nodes from outside, which its graph leaves out. `imbalance` is rho_t (see `imbalance_of`).
    """

    task: int
    classes: tuple[int, ...]
    nodes: int
    train: int
    val: int
    test: int
    edges: int
    dropped: int
    imbalance: float


def summarise(stream: TaskStream) -> list[TaskSummary]:
    """A summary per task. Cost: one pass over the edges, whatever the number of tasks."""
    links, known = stream.graph.adjacency, stream.task_of >= 0
    place = stream.task_of + 1  # 0: in no task
    size = len(stream) + 1
    splits = (known, known & stream.train, known & stream.val, known & stream.test)
    counts = [torch.bincount(place[mask], minlength=size) for mask in splits]
    kept = ending = torch.zeros_like(counts[0])
    for rows in links.ranges(_EDGES_AT_ONCE):  # nothing as large as all edges is made
        part = links[rows]
        target = torch.repeat_interleave(place[rows], part.indptr.diff().long())
        ending = ending + torch.bincount(target, minlength=size)
        kept = kept + torch.bincount(target[place[part.indices] == target], minlength=size)
    nodes, train, val, test, edges, dropped = (
        each[1:].tolist() for each in (*counts, kept, ending - kept)
    )
    return [
        TaskSummary(t, classes, nodes[t], train[t], val[t], test[t], edges[t], dropped[t], rho)
        for t, (classes, rho) in enumerate(zip(stream.classes, imbalance_of(stream), strict=True))
    ]


def imbalance_of(stream: TaskStream) -> list[float]:
    """rho_t of every task: the nodes of its largest class over those of its smallest.

    All nodes of the task count (eq. `imbalance` of the paper), not the training nodes alone.
    Infinite where a class has no node. Cost: one sort of the labels.
    """
    pairs = torch.stack([stream.task_of, stream.graph.labelled()], dim=1)[stream.task_of >= 0]
    present, counts = torch.unique(pairs, dim=0, return_counts=True)
    size = dict(zip(map(tuple, present.tolist()), counts.tolist(), strict=True))
    sizes = [[size.get((t, c), 0) for c in group] for t, group in enumerate(stream.classes)]
    return [max(nodes) / min(nodes) if min(nodes) else float("inf") for nodes in sizes]
