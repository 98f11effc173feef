"""MAS: importance against finite differences, the running average, and that it holds answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import Encoder, Head
from undrift.encoders.training import TrainingStep
from undrift.errors import InputError
from undrift.learners.mas import Mas, MasLearned
from undrift.learners.parts.backbone import Model, generator_for
from undrift.learners.parts.importance import Parameters
from undrift.learners.parts.model_learner import TaskTraining
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK = {"epochs": 5, "hidden": (5, 4), "lr": 1e-2, "lr_next": 1e-2}


def mas(**params: Any) -> Mas:
    return Mas.from_params(**{**QUICK, **params})


def parameters(model: Model) -> Parameters:
    return (*model.encoder.weights, model.head.weight, model.head.bias)


def squared_length(model: Model, place: tuple[int, int], by: float, task: Task) -> Tensor:
    """||z_n||^2 of every training node, one entry of one parameter moved, in float64."""
    moved = [p.double() for p in parameters(model)]
    k, i = place
    moved[k] = moved[k].clone()
    moved[k].view(-1)[i] += by
    encoder = Encoder(model.encoder.architecture, tuple(moved[:-2]))
    z = encoder.embed(task.graph) @ moved[-2] + moved[-1]
    return z[task.train].square().sum(dim=1)


def omega_by_differences(model: Model, task: Task) -> Parameters:
    """The mean over nodes of |d ||z_n||^2 / d theta|, entry by entry."""
    found = []
    for k, p in enumerate(parameters(model)):
        entries = [
            squared_length(model, (k, i), 1e-6, task) - squared_length(model, (k, i), -1e-6, task)
            for i in range(p.numel())
        ]
        found.append((torch.stack(entries) / 2e-6).abs().mean(dim=1).view(p.shape))
    return tuple(found)


def step_of(known: MasLearned, now: Parameters, logits: Tensor, columns: Tensor) -> TrainingStep:
    return TrainingStep(
        nodes=torch.arange(columns.numel()),
        embeddings=logits,
        logits=logits,
        columns=columns,
        class_weights=None,
        encoder=Encoder(known.model.encoder.architecture, now[:-2]),
        head=Head(now[-2], now[-1]),
        generator=generator_for(0, 2),
    )


def omega_of_means(model: Model, task: Task) -> Parameters:
    """The square of d mean(z^2) / d theta, entry by entry."""
    found = []
    for k, p in enumerate(parameters(model)):
        entries = [
            (
                squared_length(model, (k, i), 1e-6, task)
                - squared_length(model, (k, i), -1e-6, task)
            ).mean()
            for i in range(p.numel())
        ]
        mean = torch.stack(entries) / 2e-6 / model.head.bias.numel()
        found.append(mean.square().view(p.shape))
    return tuple(found)


def near(one: Parameters, other: Parameters, tolerance: float) -> bool:
    a = torch.cat([p.flatten() for p in one]).double()
    b = torch.cat([p.flatten() for p in other]).double()
    return float((a - b).norm() / b.norm()) < tolerance


@pytest.mark.parametrize("batch_size", [None, 5])
def test_importance_is_that_of_finite_differences(batch_size: int | None) -> None:
    task = tiny_stream().task(0)
    known: MasLearned = mas(draws=0, batch_size=batch_size).observe(task).learned_
    assert near(known.importance, omega_by_differences(known.model, task), 1e-4)


def test_cauchy_numbers_estimate_it() -> None:
    task = tiny_stream(nodes=300).task(0)
    known: MasLearned = mas(draws=50).observe(task).learned_
    slow = omega_by_differences(known.model, task)
    assert near(known.importance, slow, 0.4)
    assert not near(known.importance, slow, 1e-3)  # 50 draws < 60 nodes: an estimate


def test_importance_is_the_mean_over_the_nodes_of_all_tasks() -> None:
    stream = TaskStream.from_graph(tiny_graph(), base=4, increment=2, seed=0)  # 2 : 1 nodes
    learner = mas(draws=0)
    total: list[Tensor] = []
    count = 0
    for t in (0, 1):
        task = stream.task(t)
        known: MasLearned = learner.observe(task).learned_
        n = int(task.train.sum())
        new = [n * omega for omega in omega_by_differences(known.model, task)]
        if total:
            for omega, old in zip(new, total, strict=True):
                omega[..., : old.shape[-1]] += old
        total, count = new, count + n
    assert known.nodes == count
    assert near(known.importance, tuple(omega / count for omega in total), 1e-4)


def test_batch_importance_is_the_squared_gradient_of_the_mean_squared_logit() -> None:
    task = tiny_stream().task(0)
    known: MasLearned = mas(batch_importance=True).observe(task).learned_
    assert near(known.importance, omega_of_means(known.model, task), 1e-4)


def test_importance_over_all_outputs_counts_columns_to_come_and_holds_them() -> None:
    stream = tiny_stream()
    public: dict[str, Any] = {"batch_importance": True, "outputs": 6}
    learner = mas(**public).observe(stream.task(0))
    known: MasLearned = learner.learned_
    assert known.reserved is not None
    head = Head(
        torch.cat([known.model.head.weight, known.reserved.weight], dim=1),
        torch.cat([known.model.head.bias, known.reserved.bias]),
    )
    whole = Model(known.model.encoder, head)
    assert near(known.importance, omega_of_means(whole, stream.task(0)), 1e-4)
    assert learner.scores(stream.graph).shape[1] == 2
    training, left = learner._reserving(known, TaskTraining.of(learner, stream.task(1), known))
    assert left is not None
    assert torch.equal(training.model.head.weight, head.weight[:, :4])
    assert torch.equal(left.weight, head.weight[:, 4:])
    now = list(parameters(training.model))
    now[-2] = now[-2] + torch.tensor([0.0, 0.0, 0.1, 0.1])  # columns of classes to come
    pull = learner.strength * 0.1**2 * float(known.importance[-2][:, 2:4].sum())
    step = step_of(known, tuple(now), torch.zeros(1, 4), torch.tensor([0]))
    assert pull > 0
    assert float(learner._loss(known, 4)(step)) == pytest.approx(math.log(4) + pull, rel=1e-4)
    learner.observe(stream.task(1)).observe(stream.task(2))
    assert learner.learned_.reserved.bias.numel() == 0
    with pytest.raises(InputError, match="outputs is 2, but with this task there are 4 classes"):
        mas(outputs=2).observe(stream.task(0)).observe(stream.task(1))


def test_the_loss_pulls_to_the_last_model() -> None:
    stream = tiny_stream()
    learner = mas(strength=7.0)
    for t in (0, 1):
        known: MasLearned = learner.observe(stream.task(t)).learned_
    now = tuple(
        p + 0.1
        for p in parameters(
            replace(known.model, head=known.model.head.grow(2, generator_for(5, 0)))
        )
    )
    logits = torch.randn(4, 6, generator=generator_for(6, 0))
    columns = torch.tensor([4, 5, 4, 4])
    step = step_of(known, now, logits, columns)
    pull = sum(float(omega.sum()) for omega in known.importance) * 0.1**2  # all moved by 0.1
    wanted = float(functional.cross_entropy(logits, columns)) + 7.0 * pull
    assert float(learner._loss(known, 6)(step)) == pytest.approx(wanted, rel=1e-4)


def test_memory_is_two_models_whatever_the_number_of_tasks() -> None:
    learner = mas(epochs=1)
    for task in tiny_stream():
        learner.observe(task)
        size = sum(p.nbytes for p in parameters(learner.learned_.model))
        assert learner.nbytes() == 2 * size


@pytest.mark.parametrize(("name", "value"), [("strength", 0.0), ("draws", 1), ("draws", -3)])
def test_bad_parameters(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        mas(**{name: value})
