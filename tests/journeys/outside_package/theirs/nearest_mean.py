"""A method: the class whose mean propagated features are nearest."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift import Graph, Learner, Task
from undrift.sparse import Csr
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class Means:
    """One mean per class."""

    classes: tuple[int, ...]
    num_features: int
    means: Tensor


@dataclass(kw_only=True)
class NearestMean(Learner):
    """The class whose mean propagated features are nearest."""

    name: ClassVar[str] = "nearest-mean"
    display: ClassVar[str] = "Nearest mean"
    family: ClassVar[str] = "prototypes"
    keeps: ClassVar[str] = "one mean per class"
    learned_type: ClassVar[type] = Means
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"hops": (1, 2)}

    hops: int = 2

    def _learn(self, task: Task, progress: Progress) -> Means:
        progress("means", 0, 1)
        h, labels = self._propagated(task.graph), task.graph.labels
        new = torch.stack([h[task.train & (labels == c)].mean(dim=0) for c in task.classes])
        old = self.learned_
        classes = task.classes if old is None else (*old.classes, *task.classes)
        means = new if old is None else torch.cat([old.means, new])
        return Means(classes, task.graph.num_features, means)

    def _scores(self, learned: Means, graph: Graph, nodes: Tensor | None) -> Tensor:
        rows = self._propagated(graph)
        return -torch.cdist(rows if nodes is None else rows[nodes], learned.means)

    def _propagated(self, graph: Graph) -> Tensor:
        h = graph.features.to_dense() if isinstance(graph.features, Csr) else graph.features
        for _ in range(self.hops):
            h = graph.operator("symmetric") @ h
        return h
