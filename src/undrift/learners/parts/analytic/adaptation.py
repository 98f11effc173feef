"""ADR's first stage, adapting theta_t to its task (eq. 2), and what ADR and ADR+ keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from undrift.analytic.solve import RidgeBank
from undrift.encoders.adam import Moments
from undrift.encoders.encoder import Encoder, Head
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.model_learner import base_training
from undrift.merging.merger import Merger
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


class Adapts(Protocol):
    """A learner that adapts: where theta_t begins, what its loss sees, and how it trains."""

    start: Start
    logits: Logits
    backbone: Backbone


def adapt(
    learner: Adapts,
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
    return drawn_once(train, generator, "adapt", *inputs, *origin)


def _started(learner: Adapts, before: AdrLearned | None) -> Encoder | None:
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


def next_moments(learner: Adapts, before: AdrLearned | None, adapted: Model) -> Moments | None:
    """What the next task's optimiser goes on with: from where its encoder comes.

    A head of the task's own classes is thrown away, so of the next one nothing is known.
    """
    if learner.start == "scratch" or adapted.moments is None:
        return None
    if learner.start == "base" and before:
        return before.moments
    return adapted.moments if learner.logits == "seen" else adapted.moments.without_columns(2)
