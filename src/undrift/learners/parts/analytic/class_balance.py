"""Classes that weigh the same: in a classifier when it is solved, in other sums as rows arrive."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import RidgeStatistics
from undrift.sharing import once
from undrift.streams.task import Task

Nodes = Literal["train", "all"]


def weighed(sums: ClassSums, *, balanced: bool) -> RidgeStatistics:
    """R and Q of a classifier, in which every row weighs the same or every class.

    Balanced, a class weighs as much as one of mean size, so that an absolute gamma keeps its
    meaning.
    """
    if not balanced:
        return sums.plain()
    even = sums.balanced()
    size = sums.count / max(even.energy, 1.0)  # the energy is the number of classes with rows
    return RidgeStatistics(even.gram * size, even.moment * size, even.count, even.energy * size)


def nodes_that_count(task: Task, nodes: Nodes) -> Tensor:
    """Their indices; shared side by side."""
    mask = task.train if nodes == "train" else torch.ones_like(task.train)
    return once(lambda: mask.nonzero().flatten(), "nodes that count", task, nodes)


def mean_class_size(task: Task) -> float:
    """What the rows of one class weigh together in sums that are balanced as rows arrive.

    That of the first task, the same for every class ever, so that an absolute gamma keeps its
    meaning.
    """
    return int(task.train.sum()) / len(task.classes)


def balanced_rows(
    task: Task,
    nodes: Nodes,
    share: float,
    seen: tuple[int, ...] | None = None,
) -> Tensor:
    """A weight per row of a sum over these nodes of the task, in float64; shared side by side.

    For sums that cannot be balanced later, because their targets are no classes. Training nodes of
    class c weigh `share / n_c` each, n_c those of the class so far: `seen` has those of earlier
    batches, for each of the task's classes. So a class that comes back weighs more than the share,
    by `share / k` if its k-th batch is as large as those before it. `all` nodes have no labels to
    go by: they weigh the same, and together as much as the training nodes would.
    """
    earlier = seen or (0,) * len(task.classes)
    make = _by_class if nodes == "train" else _by_task
    inputs = (task, nodes, share, earlier)
    return once(lambda: make(task, share, earlier), "balanced rows", *inputs)


def _by_class(task: Task, share: float, seen: tuple[int, ...]) -> Tensor:
    sizes = _sizes(task)
    each = share / (sizes + torch.tensor(seen, device=sizes.device)).double()
    weights: Tensor = each[_places(task)]
    return weights


def _by_task(task: Task, share: float, seen: tuple[int, ...]) -> Tensor:
    graph, sizes = task.graph, _sizes(task).tolist()
    classes = sum(n / (n + before) for n, before in zip(sizes, seen, strict=True))
    each = share * classes / graph.num_nodes
    return torch.full((graph.num_nodes,), each, dtype=torch.float64, device=graph.device)


def _places(task: Task) -> Tensor:
    """The place of each training node's class among the task's."""
    hits = task.labels[task.train].unsqueeze(1) == torch.tensor(
        task.classes, device=task.graph.device
    )
    return hits.to(torch.uint8).argmax(dim=1)


def _sizes(task: Task) -> Tensor:
    return _places(task).bincount(minlength=len(task.classes))
