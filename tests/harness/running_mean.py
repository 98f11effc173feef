"""`RunningMean`: the smallest learner for which classes may come back, to test what runs one."""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.base import Learner, at_nodes
from undrift.streams.task import Task, joined
from undrift.typing import Progress


@dataclass(frozen=True)
class Sums:
    """The sum of the features of every class, and how many rows are in it."""

    classes: tuple[int, ...]
    num_features: int
    total: Tensor
    count: Tensor


@dataclass(kw_only=True)
class RunningMean(Learner):
    """The class whose mean feature vector over all batches is nearest. Looks at no edge."""

    name: ClassVar[str] = "running-mean"
    learned_type: ClassVar[type] = Sums
    returns: ClassVar[bool] = True

    def _learn(self, task: Task, progress: Progress) -> Sums:
        x, old = task.graph.features.to_dense(), cast("Sums | None", self.learned_)
        classes = joined(self.classes_, task.classes)
        total, count = torch.zeros(len(classes), x.shape[1]), torch.zeros(len(classes), 1)
        if old is not None:
            total[: len(old.classes)] += old.total
            count[: len(old.classes)] += old.count
        for k, c in enumerate(classes):
            mine = task.train & (task.labels == c)
            total[k] += x[mine].sum(dim=0)
            count[k] += mine.sum()
        return Sums(classes, x.shape[1], total, count)

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        rows = at_nodes(graph.features.to_dense(), nodes)
        return -torch.cdist(rows, learned.total / learned.count)
