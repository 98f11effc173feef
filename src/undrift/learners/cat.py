"""CaT: condense every task into a few synthetic nodes and train on those alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.training import Adam, Losses
from undrift.graphs import Graph, Hop, disjoint_union, receptive_field
from undrift.learners.parameters import NotNegativeInt, Positive, PositiveInt
from undrift.learners.parts.backbone import Grid, edge_free, generator_for
from undrift.learners.parts.model_learner import ModelKeeper, ModelLearned
from undrift.streams.task import Task, joined
from undrift.typing import Progress, Rows, silent


def class_means(
    graph: Graph, train: Tensor, classes: tuple[int, ...], propagations: int
) -> Callable[[Tensor], Tensor]:
    """The real side: per class the mean embedding of its training nodes, for any encoder W.

    Dense features are propagated once, sparse ones after the product: A X has more entries than X.
    """
    hops, inputs = receptive_field([graph.operator()] * propagations, train)
    rows: Rows = graph.features[inputs]
    averages = _averages(graph.labelled()[train], classes, rows.dtype)
    if isinstance(rows, Tensor):
        rows, hops = _propagated(rows, hops), ()

    def means(weight: Tensor) -> Tensor:
        with torch.no_grad():
            return averages @ embedded(_propagated(rows @ weight, hops))

    return means


def embedded(z: Tensor) -> Tensor:
    """Rows of `ReLU(z)` scaled to length one; a row without a positive entry stays zero."""
    return functional.normalize(torch.relu(z), dim=1)


def shares(counts: list[int], total: int) -> list[int]:
    """`total` places over classes of these sizes: one each, the rest by largest remainders."""
    rest = sum(counts) - len(counts)
    spare = min(max(total - len(counts), 0), rest)
    exact = [spare * (count - 1) / max(rest, 1) for count in counts]
    given = [1 + int(share) for share in exact]
    largest = sorted(range(len(counts)), key=lambda c: given[c] - exact[c])
    for c in largest[: len(counts) + spare - sum(given)]:
        given[c] += 1
    return given


def _averages(labels: Tensor, classes: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """The matrix `[classes, nodes]` that takes the mean of each class's rows."""
    member = (labels == torch.tensor(classes, device=labels.device).unsqueeze(1)).to(dtype)
    return member / member.sum(dim=1, keepdim=True)


def _propagated(rows: Tensor, hops: tuple[Hop, ...]) -> Tensor:
    for hop in hops:
        rows = hop.operator.to(dtype=rows.dtype) @ rows
    return rows


@dataclass(frozen=True, eq=False)
class CatLearned(ModelLearned):
    """What CaT keeps: a condensed graph per task, and a model trained on them."""

    bank: tuple[Graph, ...]


@dataclass(kw_only=True)
class Cat(ModelKeeper):
    """CaT: condense each task to a synthetic graph, and train a new model on all of these.

        min over X~ of sum_c || mean_{i in c} E((A^k X)_i) - mean_{j in c} E(x~_j) ||^2

    `budget`: synthetic nodes per class on average, split by class ratio, at least one each.
    `n_encoders`: random encoders E, with one Adam step of `condense_lr` for each (0: none moves).
    `propagations`: k. The model learns from the bank alone, with the base task's settings. A class
    that comes back is condensed once more. It says that it keeps examples: a synthetic node stays
    close to the training node it was.
    Cost per task: `n_encoders` class means on both sides, a training on budget x C nodes.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Cat(budget=2, n_encoders=5, epochs=5, hidden=8).observe(first).observe(second)
    >>> learner.learned_.bank  # a synthetic graph per task
    (Graph(4 nodes, 0 edges, ... 2 classes), Graph(4 nodes, 0 edges, ... 2 classes))
    """

    name: ClassVar[str] = "cat"
    display: ClassVar[str] = "CaT"
    family: ClassVar[str] = "rehearsal"
    paper: ClassVar[str] = "Liu, Qiu and Huang, ICDM 2023"
    keeps: ClassVar[str] = "a condensed graph per task, one encoder and head"
    keeps_examples: ClassVar[bool] = True
    learned_type: ClassVar[type] = CatLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "bank")
    grid: ClassVar[Grid] = {"condense_lr": (1e-4, 1e-3, 1e-2), "propagations": (1, 2)}

    budget: PositiveInt = 10
    n_encoders: NotNegativeInt = 500
    encoder_width: PositiveInt = 128
    propagations: NotNegativeInt = 1
    condense_lr: Positive = 1e-3

    def _learn(self, task: Task, progress: Progress) -> CatLearned:
        before = cast("CatLearned | None", self.learned_)
        t = before.tasks if before else 0
        generator = generator_for(self.seed, t)
        bank = (*(before.bank if before else ()), self.condense(task, generator, progress))
        classes = joined(before.classes if before else (), task.classes)
        everything = disjoint_union(*bank)
        condensed = Task(everything, torch.ones_like(everything.labelled()) > 0, classes=classes)
        model = self.backbone.fresh(condensed, generator, progress)
        return CatLearned(classes, task.graph.num_features, t + 1, model, bank)

    def condense(
        self, task: Task, generator: torch.Generator, progress: Progress = silent
    ) -> Graph:
        """The synthetic nodes of a task."""
        graph, classes, train = task.graph, task.classes, task.train.nonzero().flatten()
        synthetic, labels = self._start(graph, train, classes, generator)
        real = class_means(graph, train, classes, self.propagations)
        averages = _averages(labels, classes, synthetic.dtype)
        synthetic.requires_grad_()
        optimiser = Adam([synthetic], lr=self.condense_lr)
        losses = Losses("condensation", f"condense_lr (it was {self.condense_lr:g})")
        progress("condense", 0, self.n_encoders)
        for done in range(self.n_encoders):
            # drawn on the CPU, so alike on any device
            drawn = torch.empty(graph.num_features, self.encoder_width, dtype=synthetic.dtype)
            weight = drawn.uniform_(-1, 1, generator=generator).to(graph.device)
            optimiser.zero_grad()
            loss = (real(weight) - averages @ embedded(synthetic @ weight)).square().sum()
            loss.backward()
            optimiser.step()
            losses.add(loss, done)
            progress("condense", done + 1, self.n_encoders)
        losses.check(synthetic.detach())
        return edge_free(synthetic.detach(), labels)

    def _start(
        self, graph: Graph, train: Tensor, classes: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Random training nodes of every class: their features, made dense, and labels."""
        labels = graph.labelled()
        members, chosen = [train[labels[train] == c] for c in classes], []
        places = shares([nodes.numel() for nodes in members], self.budget * len(classes))
        for nodes, share in zip(members, places, strict=True):
            order = torch.randperm(nodes.numel(), generator=generator)[:share]
            chosen.append(nodes[order.to(nodes.device)])
        start = torch.cat(chosen)
        return graph.features[start].to_dense(), labels[start]
