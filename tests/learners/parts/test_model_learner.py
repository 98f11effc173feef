"""Losses against their formulas, and a task at a learner with one growing model."""

import math

import pytest
import torch
from torch import Tensor

from tests.harness.steps import step_of
from undrift import Bare, Graph
from undrift.encoders import Encoder
from undrift.encoders.training import Model, TrainingStep
from undrift.learners import Acil
from undrift.learners.parts.backbone import (
    Backbone,
    FeatureTeacher,
    distillation,
    frobenius_distance,
    task_cross_entropy,
)
from undrift.learners.parts.expanded import base_encoder
from undrift.learners.parts.model_learner import TaskTraining
from undrift.testing import tiny_graph, tiny_stream


def logits(seed: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(5, columns, generator=generator, dtype=torch.float64)


def slow(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> float:
    total = 0.0
    for new, old in zip(student.tolist(), teacher.tolist(), strict=True):
        kept = new[: len(old)]
        p = [math.exp(z / temperature) for z in old]
        q = [math.exp(z / temperature) for z in kept]
        for a, b in zip(p, q, strict=True):
            total -= a / sum(p) * math.log(b / sum(q))
    return total / len(student)


@pytest.mark.parametrize("temperature", [0.5, 2.0, 20.0])
def test_it_is_the_cross_entropy_of_softened_answers_over_the_old_classes(temperature) -> None:
    student, teacher = logits(0, 6), logits(1, 4)
    fast = distillation(student, teacher, temperature)
    assert float(fast) == pytest.approx(slow(student, teacher, temperature), rel=1e-12)


def encoder(graph: Graph, seed: int) -> Encoder:
    generator = torch.Generator().manual_seed(seed)
    made = Backbone(hidden=(8, 6)).encoder_for(graph, generator)
    return made.with_weights(tuple(w.clone().requires_grad_() for w in made.weights))


def step_on(graph: Graph, model: Encoder, nodes: Tensor) -> TrainingStep:
    head = model.new_head(2, torch.Generator().manual_seed(0))
    logits = head(torch.zeros(nodes.numel(), 6))
    return step_of(Model(model, head), logits, torch.zeros_like(nodes), nodes=nodes)


@pytest.mark.parametrize("sparse", [False, True])
def test_new_and_old_are_the_embeddings_without_dropout(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    before, now = encoder(graph, 0), encoder(graph, 1)
    teacher = FeatureTeacher(before, graph)
    for nodes in (torch.tensor([3, 1, 20]), torch.tensor([7]), torch.arange(60)):
        new, old = teacher(step_on(graph, now, nodes))
        assert torch.allclose(new, now.embed(graph)[nodes], atol=1e-5)
        assert torch.allclose(old, before.embed(graph)[nodes], atol=1e-5)
        assert new.requires_grad
        assert not old.requires_grad


def test_distance_at_zero_has_no_gradient_and_rounding_has_little() -> None:
    old = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    for noise, largest in ((0.0, 0.0), (1e-7, 1e-2)):
        new = (old * (1 + noise)).requires_grad_()
        distance = frobenius_distance(new, old)
        distance.backward()
        assert float(new.grad.norm()) <= largest
        assert float(distance.detach()) < 1e-5
    zeros = torch.zeros(3, 2, requires_grad=True)
    frobenius_distance(zeros, torch.zeros(3, 2)).backward()
    assert torch.equal(zeros.grad, torch.zeros(3, 2))


def test_a_tasks_classes_are_told_apart_wherever_their_columns_stand() -> None:
    scores, columns = logits(0, 6).float(), torch.tensor([4, 1, 4, 1, 5])
    weights = torch.tensor([9.0, 2.0, 9.0, 9.0, 0.5, 1.0])
    model = Backbone(hidden=(4,)).model_for(tiny_graph(), 6, torch.Generator())
    step = step_of(model, scores, columns, class_weights=weights)
    found = task_cross_entropy(step, torch.tensor([4, 1, 5]))
    losses = [
        -math.log(math.exp(row[c]) / sum(math.exp(row[k]) for k in (1, 4, 5)))
        for row, c in zip(scores.tolist(), columns.tolist(), strict=True)
    ]
    each = [float(weights[c]) for c in columns]
    slow = sum(w * loss for w, loss in zip(each, losses, strict=True)) / sum(each)
    assert float(found) == pytest.approx(slow, rel=1e-5)


def quick() -> Bare:
    return Bare.from_params(epochs=2, hidden=(8,), seed=3)


def test_a_later_task_goes_on_from_the_model_before_it() -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    training = TaskTraining.of(learner, stream.task(1), learner.learned_)
    assert (training.t, training.classes) == (1, (0, 1, 2, 3))
    before = learner.learned_.model
    assert training.model.encoder is before.encoder
    assert torch.equal(training.model.head.weight[:, :2], before.head.weight)
    assert training.model.head.bias.numel() == 4


def test_the_base_encoder_is_what_bare_trains_on_the_first_task() -> None:
    task = tiny_stream().task(0)
    small = {"epochs": 3, "hidden": (8,), "seed": 5}
    found = base_encoder(Acil(**small), task, lambda *_: None)
    bare = Bare(**small).observe(task).learned_.model.encoder
    assert torch.equal(found.weights[0], bare.weights[0])
