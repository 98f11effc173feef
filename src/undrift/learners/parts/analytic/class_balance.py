"""Classes that weigh the same: in a classifier when it is solved, in other sums as rows arrive."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import RidgeStatistics
from undrift.streams.task import Task
from undrift.typing import Once, unshared

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


def nodes_that_count(task: Task, nodes: Nodes, once: Once = unshared) -> Tensor:
    """Their indices; shared side by side."""
    mask = task.train if nodes == "train" else torch.ones_like(task.train)
    return once(lambda: mask.nonzero().flatten(), "nodes that count", task, nodes)


def class_share(task: Task, bank: RidgeBank | None) -> float:
    """What the rows of one class weigh together, the same for every class ever.

    It is the mean class size of the first task, so that an absolute gamma keeps its meaning.
    Later tasks read it from the classifier's `bank` before them: the energy of one-hot targets
    is the sum of all weights, the share times the classes so far.
    """
    if bank is None or bank.statistics.count == 0:
        return int(task.train.sum()) / len(task.classes)
    return bank.statistics.energy / bank.statistics.outputs


def balanced_rows(task: Task, nodes: Nodes, share: float, once: Once = unshared) -> Tensor:
    """A weight per row of a sum over these nodes of the task, in float64; shared side by side.

    Training nodes of class c weigh `share / n_c` each. `all` nodes have no labels to go by: they
    weigh the same, and together as much as the task's classes.
    """
    make = _by_class if nodes == "train" else _by_task
    return once(lambda: make(task, share), "balanced rows", task, nodes, share)


def _by_class(task: Task, share: float) -> Tensor:
    labels = task.labels[task.train]
    _, where, sizes = labels.unique(return_inverse=True, return_counts=True)
    weights: Tensor = (share / sizes.double())[where]
    return weights


def _by_task(task: Task, share: float) -> Tensor:
    graph = task.graph
    each = share * len(task.classes) / graph.num_nodes
    return torch.full((graph.num_nodes,), each, dtype=torch.float64, device=graph.device)
