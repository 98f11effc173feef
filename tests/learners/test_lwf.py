"""LwF: its loss a second way, what the teacher is, and that it holds old answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional

from undrift.encoders.training import TrainingStep
from undrift.errors import InputError
from undrift.learners.lwf import Lwf, LwfLearned
from undrift.learners.parts.backbone import generator_for
from undrift.learners.parts.model_learner import TaskTraining
from undrift.testing.graphs import tiny_stream

QUICK = {"epochs": 20, "hidden": (8, 8), "lr": 1e-2, "lr_next": 1e-2}


def lwf(**params: Any) -> Lwf:
    return Lwf.from_params(**{**QUICK, **params})


def step_on(learner: Lwf, t: int) -> tuple[TrainingStep, torch.Tensor]:
    """A step on some training nodes of task t with a grown model, and the teacher's answers."""
    stream = tiny_stream()
    known: LwfLearned = learner.learned_
    task, head = stream.task(t), known.model.head.grow(2, generator_for(9, t))
    model = replace(known.model, head=head)
    nodes = task.train.nonzero().flatten().flip(0)[:7]
    embeddings = model.embed(task.graph)[nodes]
    assert task.graph.labels is not None
    columns = task.graph.labels[nodes]  # classes arrive as 0, 1, 2, ...: a class is its column
    weights = torch.rand(model.head.bias.numel(), generator=generator_for(8, 0)) + 0.1
    step = TrainingStep(
        nodes=nodes,
        embeddings=embeddings,
        logits=model.head(embeddings) + 0.3 * torch.randn(7, 1, generator=generator_for(7, 0)),
        columns=columns,
        class_weights=weights,
        encoder=model.encoder,
        head=model.head,
        generator=generator_for(0, t),
    )
    return step, known.model.logits(task.graph)[nodes]


def divergence(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    q = torch.log_softmax(student[:, : teacher.shape[1]] / temperature, dim=1)
    p = torch.log_softmax(teacher / temperature, dim=1)
    entropy = -(p.exp() * p).sum(dim=1).mean()
    return functional.kl_div(q, p, log_target=True, reduction="batchmean") + entropy


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_loss_is_cross_entropy_plus_distillation(overlapping: bool) -> None:
    learner = lwf(epochs=2, strength=3.0, temperature=1.7, overlapping=overlapping)
    stream = tiny_stream()
    for t in (0, 1):
        learner.observe(stream.task(t))
    step, teacher = step_on(learner, 2)
    training = TaskTraining.of(learner, stream.task(2), learner.learned_)
    fast = learner._loss(learner.learned_, training)(step)
    kept = divergence(step.logits, teacher, 1.7)
    if overlapping:
        kept = kept + divergence(step.logits, teacher[:, :2], 1.7)
    plain = functional.cross_entropy(step.logits, step.columns, step.class_weights)
    assert torch.allclose(fast, plain + 3.0 * kept, rtol=1e-5)


def test_a_strong_teacher_holds_the_old_answers() -> None:
    stream = tiny_stream()

    def change(strength: float) -> float:
        learner = lwf(strength=strength, epochs=40, dropout=0.0).observe(stream.task(0))
        graph = stream.task(1).graph
        before = learner.scores(graph).softmax(dim=1)
        learner.observe(stream.task(1))
        return float((learner.scores(graph)[:, :2].softmax(dim=1) - before).abs().mean())

    assert change(100.0) < 0.3 * change(1e-6)


def test_it_keeps_one_model_and_the_class_counts() -> None:
    learner = lwf(epochs=1)
    for task in tiny_stream():
        learner.observe(task)
    assert learner.learned_.sizes == (2, 4, 6)
    model = learner.learned_.model
    size = sum(p.nbytes for p in (*model.encoder.weights, model.head.weight, model.head.bias))
    assert learner.nbytes() == size


def test_an_option_that_went_is_read_by_what_stayed_of_it() -> None:
    assert lwf(logits="seen").params() == lwf().params()
    with pytest.raises(InputError, match="any more"):
        lwf(logits="task")


@pytest.mark.parametrize("name", ["strength", "temperature"])
def test_bad_parameters(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be greater than 0, not 0"):
        lwf(**{name: 0})
