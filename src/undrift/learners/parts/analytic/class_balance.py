"""Class-balanced row weights: every class weighs the same over the whole history.

A class arrives in one task, so its size n_c is known when its rows are added to a sum, and the
weight can be applied there: exact, at no memory.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.graphs import Graph
from undrift.learners.parts.analytic.frozen_encoder import training_labels
from undrift.sharing import once
from undrift.streams.task import Task

__all__ = ["Nodes", "balanced_rows", "class_share", "nodes_that_count"]

Nodes = Literal["train", "all"]


def nodes_that_count(task: Task, graph: Graph, nodes: Nodes) -> Tensor:
    """Their indices, on the graph's device; shared side by side."""

    def make() -> Tensor:
        mask = task.train if nodes == "train" else torch.ones_like(task.train)
        return mask.nonzero().flatten().to(graph.device)

    return once(make, "nodes that count", task.graph, nodes, str(graph.device))


def class_share(task: Task, bank: RidgeBank) -> float:
    """What the rows of one class weigh together, the same for every class ever.

    It is the mean class size of the first task: the first task's rows then weigh as much as
    without balance, so an absolute gamma keeps its meaning. Later tasks read it from the
    classifier's `bank` as it was before them: the energy of one-hot targets is the sum of all
    weights, which is the share times the classes so far. Nothing more is kept.
    """
    seen = bank.statistics
    if seen.count == 0:
        return int(task.train.sum()) / len(task.classes)
    return seen.energy / seen.outputs


def balanced_rows(task: Task, graph: Graph, nodes: Nodes, share: float) -> Tensor:
    """A weight per row of a sum over these nodes of the task, in float64; shared side by side.

    Training nodes of class c weigh `share / n_c` each. `all` nodes have no labels to go by: they
    weigh the same, and together as much as the task's classes.
    """
    make = _by_class if nodes == "train" else _by_task
    where = (task.graph, nodes, share, str(graph.device))
    return once(lambda: make(task, graph, share), "balanced rows", *where)


def _by_class(task: Task, graph: Graph, share: float) -> Tensor:
    _, labels = training_labels(task, graph)
    _, where, sizes = labels.unique(return_inverse=True, return_counts=True)
    weights: Tensor = (share / sizes.double())[where]
    return weights


def _by_task(task: Task, graph: Graph, share: float) -> Tensor:
    each = share * len(task.classes) / graph.num_nodes
    return torch.full((graph.num_nodes,), each, dtype=torch.float64, device=graph.device)
