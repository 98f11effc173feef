"""EWC: its Fisher information node by node, its loss, and that it holds old tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional

from undrift.encoders.encoder import Encoder, Head, batch_of, whole_graph
from undrift.encoders.training import TrainingStep
from undrift.errors import InputError
from undrift.learners.ewc import Ewc
from undrift.learners.parts.backbone import Model, generator_for
from undrift.learners.parts.importance import Parameters, PenaltyLearned
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream

QUICK = {"epochs": 5, "hidden": (6, 5), "lr": 1e-2, "lr_next": 1e-2}


def ewc(**params: Any) -> Ewc:
    return Ewc.from_params(**{**QUICK, **params})


def parameters(model: Model) -> Parameters:
    return (*model.encoder.weights, model.head.weight, model.head.bias)


def fisher_by_hand(model: Model, task: Task) -> Parameters:
    """The mean over nodes of g_n^2, one forward and one backward pass per training node."""
    assert task.graph.labels is not None
    nodes = task.train.nonzero().flatten()
    sums = [torch.zeros_like(p) for p in parameters(model)]
    for n in nodes.tolist():
        live = [p.clone().requires_grad_() for p in parameters(model)]
        encoder = Encoder(model.encoder.architecture, tuple(live[:-2]))
        embedding = encoder.forward(whole_graph(encoder, task.graph))[n]
        logits = embedding @ live[-2] + live[-1]
        likelihood = torch.log_softmax(logits, dim=0)[task.graph.labels[n]]
        for total, g in zip(sums, torch.autograd.grad(likelihood, live), strict=True):
            total.add_(g.square())
    return tuple(total / nodes.numel() for total in sums)


def near(one: Parameters, other: Parameters, tolerance: float) -> bool:
    a = torch.cat([p.flatten() for p in one])
    b = torch.cat([p.flatten() for p in other])
    return float((a - b).norm() / b.norm()) < tolerance


@pytest.mark.parametrize("batch_size", [None, 5])
def test_importance_is_the_empirical_fisher_information(batch_size: int | None) -> None:
    task = tiny_stream().task(0)
    known: PenaltyLearned = ewc(draws=0, batch_size=batch_size).observe(task).learned_
    slow = fisher_by_hand(known.model, task)
    assert near(known.penalty.importance, slow, 1e-5)
    assert all(map(torch.equal, known.penalty.anchor, parameters(known.model)))


def test_random_signs_estimate_it() -> None:
    task = tiny_stream(nodes=300).task(0)
    known: PenaltyLearned = ewc(draws=50).observe(task).learned_
    slow = fisher_by_hand(known.model, task)
    assert near(known.penalty.importance, slow, 0.35)
    assert not near(known.penalty.importance, slow, 1e-3)  # 50 draws < 60 nodes: an estimate


def test_batch_fisher_is_the_squared_gradient_of_the_training_loss() -> None:
    task = tiny_stream().task(0)
    known: PenaltyLearned = ewc(batch_fisher=True).observe(task).learned_
    live = [p.clone().requires_grad_() for p in parameters(known.model)]
    encoder = Encoder(known.model.encoder.architecture, tuple(live[:-2]))
    nodes = task.train.nonzero().flatten()
    assert task.graph.labels is not None
    labels = task.graph.labels[nodes]
    logits = Head(live[-2], live[-1])(encoder.forward(batch_of(encoder, task.graph, nodes)))
    loss = functional.cross_entropy(logits, labels, 1 / torch.bincount(labels))
    slow = tuple(g.square() for g in torch.autograd.grad(loss, live))
    assert near(known.penalty.importance, slow, 1e-4)


def test_the_loss_pulls_to_every_old_task() -> None:
    stream = tiny_stream()
    learner = ewc(strength=7.0, draws=0)
    tasks = []
    for t in (0, 1):
        known: PenaltyLearned = learner.observe(stream.task(t)).learned_
        tasks.append((fisher_by_hand(known.model, stream.task(t)), parameters(known.model)))
    head = known.model.head.grow(2, generator_for(5, 0))
    model = replace(known.model, head=head)
    now = tuple(p + 0.1 for p in parameters(model))
    encoder = Encoder(model.encoder.architecture, now[:-2])
    logits = torch.randn(4, 6, generator=generator_for(6, 0))
    columns = torch.tensor([4, 5, 4, 4])
    step = TrainingStep(
        nodes=torch.arange(4),
        embeddings=logits,
        logits=logits,
        columns=columns,
        class_weights=None,
        encoder=encoder,
        head=Head(now[-2], now[-1]),
        generator=generator_for(0, 2),
    )
    wanted = functional.cross_entropy(logits, columns)
    for fisher, anchor in tasks:
        for f, a, p in zip(fisher, anchor, now, strict=True):
            wanted = wanted + 7.0 * (f * (p[..., : a.shape[-1]] - a).square()).sum()
    assert torch.allclose(known.penalty.loss(learner.strength)(step), wanted, rtol=1e-4)


def test_a_strong_pull_holds_the_parameters() -> None:
    stream = tiny_stream()

    def moved(strength: float) -> float:
        learner = ewc(strength=strength, epochs=30).observe(stream.task(0))
        before = learner.embed(stream.task(0).graph)
        learner.observe(stream.task(1))
        return float((learner.embed(stream.task(0).graph) - before).norm() / before.norm())

    assert moved(1e6) < 0.3 * moved(1e-6)


def test_memory_is_three_models_whatever_the_number_of_tasks() -> None:
    learner = ewc(epochs=1)
    for task in tiny_stream():
        learner.observe(task)
        size = sum(p.nbytes for p in parameters(learner.learned_.model))
        assert learner.nbytes() == 3 * size


@pytest.mark.parametrize(("name", "value"), [("strength", 0.0), ("strength", -1.0), ("draws", -3)])
def test_bad_parameters(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        ewc(**{name: value})
