"""Which nodes of a task enter a sum that needs no labels."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.sharing import once
from undrift.streams.task import Task

__all__ = ["Nodes", "nodes_that_count"]

Nodes = Literal["train", "all"]


def nodes_that_count(task: Task, graph: Graph, nodes: Nodes) -> Tensor:
    """Their indices, on the graph's device; shared side by side."""

    def make() -> Tensor:
        mask = task.train if nodes == "train" else torch.ones_like(task.train)
        return mask.nonzero().flatten().to(graph.device)

    return once(make, "nodes that count", task.graph, nodes, str(graph.device))
