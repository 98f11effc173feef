"""ER-GNN: keep a few nodes of every class and replay them with the next task."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import whole_graph
from undrift.encoders.training import Loss, Model, TrainingStep, balancing, cross_entropy
from undrift.graphs import Graph, disjoint_union
from undrift.learners.parameters import Positive, PositiveInt
from undrift.learners.parts.backbone import Grid, columns_of, edge_free, generator_for
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.typing import Rows

Choice = Literal["mf", "cm"]  # of the nodes that a buffer keeps
_PAIRS = 2**23  # distances held at a time: 64 MB in float64


@dataclass(frozen=True, eq=False)
class Buffer:
    """At most `budget` nodes of each class, with features and labels and without edges."""

    graph: Graph
    budget: int

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, budget: int) -> Buffer:
        """The buffer that holds these nodes (indices) of a labelled graph."""
        return cls(edge_free(graph.features[nodes], graph.labelled()[nodes]), budget)


def places_taken(budget: int, seen: int, new: int, generator: torch.Generator) -> Tensor:
    """Which of `budget` places `new` nodes take after `seen` others (reservoirs: Vitter, 1985)."""
    turn = torch.arange(seen + 1, seen + new + 1)
    drawn = (torch.rand(new, generator=generator, dtype=torch.float64) * turn).long()
    place = torch.where(turn <= budget, turn - 1, drawn)
    return torch.as_tensor(place[place < budget].unique())


def replayed(buffer: Buffer, model: Model, classes: tuple[int, ...], class_weighted: bool) -> Loss:
    """The loss `beta CE(batch) + (1 - beta) CE(buffer)` with `beta = |B| / (|B| + n_batch)`.

    Of `model` only shape and device are read.
    """
    batch = model.encoder.prepared(whole_graph(model.encoder, buffer.graph))
    columns = columns_of(buffer.graph, classes)
    weights = balancing(columns, model.head) if class_weighted else None

    def loss(step: TrainingStep) -> Tensor:
        logits = step.model.head(step.model.encoder.forward(batch, step.generator))
        old = functional.cross_entropy(logits, columns, weights)
        beta = columns.numel() / (columns.numel() + step.nodes.numel())
        return beta * cross_entropy(step) + (1 - beta) * old

    return loss


def distance_to_mean(rows: Rows) -> Tensor:
    """The squared distance of each row to the mean, in float32, so that equal rows stay equal."""
    x = rows.double()
    if isinstance(x, Tensor):
        return (x - x.mean(dim=0)).square().sum(dim=1).float()
    # |x|^2 - 2 x.m + |m|^2: the sparse rows are never made dense
    ones = torch.ones(x.shape[0], 1, dtype=torch.float64, device=x.device)
    mean = (x.t() @ ones) / x.shape[0]
    squared = x.square().sum(dim=1) - 2 * (x @ mean).flatten() + mean.square().sum()
    return squared.clamp_min(0).float()


def conflicts(rows: Rows, others: Rows, distance: float) -> Tensor:
    """For each row, how many of the other rows are nearer than `distance` (Euclidean)."""
    a, b = rows.double(), others.double()
    counts = torch.zeros(a.shape[0], dtype=torch.int64, device=a.device)
    size_a, size_b, columns = a.square().sum(dim=1), b.square().sum(dim=1), b.t()
    for some in torch.arange(counts.numel()).split(max(1, _PAIRS // max(1, b.shape[0]))):
        part = slice(int(some[0]), int(some[-1]) + 1)
        inner: Rows = a[part] @ columns  # type: ignore[operator]  # both are of one kind
        squared = size_a[part, None] + size_b - 2 * inner.to_dense()
        counts[part] = (squared < distance**2).sum(dim=1)
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
    to the class mean of the raw features; or `cm`, fewest training nodes of other classes nearer
    than `distance`. Of a class that comes back, old and new nodes share the budget as
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
    learned_type: ClassVar[type] = ErGnnLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "buffer")
    phase: ClassVar[str] = "select"
    grid: ClassVar[Grid] = {"sampler": ("mf", "cm"), "distance": (0.05, 0.5, 5.0)}

    budget: PositiveInt = 10
    sampler: Choice = "cm"
    distance: Positive = 0.5

    def _loss(self, training: TaskTraining) -> Loss:
        before: ErGnnLearned | None = training.before
        if before is None:
            return cross_entropy
        weighted = self.backbone.class_weighted
        return replayed(before.buffer, training.model, training.classes, weighted)

    def select(
        self, graph: Graph, train: Tensor, classes: tuple[int, ...], generator: torch.Generator
    ) -> Tensor:
        """Up to `budget` training nodes (indices) of each class, best first; ties at random."""
        labels, features, chosen = graph.labelled()[train], graph.features, []
        for c in classes:
            members = train[labels == c]
            # shuffled first, and sorted stably after: among equals chance decides, not the index
            order = torch.randperm(members.numel(), generator=generator)
            members = members[order.to(members.device)]
            if self.sampler == "mf":
                rank = distance_to_mean(features[members])
            else:
                rank = conflicts(features[members], features[train[labels != c]], self.distance)
            chosen.append(members[rank.argsort(stable=True)[: self.budget]])
        return torch.cat(chosen)

    def _kept(self, training: TaskTraining, model: Model) -> ErGnnLearned:
        task, before = training.task, training.before
        # its own generator: which nodes are kept does not depend on how training went
        generator = generator_for(self.seed, training.t)
        nodes = self.select(task.graph, task.train.nonzero().flatten(), task.classes, generator)
        labels, more = task.labels[nodes], Counter(task.labels[task.train].tolist())
        so_far = Counter(dict(zip(before.classes, before.seen, strict=True)) if before else {})
        chosen, buffer = torch.ones_like(labels).bool(), before.buffer if before else None
        if buffer is not None:
            old = buffer.graph.labelled()
            kept = torch.ones_like(old).bool()
            for c in [c for c in task.classes if c in so_far]:
                taken = places_taken(self.budget, so_far[c], more[c], generator).to(old.device)
                mine = (old == c).nonzero().flatten()
                kept[mine[taken[taken < mine.numel()]]] = False
                chosen[(labels == c).nonzero().flatten()[taken.numel() :]] = False
            buffer = Buffer.of(buffer.graph, kept.nonzero().flatten(), self.budget)
        added = Buffer.of(task.graph, nodes[chosen], self.budget)
        if buffer is not None:
            added = Buffer(disjoint_union(buffer.graph, added.graph), self.budget)
        seen = tuple((more + so_far)[c] for c in training.classes)
        return ErGnnLearned(*training.known(model), added, seen)
