"""Incremental Task Adaptation, the first stage of ADR: train theta_t on its task (eq. 2)."""

from __future__ import annotations

from typing import Literal, Protocol

import torch

from undrift.encoders.encoder import Encoder, Head
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.model_learner import base_training
from undrift.sharing import drawn_once
from undrift.streams.task import Task
from undrift.typing import Once, Progress

Start = Literal["previous", "merged", "base", "scratch"]
"""Where theta_t begins: the previous theta, the merged encoder, the base encoder, or anew."""

Logits = Literal["task", "seen"]
"""Adaptation sees the task's classes only, or all classes seen so far."""


class _Adapts(Protocol):
    """A learner that adapts an encoder to every task."""

    backbone: Backbone
    start: Start
    logits: Logits
    once: Once


class _Knows(Protocol):
    """What such a learner knows after some tasks."""

    @property
    def classes(self) -> tuple[int, ...]: ...
    @property
    def tasks(self) -> int: ...
    @property
    def merged(self) -> Encoder: ...
    @property
    def start(self) -> Encoder | None: ...
    @property
    def head(self) -> Head | None: ...


def adapt(
    learner: _Adapts,
    before: _Knows | None,
    task: Task,
    *,
    generator: torch.Generator,
    progress: Progress,
) -> tuple[Model, Model]:
    """The model before and after training on the task: no gamma, no alpha in it."""
    t = before.tasks if before and learner.start != "scratch" else 0
    seen = (*before.classes, *task.classes) if before else task.classes
    classes = seen if learner.logits == "seen" else task.classes
    started = _started(learner, before)

    def train() -> tuple[Model, Model]:
        encoder = started or learner.backbone.encoder_for(task.graph, generator)
        head = _head(learner.backbone, before, task, generator)
        begun = Model(encoder, head)
        return begun, learner.backbone.train(
            begun, task, classes, t=t, generator=generator, progress=progress, phase="adapt"
        )

    inputs = (*base_training(learner.backbone, task), classes, t > 0)
    origin = (started, before.head if before else None)
    return drawn_once(learner.once, train, generator, "adapt", *inputs, *origin)


def _started(learner: _Adapts, before: _Knows | None) -> Encoder | None:
    """The encoder that this task starts from; None is a new one."""
    if before is None:
        return None
    return before.merged if learner.start == "merged" else before.start


def _head(
    backbone: Backbone, before: _Knows | None, task: Task, generator: torch.Generator
) -> Head:
    """The head that training starts from: the last one grown, or one of its own for the task."""
    if before and before.head is not None:
        return before.head.grow(len(task.classes), generator)
    return backbone.head_for(len(task.classes), task.graph, generator)


def next_start(start: Start, before: _Knows | None, adapted: Encoder) -> Encoder | None:
    """What must be kept for the next task to start from."""
    if start == "previous":
        return adapted
    if start == "base":
        return before.start if before else adapted
    return None
