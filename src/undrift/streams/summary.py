"""What a table says about the tasks of a stream, counted without making their graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from undrift.graphs import Graph

if TYPE_CHECKING:
    from undrift.streams.stream import TaskStream

Array = np.ndarray[Any, np.dtype[Any]]
_EDGES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class TaskSummary:
    """A line of the table about a stream.

    Edges are directed (an undirected one counts twice). `dropped` are the edges that end at one
    of the task's nodes but start outside the task, so those that its graph leaves out.
    `imbalance` is rho_t (see `imbalance_of`).
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
    graph, tasks = stream.graph, len(stream)
    task_of = stream.task_of.cpu().numpy()
    known = task_of >= 0
    masks = [mask.cpu().numpy() for mask in (stream.train, stream.val, stream.test)]
    nodes, train, val, test = (
        np.bincount(task_of[inside], minlength=tasks).tolist()
        for inside in (known, *(known & mask for mask in masks))
    )
    kept, dropped = _count_edges(graph, task_of, tasks)
    return [
        TaskSummary(t, classes, nodes[t], train[t], val[t], test[t], kept[t], dropped[t], rho)
        for t, (classes, rho) in enumerate(zip(stream.classes, imbalance_of(stream), strict=True))
    ]


def imbalance_of(stream: TaskStream) -> list[float]:
    """rho_t of every task: the nodes of its largest class over those of its smallest.

    All nodes of the task count (eq. `imbalance` of the paper): the published figures of Arxiv-CL
    come out so, and not from the training nodes alone. Infinite where a class has no node. Cost:
    one sort of the labels.
    """
    labels, task_of = stream.graph.labelled().cpu().numpy(), stream.task_of.cpu().numpy()
    pairs = np.stack([task_of, labels], axis=1)[task_of >= 0]
    present, counts = np.unique(pairs, axis=0, return_counts=True)
    size = {(t, c): n for (t, c), n in zip(present.tolist(), counts.tolist(), strict=True)}
    sizes = [[size.get((t, c), 0) for c in group] for t, group in enumerate(stream.classes)]
    return [max(nodes) / min(nodes) if min(nodes) else float("inf") for nodes in sizes]


def _count_edges(graph: Graph, task_of: Array, tasks: int) -> tuple[list[int], list[int]]:
    """Per task: the edges between its nodes, and those that reach it from outside.

    In pieces of a few million edges, so that nothing as large as the edges is made.
    """
    indptr = graph.adjacency.indptr.cpu().numpy()
    indices = graph.adjacency.indices.cpu().numpy()
    task, degree = task_of.astype(np.int32), np.diff(indptr)
    kept = np.zeros(tasks + 1, dtype=np.int64)  # the last place is for nodes of no task
    first = 0
    while first < task.size:
        end = int(np.searchsorted(indptr, int(indptr[first]) + _EDGES_AT_ONCE, side="right")) - 1
        last = min(max(end, first + 1), task.size)
        target = np.repeat(task[first:last], degree[first:last])
        same = target[task[indices[indptr[first] : indptr[last]]] == target]
        kept += np.bincount(same % (tasks + 1), minlength=tasks + 1)
        first = last
    known = task >= 0
    ending = np.bincount(task[known], weights=degree[known], minlength=tasks).astype(np.int64)
    return kept[:tasks].tolist(), (ending - kept[:tasks]).tolist()
