"""ER-GNN: keep a few nodes of every class and replay them with the next task."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from undrift.encoders.training import Loss, cross_entropy
from undrift.graphs import Graph
from undrift.learners.parameters import check_positive
from undrift.learners.parts.backbone import Backbone, Grid, generator_for
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.learners.parts.replay import Buffer, places_taken, replayed
from undrift.sparse import Csr
from undrift.streams.task import Task
from undrift.typing import Progress, Rows

Sampler = Literal["mf", "cm", "random"]
_PAIRS = 2**23  # distances held at a time: 64 MB in float64


def distance_to_mean(rows: Rows) -> Tensor:
    """The squared distance of each row to the mean, in float32, so that equal rows stay equal."""
    x = rows.double()
    n = x.shape[0]
    if isinstance(x, Csr):  # |x|^2 - 2 x.m + |m|^2: the sparse rows are never made dense
        ones = torch.ones(n, 1, dtype=torch.float64, device=x.device)
        mean = (x.t() @ ones) / n
        squared = x.square().sum(dim=1) - 2 * (x @ mean).flatten() + mean.square().sum()
    else:
        squared = (x - x.mean(dim=0)).square().sum(dim=1)
    return squared.clamp_min(0).float()


def conflicts(rows: Rows, others: Rows, distance: float) -> Tensor:
    """For each row, how many of the other rows are nearer than `distance` (Euclidean)."""
    a, b = rows.double(), others.double()
    n, m = a.shape[0], b.shape[0]
    counts = torch.zeros(n, dtype=torch.int64, device=a.device)
    if m == 0:
        return counts
    size_a, size_b, columns = a.square().sum(dim=1), b.square().sum(dim=1), b.t()
    step = max(1, _PAIRS // m)
    for start in range(0, n, step):
        stop = min(start + step, n)
        inner: Rows = a[start:stop] @ columns  # type: ignore[operator]  # both are of one kind
        squared = size_a[start:stop, None] + size_b - 2 * inner.to_dense()
        counts[start:stop] = (squared < distance**2).sum(dim=1)
    return counts


@dataclass(frozen=True, eq=False)
class ErGnnLearned(ModelLearned):
    """What ER-GNN keeps: a model, `budget` nodes of every class seen, and how many there were."""

    buffer: Buffer
    seen: tuple[int, ...]


@dataclass(kw_only=True)
class ErGnn(ModelLearner):
    """ER-GNN: experience replay, with a buffer B of old nodes without their edges.

        L = beta CE(task) + (1 - beta) CE(B),    beta = |B| / (|B| + n_batch)

    both over all classes seen. `budget`: nodes kept per class. `sampler`: which ones: `mf`, nearest
    to the class mean of the raw features; `cm`, fewest training nodes of other classes nearer
    than `distance`; or `random`. Of a class that comes back, old and new nodes share the budget as
    in reservoir sampling (`places_taken`). Keeps examples. Cost: Bare's, a pass over |B| nodes per
    step, and with `cm` all pairs of nodes.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = ErGnn(budget=3, epochs=5, hidden=8).observe(first).observe(second)
    >>> learner.learned_.buffer.graph  # three nodes of each class
    Graph(12 nodes, 0 edges, 12 features dense, 4 classes)
    """

    name: ClassVar[str] = "er-gnn"
    display: ClassVar[str] = "ER-GNN"
    family: ClassVar[str] = "rehearsal"
    paper: ClassVar[str] = "Zhou and Cao, AAAI 2021"
    keeps: ClassVar[str] = "nodes of every class, one encoder and head"
    keeps_examples: ClassVar[bool] = True
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = ErGnnLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "buffer")
    grid: ClassVar[Grid] = {"sampler": ("mf", "cm"), "distance": (0.05, 0.5, 5.0)}

    budget: int = 10
    sampler: Sampler = "cm"
    distance: float = 0.5
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(budget=self.budget, distance=self.distance)

    def _learn(self, task: Task, progress: Progress) -> ErGnnLearned:
        before: ErGnnLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        loss: Loss = cross_entropy
        if before is not None:
            weighted = self.backbone.class_weighted
            loss = replayed(before.buffer, training.model, training.classes, weighted)
        model = training.train(progress, loss)
        progress("select", 0, 1)
        buffer, seen = self._kept(before, training)
        progress("select", 1, 1)
        return ErGnnLearned(*training.known(model), buffer, seen)

    def select(
        self, graph: Graph, train: Tensor, classes: tuple[int, ...], generator: torch.Generator
    ) -> Tensor:
        """Up to `budget` training nodes (indices) of each class, best first; ties at random."""
        labels, features = graph.labelled()[train], graph.features
        chosen = []
        for c in classes:
            members = train[labels == c]
            # shuffled first, and sorted stably after: among equals chance decides, not the index
            order = torch.randperm(members.numel(), generator=generator)
            members = members[order.to(members.device)]
            if self.sampler == "mf":
                rank = distance_to_mean(features[members])
            elif self.sampler == "cm":
                rank = conflicts(features[members], features[train[labels != c]], self.distance)
            else:
                rank = torch.zeros(members.numel(), device=members.device)
            chosen.append(members[rank.argsort(stable=True)[: self.budget]])
        return torch.cat(chosen)

    def _kept(
        self, before: ErGnnLearned | None, training: TaskTraining
    ) -> tuple[Buffer, tuple[int, ...]]:
        """The buffer after the task, and how many nodes of each class there were."""
        task = training.task
        # its own generator: which nodes are kept does not depend on how training went
        generator = generator_for(self.seed, training.t)
        train = task.train.nonzero().flatten()
        nodes = self.select(task.graph, train, task.classes, generator)
        more = Counter(task.labels[task.train].tolist())
        if before is None:
            return Buffer.of(task.graph, nodes, self.budget), tuple(
                more[c] for c in training.classes
            )
        so_far = dict(zip(before.classes, before.seen, strict=True))
        old, labels = before.buffer.graph.labelled(), task.labels[nodes]
        kept, chosen = torch.ones_like(old, dtype=torch.bool), torch.ones_like(labels).bool()
        for c in [c for c in task.classes if c in so_far]:
            taken = places_taken(self.budget, so_far[c], more[c], generator).to(old.device)
            mine = (old == c).nonzero().flatten()
            kept[mine[taken[taken < mine.numel()]]] = False
            chosen[(labels == c).nonzero().flatten()[taken.numel() :]] = False
        buffer = before.buffer
        if not bool(kept.all()):
            buffer = Buffer.of(buffer.graph, kept.nonzero().flatten(), self.budget)
        added = Buffer.of(task.graph, nodes[chosen], self.budget)
        every = more + Counter(so_far)
        return buffer.add(added), tuple(every[c] for c in training.classes)
