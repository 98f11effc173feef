"""What ADR and ADR+ share: adapting theta_t to its task (eq. 2), and the order of the stages."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.adam import Moments
from undrift.encoders.encoder import Encoder, Head
from undrift.graphs import Graph
from undrift.learners.kept import Inventory, KeptSum, RowsOf, of_statistics
from undrift.learners.parts.analytic.class_balance import (
    Nodes,
    balanced_rows,
    mean_class_size,
    nodes_that_count,
)
from undrift.learners.parts.analytic.frozen_encoder import ExpandedLearner
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.learners.parts.training.model_learner import base_training
from undrift.merging.ham import Ham
from undrift.merging.merger import Adapted, Merger
from undrift.sharing import drawn_once
from undrift.streams.task import Task, joined
from undrift.typing import Progress

Start = Literal["previous", "merged", "base", "scratch"]
"""Where theta_t begins: the previous theta, the merged encoder, the base encoder, or anew."""

Logits = Literal["task", "seen"]
"""Adaptation sees the task's classes only, or all classes seen so far."""


@dataclass(frozen=True, eq=False)
class AdrLearned:
    """What ADR and ADR+ keep: sums, the merged encoder, and what the next task starts from.

    `counts` are the training rows of each class so far, and `share` is what a class weighs in
    balanced sums (`balanced_rows`). `moments` are what a carried optimiser goes on with.
    """

    added_later: ClassVar[tuple[str, ...]] = ("moments",)

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    merged: Encoder
    memory: Merger | None
    bank: RidgeBank
    counts: tuple[int, ...]
    share: float
    classifier: Tensor
    start: Encoder | None
    head: Head | None
    moments: Moments | None = None

    @property
    def encoder(self) -> Encoder:
        """The one that the classifier reads."""
        return self.merged


class AdaptingLearner(ExpandedLearner):
    """ADR's three stages (Alg. 1); a method says how encoders merge and what the bank sums."""

    start: Start
    logits: Logits
    nodes: Nodes

    @abstractmethod
    def _merge(
        self, before: Any, trained: tuple[Model, Model], task: Task, generator: torch.Generator
    ) -> tuple[Any, Encoder]:
        """What the rule remembers with this task's encoder, and all encoders so far as one."""

    @abstractmethod
    def _grown_bank(
        self, before: Any, merged: Encoder, task: Task, classes: tuple[int, ...]
    ) -> RidgeBank:
        """The classifier's sums with this task's rows."""

    def _learn(self, task: Task, progress: Progress) -> AdrLearned:
        before: AdrLearned | None = self.learned_
        t = before.tasks if before else 0
        classes = joined(before.classes if before else (), task.classes)
        generator = generator_for(self.seed, t)
        trained = adapt(self, before, task, generator=generator, progress=progress)
        progress("merge", 0, 1)
        memory, merged = self._merge(before, trained, task, generator)
        progress("classify", 0, 1)
        bank = self._grown_bank(before, merged, task, classes)
        classifier = self._solved(bank, merged)
        progress("classify", 1, 1)
        learned: AdrLearned = self.learned_type(
            classes=classes,
            num_features=task.graph.num_features,
            tasks=t + 1,
            merged=merged,
            memory=memory,
            bank=bank,
            counts=_counted(before, task, classes),
            share=before.share if before else mean_class_size(task),
            classifier=classifier,
            start=next_start(self.start, before, trained[1].encoder),
            head=trained[1].head if self.logits == "seen" else None,
            moments=next_moments(self, before, trained[1]),
        )
        return learned

    def _solved(self, bank: RidgeBank, merged: Encoder) -> Tensor:
        return bank.solve()

    @abstractmethod
    def _weighs(self) -> tuple[bool, bool]:
        """Whether rows have weights in the sums of the merging rule, and of the classifier."""

    def _bank_rows(self, learned: AdrLearned) -> RowsOf:
        """The rows of the classifier's sums, as the merged encoder makes them now."""
        return self._rows_by(learned.merged)

    def _inventory(self, learned: AdrLearned) -> Inventory:
        classifier = of_statistics(
            "classifier",
            learned.bank.statistics,
            self._bank_rows(learned),
            ("bank",),
            classes=learned.classes,
            counts=torch.tensor(learned.counts, dtype=torch.float64),
            current=False,
            exact=not self._weighs()[1],
        )
        grams: tuple[RidgeStatistics, ...] | None = getattr(learned.memory, "grams", None)
        weights = ("memory",) if grams == () else ()  # the rule says that it keeps no sum
        rest = (*weights, "merged", "start", "head", "moments", "classifier")
        layers = (self._layer(learned, k, sums) for k, sums in enumerate(grams or ()))
        return Inventory((*layers, classifier), rest)

    def _layer(self, learned: AdrLearned, k: int, sums: RidgeStatistics) -> KeptSum:
        """The sums over the inputs of layer k of every adapted encoder.

        The first layer of a GCN reads `A X`, whatever the weights: its rows are known of every
        batch. Those of later layers are known where the last adapted encoder is kept.
        """
        adapted = self.start == "previous" or (self.start == "base" and learned.tasks == 1)
        encoder = learned.start if adapted and learned.start else learned.merged
        always = k == 0 and self.backbone.encoder != "gat"  # attention depends on weights
        plain = isinstance(learned.memory, Ham) and not self._weighs()[0]

        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            return encoder.trace(graph, nodes)[k].double().to_dense()

        return of_statistics(
            f"layer {k + 1}",
            sums,
            rows,
            ("memory",),
            nodes=self.nodes,
            current=always,
            exact=plain and (always or adapted),
        )

    def _adapted(
        self, model: Model, task: Task, generator: torch.Generator, weights: Tensor | None
    ) -> Adapted:
        """The trained encoder as a merging rule sees it."""
        chosen = nodes_that_count(task, self.nodes, self.once)
        data = (task.graph, chosen, generator, weights, self.once)
        return Adapted(model.encoder, model.head, *data)

    def _row_weights(self, before: AdrLearned | None, task: Task, nodes: Nodes) -> Tensor:
        """The weights of the rows in a sum over these nodes, the same for every class."""
        if before is None:
            return balanced_rows(task, nodes, mean_class_size(task), self.once)
        known = dict(zip(before.classes, before.counts, strict=True))
        seen = tuple(known.get(c, 0) for c in task.classes)
        return balanced_rows(task, nodes, before.share, self.once, seen)


def _counted(before: AdrLearned | None, task: Task, classes: tuple[int, ...]) -> tuple[int, ...]:
    """The training rows of each class, with this task's."""
    known = dict(zip(before.classes, before.counts, strict=True)) if before else {}
    labels = task.labels[task.train]
    return tuple(known.get(c, 0) + int((labels == c).sum()) for c in classes)


def adapt(
    learner: AdaptingLearner,
    before: AdrLearned | None,
    task: Task,
    *,
    generator: torch.Generator,
    progress: Progress,
) -> tuple[Model, Model]:
    """The model before and after training on the task: no gamma, no alpha in it."""
    t = before.tasks if before and learner.start != "scratch" else 0
    seen = joined(before.classes if before else (), task.classes)
    classes = seen if learner.logits == "seen" else task.classes
    started = _started(learner, before)

    def train() -> tuple[Model, Model]:
        encoder = started or learner.backbone.encoder_for(task.graph, generator)
        head = _head(learner.backbone, before, task, generator)
        begun = Model(encoder, head, before.moments if before else None)
        return begun, learner.backbone.train(
            begun, task, classes, t=t, generator=generator, progress=progress, phase="adapt"
        )

    inputs = (*base_training(learner.backbone, task), classes, t > 0)
    origin = (started, *((before.head, before.moments) if before else (None, None)))
    return drawn_once(learner.once, train, generator, "adapt", *inputs, *origin)


def _started(learner: AdaptingLearner, before: AdrLearned | None) -> Encoder | None:
    """The encoder that this task starts from; None is a new one."""
    if before is None:
        return None
    return before.merged if learner.start == "merged" else before.start


def _head(
    backbone: Backbone, before: AdrLearned | None, task: Task, generator: torch.Generator
) -> Head:
    """The head that training starts from: the last one grown, or one of its own for the task."""
    if before and before.head is not None:
        new = len(joined(before.classes, task.classes)) - len(before.classes)
        return before.head.grow(new, generator)
    return backbone.head_for(len(task.classes), task.graph, generator)


def next_start(start: Start, before: AdrLearned | None, adapted: Encoder) -> Encoder | None:
    """What must be kept for the next task to start from."""
    if start == "previous":
        return adapted
    if start == "base":
        return before.start if before else adapted
    return None


def next_moments(
    learner: AdaptingLearner, before: AdrLearned | None, adapted: Model
) -> Moments | None:
    """What the next task's optimiser goes on with: from where its encoder comes.

    A head of the task's own classes is thrown away, so of the next one nothing is known.
    """
    if learner.start == "scratch" or adapted.moments is None:
        return None
    if learner.start == "base" and before:
        return before.moments
    return adapted.moments if learner.logits == "seen" else adapted.moments.without_columns(2)
