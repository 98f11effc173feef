"""EWC, MAS and LwF: importances, losses a second way, and that old answers are held."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from paper.public_methods import PublicEwc, PublicLwf, PublicMas, PublicMasLearned
from tests.harness.steps import step_of
from undrift import InputError, Task, TaskStream
from undrift.encoders.encoder import Head, whole_graph
from undrift.encoders.training import Model, TrainingStep
from undrift.learners import Ewc, Lwf, Mas
from undrift.learners.lwf import LwfLearned
from undrift.learners.mas import MasLearned
from undrift.learners.parts.backbone import generator_for
from undrift.learners.parts.importance import PenaltyLearned, PerParameter
from undrift.learners.parts.model_learner import TaskTraining
from undrift.testing import tiny_graph, tiny_stream

QUICK = {"epochs": 5, "hidden": (6, 5), "lr": 1e-2, "lr_next": 1e-2}


def ewc(**params: Any) -> Ewc:
    return Ewc.from_params(**{**QUICK, **params})


def by_node(model: Model, task: Task, value: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
    """For every parameter `[nodes, *shape]`: the gradient of each training node, in float64."""
    live = [p.double().requires_grad_() for p in model.parameters]
    there = model.with_parameters(live)
    logits = there.head(there.forward(whole_graph(there.encoder, task.graph)))[task.train]
    pairs = zip(logits, task.labels[task.train], strict=True)
    rows = [torch.autograd.grad(value(z, y), live, retain_graph=True) for z, y in pairs]
    return [torch.stack(parts) for parts in zip(*rows, strict=True)]


def likelihood(z: Tensor, y: Tensor) -> Tensor:
    return torch.log_softmax(z, dim=0)[y]


def squared_length(z: Tensor, y: Tensor) -> Tensor:
    return z.square().sum()


def fisher(model: Model, task: Task) -> PerParameter:
    return tuple(g.square().mean(dim=0) for g in by_node(model, task, likelihood))


def near(one: PerParameter, other: PerParameter, tolerance: float) -> bool:
    a = torch.cat([p.flatten() for p in one]).double()
    b = torch.cat([p.flatten() for p in other]).double()
    return float((a - b).norm() / b.norm()) < tolerance


@pytest.mark.parametrize("batch_size", [None, 5])
def test_importance_is_the_empirical_fisher_information(batch_size: int | None) -> None:
    task = tiny_stream().task(0)
    known: PenaltyLearned = ewc(batch_size=batch_size).observe(task).learned_
    assert near(known.penalty.importance, fisher(known.model, task), 1e-5)
    assert all(map(torch.equal, known.penalty.anchor, known.model.parameters))


def test_batch_fisher_is_the_squared_gradient_of_the_training_loss() -> None:
    task = tiny_stream().task(0)
    known: PenaltyLearned = PublicEwc.from_params(**QUICK).observe(task).learned_
    labels = task.labels[task.train]
    weights = 1 / torch.bincount(labels)[labels].double()
    each = by_node(known.model, task, likelihood)
    slow = tuple((torch.tensordot(weights, g, 1) / weights.sum()).square() for g in each)
    assert near(known.penalty.importance, slow, 1e-4)


def test_the_loss_pulls_to_every_old_task() -> None:
    stream = tiny_stream()
    learner = ewc(strength=7.0)
    tasks = []
    for t in (0, 1):
        known: PenaltyLearned = learner.observe(stream.task(t)).learned_
        tasks.append((fisher(known.model, stream.task(t)), known.model.parameters))
    head = known.model.head.grow(2, generator_for(5, 0))
    model = replace(known.model, head=head)
    now = tuple(p + 0.1 for p in model.parameters)
    logits = torch.randn(4, 6, generator=generator_for(6, 0))
    columns = torch.tensor([4, 5, 4, 4])
    step = step_of(model.with_parameters(now), logits, columns)
    wanted = functional.cross_entropy(logits, columns)
    for importance, anchor in tasks:
        for f, a, p in zip(importance, anchor, now, strict=True):
            wanted = wanted + 7.0 * (f * (p[..., : a.shape[-1]] - a).square()).sum()
    assert float(known.penalty.loss(7.0)(step)) == pytest.approx(float(wanted), rel=1e-4)


def mas(**params: Any) -> Mas:
    return Mas.from_params(**{**QUICK, **params})


def omega(model: Model, task: Task) -> PerParameter:
    """The mean over nodes of |d ||z_n||^2 / d theta|."""
    return tuple(g.abs().mean(dim=0) for g in by_node(model, task, squared_length))


def omega_of_means(model: Model, task: Task) -> PerParameter:
    """The square of d mean(z^2) / d theta."""
    columns = model.head.bias.numel()
    each = by_node(model, task, squared_length)
    return tuple((g.mean(dim=0) / columns).square() for g in each)


@pytest.mark.parametrize("batch_size", [None, 5])
def test_importance_is_the_mean_size_of_gradients(batch_size: int | None) -> None:
    task = tiny_stream().task(0)
    known: MasLearned = mas(batch_size=batch_size).observe(task).learned_
    assert near(known.importance, omega(known.model, task), 1e-4)


def test_importance_is_the_mean_over_the_nodes_of_all_tasks() -> None:
    stream = TaskStream.from_graph(tiny_graph(), base=4, increment=2, seed=0)  # 2 : 1 nodes
    learner = mas()
    total: list[Tensor] = []
    count = 0
    for t in (0, 1):
        task = stream.task(t)
        known: MasLearned = learner.observe(task).learned_
        n = int(task.train.sum())
        new = [n * each for each in omega(known.model, task)]
        if total:
            for each, old in zip(new, total, strict=True):
                each[..., : old.shape[-1]] += old
        total, count = new, count + n
    assert known.nodes == count
    assert near(known.importance, tuple(each / count for each in total), 1e-4)


def test_importance_over_all_outputs_counts_columns_to_come_and_holds_them() -> None:
    stream = tiny_stream()
    learner = PublicMas.from_params(**QUICK, outputs=6)
    known: PublicMasLearned = learner.observe(stream.task(0)).learned_
    head = Head(
        torch.cat([known.model.head.weight, known.reserved.weight], dim=1),
        torch.cat([known.model.head.bias, known.reserved.bias]),
    )
    whole = Model(known.model.encoder, head)
    assert near(known.importance, omega_of_means(whole, stream.task(0)), 1e-4)
    assert learner.scores(stream.graph).shape[1] == 2
    training, left = learner._reserving(TaskTraining.of(learner, stream.task(1), known))
    assert torch.equal(training.model.head.weight, head.weight[:, :4])
    assert torch.equal(left.weight, head.weight[:, 4:])
    now = list(training.model.parameters)
    now[-2] = now[-2] + torch.tensor([0.0, 0.0, 0.1, 0.1])  # columns of classes to come
    pull = learner.strength * 0.1**2 * float(known.importance[-2][:, 2:4].sum())
    step = step_of(whole.with_parameters(now), torch.zeros(1, 4), torch.tensor([0]))
    assert pull > 0
    assert float(learner._loss(training)(step)) == pytest.approx(math.log(4) + pull, rel=1e-4)
    learner.observe(stream.task(1)).observe(stream.task(2))
    assert learner.learned_.reserved.bias.numel() == 0
    with pytest.raises(InputError, match="outputs is 2, but with this task there are 4 classes"):
        PublicMas.from_params(**QUICK, outputs=2).observe(stream.task(0)).observe(stream.task(1))


def test_the_loss_pulls_to_the_last_model() -> None:
    stream = tiny_stream()
    learner = mas(strength=7.0)
    for t in (0, 1):
        known: MasLearned = learner.observe(stream.task(t)).learned_
    model = replace(known.model, head=known.model.head.grow(2, generator_for(5, 0)))
    now = [p + 0.1 for p in model.parameters]
    logits = torch.randn(4, 6, generator=generator_for(6, 0))
    columns = torch.tensor([4, 5, 4, 4])
    step = step_of(model.with_parameters(now), logits, columns)
    pull = sum(float(each.sum()) for each in known.importance) * 0.1**2  # all moved by 0.1
    wanted = float(functional.cross_entropy(logits, columns)) + 7.0 * pull
    training = TaskTraining.of(learner, stream.task(2), known)
    assert float(learner._loss(training)(step)) == pytest.approx(wanted, rel=1e-4)


LWF_QUICK = {"epochs": 20, "hidden": (8, 8), "lr": 1e-2, "lr_next": 1e-2}


def lwf(**params: Any) -> Lwf:
    return Lwf.from_params(**{**LWF_QUICK, **params})


def step_on(learner: Lwf, t: int) -> tuple[TrainingStep, torch.Tensor]:
    """A step on some training nodes of task t with a grown model, and the teacher's answers."""
    stream = tiny_stream()
    known: LwfLearned = learner.learned_
    task, head = stream.task(t), known.model.head.grow(2, generator_for(9, t))
    model = replace(known.model, head=head)
    nodes = task.train.nonzero().flatten().flip(0)[:7]
    embeddings = model.embed(task.graph)[nodes]
    columns = task.graph.labels[nodes]  # classes arrive as 0, 1, 2, ...: a class is its column
    weights = torch.rand(model.head.bias.numel(), generator=generator_for(8, 0)) + 0.1
    logits = model.head(embeddings) + 0.3 * torch.randn(7, 1, generator=generator_for(7, 0))
    given = {"nodes": nodes, "class_weights": weights}
    step = step_of(model, logits, columns, **given)
    return step, known.model.logits(task.graph)[nodes]


def divergence(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    q = torch.log_softmax(student[:, : teacher.shape[1]] / temperature, dim=1)
    p = torch.log_softmax(teacher / temperature, dim=1)
    entropy = -(p.exp() * p).sum(dim=1).mean()
    return functional.kl_div(q, p, log_target=True, reduction="batchmean") + entropy


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_loss_is_cross_entropy_plus_distillation(overlapping: bool) -> None:
    settings = {"epochs": 2, "strength": 3.0, "temperature": 1.7}
    learner = (PublicLwf if overlapping else Lwf).from_params(**LWF_QUICK | settings)
    stream = tiny_stream()
    for t in (0, 1):
        learner.observe(stream.task(t))
    step, teacher = step_on(learner, 2)
    training = TaskTraining.of(learner, stream.task(2), learner.learned_)
    fast = learner._loss(training)(step)
    kept = divergence(step.logits, teacher, 1.7)
    if overlapping:
        kept = kept + divergence(step.logits, teacher[:, :2], 1.7)
    plain = functional.cross_entropy(step.logits, step.columns, step.class_weights)
    assert torch.allclose(fast, plain + 3.0 * kept, rtol=1e-5)


@pytest.mark.parametrize(("made", "models"), [(ewc, 3), (mas, 2), (lwf, 1)])
def test_memory_is_so_many_models_whatever_the_number_of_tasks(made: Any, models: int) -> None:
    learner = made(epochs=1)
    for task in tiny_stream():
        learner.observe(task)
        size = sum(p.nbytes for p in learner.learned_.model.parameters)
        assert learner.nbytes() == models * size
