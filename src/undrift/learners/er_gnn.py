"""ER-GNN: keep a few nodes of every class and show them again while learning the next task.

Zhou and Cao, "Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience
Replay", AAAI 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from undrift.checks import checked
from undrift.encoders.training import Loss, cross_entropy
from undrift.graphs import Graph
from undrift.learners.base import check_positive
from undrift.learners.parts.replay import Buffer, replayed
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.learners.parts.training.model_learner import ModelLearner, TaskTraining
from undrift.sparse import Csr, sparse_product
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = [
    "SAMPLERS",
    "ErGnn",
    "ErGnnLearned",
    "Sampler",
    "conflicts",
    "distance_to_mean",
    "select",
]

Rows = Tensor | Csr
Sampler = Literal["mf", "cm", "random"]
SAMPLERS: tuple[str, ...] = ("mf", "cm", "random")
_PAIRS = 2**23  # distances held at a time: 64 MB in float64


def select(
    graph: Graph,
    train: Tensor,
    classes: tuple[int, ...],
    *,
    sampler: Sampler,
    budget: int,
    distance: float,
    generator: torch.Generator,
) -> Tensor:
    """Up to `budget` training nodes (indices) of each class, class by class, best first.

    `mf` (mean of features) takes those nearest to the class mean of the raw features, `cm`
    (coverage) those with the fewest training nodes of another class nearer than `distance`,
    `random` any. Ties fall at random. A class with fewer nodes than `budget` is taken whole.
    Cost: `mf` one pass over the rows; `cm` all pairs of nodes of different classes, in chunks.
    """
    checked("sampler", Sampler, sampler)
    assert graph.labels is not None  # noqa: S101  # a task has labels
    labels = graph.labels[train]
    chosen = []
    for c in classes:
        members = train[labels == c]
        # shuffled first, and sorted stably after: among equals chance decides, not the index
        order = torch.randperm(members.numel(), generator=generator)
        members = members[order.to(members.device)]
        if sampler == "mf":
            rank = distance_to_mean(_rows(graph, members))
        elif sampler == "cm":
            rank = conflicts(_rows(graph, members), _rows(graph, train[labels != c]), distance)
        else:
            rank = torch.zeros(members.numel(), device=members.device)
        chosen.append(members[rank.argsort(stable=True)[:budget]])
    return torch.cat(chosen)


def distance_to_mean(rows: Rows) -> Tensor:
    """The squared Euclidean distance of each row to the mean of all.

    Computed in float64 and rounded to float32, so that rounding does not part equal rows.

    >>> distance_to_mean(torch.tensor([[0.0, 1.0], [0.0, 3.0], [0.0, 5.0]])).tolist()
    [4.0, 0.0, 4.0]
    """
    x = rows.to(dtype=torch.float64)
    n = x.shape[0]
    if isinstance(x, Csr):  # |x|^2 - 2 x.m + |m|^2: the sparse rows are never made dense
        ones = torch.ones(n, 1, dtype=torch.float64, device=x.device)
        mean = (x.transpose @ ones) / n
        squared = _squared_norms(x) - 2 * (x @ mean).flatten() + mean.square().sum()
    else:
        squared = (x - x.mean(dim=0)).square().sum(dim=1)
    return squared.clamp_min(0).float()


def conflicts(rows: Rows, others: Rows, distance: float) -> Tensor:
    """For each row, how many of the other rows are nearer than `distance` (Euclidean).

    Cost: rows x others x width multiplications when dense, those of the sparse product when
    sparse; memory: a chunk of distances, however many there are.

    >>> conflicts(torch.tensor([[0.0], [9.0]]), torch.tensor([[1.0], [2.0], [3.0]]), 2.5).tolist()
    [2, 0]
    """
    a, b = rows.to(dtype=torch.float64), others.to(dtype=torch.float64)
    n, m = a.shape[0], b.shape[0]
    counts = torch.zeros(n, dtype=torch.int64, device=a.device)
    if m == 0:
        return counts
    size_a, size_b = _squared_norms(a), _squared_norms(b)
    step = max(1, _PAIRS // m)
    for start in range(0, n, step):
        stop = min(start + step, n)
        squared = size_a[start:stop, None] + size_b - 2 * _inner(a, start, stop, b)
        counts[start:stop] = (squared < distance**2).sum(dim=1)
    return counts


def _inner(a: Rows, start: int, stop: int, b: Rows) -> Tensor:
    if isinstance(a, Csr) and isinstance(b, Csr):
        return sparse_product(a.slice(start, stop), b.transpose).to_dense()
    assert isinstance(a, Tensor) and isinstance(b, Tensor)  # noqa: S101, PT018  # of one graph
    return a[start:stop] @ b.T


def _squared_norms(rows: Rows) -> Tensor:
    if isinstance(rows, Tensor):
        return rows.square().sum(dim=1)
    squares = Csr(rows.indptr, rows.indices, rows.values.square(), rows.shape)
    ones = torch.ones(rows.shape[1], 1, dtype=rows.dtype, device=rows.device)
    return (squares @ ones).flatten()


def _rows(graph: Graph, nodes: Tensor) -> Rows:
    features = graph.features
    return features.select(nodes) if isinstance(features, Csr) else features[nodes]


@dataclass(frozen=True, eq=False)
class ErGnnLearned:
    """What ER-GNN keeps: a model, and `budget` nodes of every class seen."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model
    buffer: Buffer


@dataclass(kw_only=True)
class ErGnn(ModelLearner):
    """Experience replay: nodes of old tasks, without their edges, beside the new task's.

    Loss from the second task on, with B the buffer of all old tasks:

        beta CE(task) + (1 - beta) CE(B),   beta = |B| / (|B| + n_batch)

    both over all classes seen. `budget`: nodes kept per class. `sampler`: which ones: `mf`
    nearest to the class mean of the raw features, `cm` fewest training nodes of other classes
    nearer than `distance`, or `random`.

    Keeps examples. Cost per step: a forward and backward pass over |B| nodes more than Bare;
    per task the selection (`cm`: all pairs of training nodes of different classes). Memory: one
    model and budget x classes rows of features, sparse where they came sparse.
    """

    name: ClassVar[str] = "er-gnn"
    display: ClassVar[str] = "ER-GNN"
    family: ClassVar[str] = "rehearsal"
    paper: ClassVar[str] = "Zhou and Cao, AAAI 2021"
    keeps: ClassVar[str] = "nodes of every class, one encoder and head"
    keeps_examples: ClassVar[bool] = True
    learned_type: ClassVar[type] = ErGnnLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "sampler": ("mf", "cm"),
        "distance": (0.05, 0.5, 5.0),
    }

    budget: int = 10
    sampler: Sampler = "cm"
    distance: float = 0.5
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(budget=self.budget, distance=self.distance)

    def _learn(self, task: Task, progress: Progress) -> ErGnnLearned:
        before: ErGnnLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        graph, classes = training.graph, training.classes
        model = training.train(progress, self._loss(before, training.model, classes))
        progress("select", 0, 1)
        kept = self._selected(task, graph, training.t)
        buffer = before.buffer.add(kept) if before else kept
        progress("select", 1, 1)
        return ErGnnLearned(classes, graph.num_features, training.t + 1, model, buffer)

    def _loss(self, before: ErGnnLearned | None, model: Model, classes: tuple[int, ...]) -> Loss:
        if before is None:
            return cross_entropy
        weighted = self.backbone.class_weighted
        return replayed(before.buffer, model, classes, class_weighted=weighted)

    def _selected(self, task: Task, graph: Graph, t: int) -> Buffer:
        nodes = select(
            graph,
            task.train.nonzero().flatten().to(graph.device),
            task.classes,
            sampler=self.sampler,
            budget=self.budget,
            distance=self.distance,
            # its own generator: which nodes are kept does not depend on how training went
            generator=generator_for(self.seed, t),
        )
        return Buffer.of(graph, nodes, self.budget)
