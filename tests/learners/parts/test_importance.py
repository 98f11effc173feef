"""Gradients by finite differences, and the penalty of constant size against the sum over tasks."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from paper.public_methods import squared_batch_means
from undrift import Bare, Graph, Task
from undrift.encoders.training import Model, trainable
from undrift.learners.parts.backbone import Backbone, generator_for
from undrift.learners.parts.importance import NodeGradients, Penalty, PerParameter, loss_gradients
from undrift.learners.parts.model_learner import TaskTraining
from undrift.testing import tiny_graph

SUMS = {"squares": NodeGradients.sum_of_squares, "sizes": NodeGradients.sum_of_sizes}
EXACT = 10**6  # a batch of fewer nodes gets a pass for each


def squared_logits(logits: Tensor, nodes: Tensor) -> Tensor:
    return logits.square().sum(dim=1)


def setting(hidden: tuple[int, ...] = (4, 3), nodes: int = 40) -> tuple[Model, Graph, Tensor]:
    graph = tiny_graph(nodes=nodes, features=6, classes=4)
    model = Backbone(hidden=hidden).model_for(graph, 3, generator_for(0, 0))
    return model.double(), graph, torch.arange(0, nodes, 2)


def differences(model: Model, graph: Graph, nodes: Tensor) -> list[Tensor]:
    """For every parameter `[nodes, *shape]`: central differences of each node's own value."""
    parameters = model.parameters
    found = []
    for k, p in enumerate(parameters):
        rows = torch.zeros(nodes.numel(), p.numel(), dtype=torch.float64)
        for i in range(p.numel()):
            values = []
            for sign in (1, -1):
                moved = p.clone()
                moved.view(-1)[i] += sign * 1e-6
                there = model.with_parameters((*parameters[:k], moved, *parameters[k + 1 :]))
                values.append(squared_logits(there.logits(graph)[nodes], nodes))
            rows[:, i] = (values[0] - values[1]) / 2e-6
        found.append(rows.view(-1, *p.shape))
    return found


def close(one: PerParameter, other: PerParameter, rtol: float) -> bool:
    return all(torch.allclose(a, b, rtol=rtol, atol=1e-7) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", SUMS)
@pytest.mark.parametrize("batch_size", [None, 7])
def test_exact_sums_are_those_of_finite_differences(kind: str, batch_size: int | None) -> None:
    model, graph, nodes = setting()
    given = NodeGradients(model, graph, nodes, squared_logits, batch_size)
    fast = SUMS[kind](given, generator_for(0, 0), EXACT)
    each = differences(model, graph, nodes)
    slow = tuple((g.square() if kind == "squares" else g.abs()).sum(dim=0) for g in each)
    assert close(fast, slow, rtol=1e-4)


@pytest.mark.parametrize("kind", SUMS)
def test_estimates_come_as_near_as_the_theory_says(kind: str) -> None:
    given = NodeGradients(*setting(nodes=600), squared_logits)
    exact, guess = (SUMS[kind](given, generator_for(1, 0), draws) for draws in (EXACT, 200))
    deviation = math.sqrt(2 / 200) if kind == "squares" else math.pi / 2 / math.sqrt(200)
    errors = torch.cat(
        [((g - e) / e)[e > 0] for g, e in zip(guess, exact, strict=True)]
    )  # a unit that is off for every node has no gradient, and no estimate
    assert errors.numel() > 20
    assert float(errors.square().mean().sqrt()) < 1.6 * deviation
    assert float(errors.abs().max()) < 5 * deviation
    for g, e in zip(guess, exact, strict=True):
        assert torch.equal(g == 0, e == 0)


@pytest.mark.parametrize("kind", SUMS)
def test_estimates_have_no_bias_at_few_draws(kind: str) -> None:
    """The mean of many estimates from 4 passes each; without cos(pi/2k)^k sizes are 37 % up."""
    given = NodeGradients(*setting(hidden=(2,), nodes=24), squared_logits)
    generator = generator_for(2, 0)
    exact = SUMS[kind](given, generator, EXACT)
    runs = 100
    total = [torch.zeros_like(e) for e in exact]
    for _ in range(runs):
        for mine, g in zip(total, SUMS[kind](given, generator, 4), strict=True):
            mine.add_(g / runs)
    ratios = torch.cat([(g / e)[e > 0] for g, e in zip(total, exact, strict=True)])
    assert float(ratios.mean()) == pytest.approx(1, abs=0.12)


@pytest.mark.parametrize("kind", SUMS)
def test_never_more_passes_than_nodes_and_those_are_exact(kind: str) -> None:
    given = NodeGradients(*setting(), squared_logits)
    n = given.nodes.numel()
    exact, enough, fewer, again, other = (
        SUMS[kind](given, generator_for(seed, 0), draws)
        for seed, draws in ((0, EXACT), (0, n), (0, n - 1), (0, n - 1), (1, n - 1))
    )
    assert close(enough, exact, rtol=0)
    assert not close(fewer, exact, rtol=1e-3)
    assert close(again, fewer, rtol=0)
    assert not close(other, fewer, rtol=1e-3)  # the generator decides


GRAPH = tiny_graph(nodes=40, classes=4)
COLUMNS = GRAPH.labels if GRAPH.labels is not None else torch.zeros(0)
NODES = torch.arange(29)  # not as many of every class


def likelihood(logits: Tensor, nodes: Tensor) -> Tensor:
    return functional.cross_entropy(logits, COLUMNS[nodes], reduction="none")


def small_model(graph: Graph = GRAPH) -> Model:
    return Backbone(hidden=(5, 4)).model_for(graph, 4, generator_for(0, 0))


def slow(model: Model, nodes: Tensor, class_weights: Tensor | None) -> PerParameter:
    """The gradient of torch's own weighted mean over these nodes, on the whole graph."""
    live = trainable(model.parameters)
    there = model.with_parameters(live)
    a = GRAPH.operator("symmetric").to_dense()
    h = torch.as_tensor(GRAPH.features)
    for weight in there.encoder.weights:
        h = torch.relu(a @ h @ weight)
    loss = functional.cross_entropy(there.head(h)[nodes], COLUMNS[nodes], class_weights)
    return torch.autograd.grad(loss, live)


def weights_of(model: Model, *, class_weighted: bool) -> Tensor:
    task = Task(GRAPH, torch.arange(40) < 29)
    learner = Bare(hidden=(5, 4), class_weighted=class_weighted)
    return loss_gradients(TaskTraining.of(learner, task, None), model)[1]


@pytest.mark.parametrize("class_weighted", [True, False])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_the_mean_gradient_is_that_of_the_training_loss(class_weighted, batch_size) -> None:
    model = small_model()
    weights = weights_of(model, class_weighted=class_weighted)
    fast = NodeGradients(model, GRAPH, NODES, likelihood, batch_size).mean(weights)
    per_class = 1 / torch.bincount(COLUMNS[NODES]) if class_weighted else None
    assert close(fast, slow(model, NODES, per_class), rtol=1e-4)
    other = None if class_weighted else 1 / torch.bincount(COLUMNS[NODES])
    assert not close(fast, slow(model, NODES, other), rtol=1e-4)


def test_squares_are_taken_batch_by_batch() -> None:
    model = small_model()
    weights = weights_of(model, class_weighted=True)
    per_class = 1 / torch.bincount(COLUMNS[NODES])
    batches = NodeGradients(model, GRAPH, NODES, likelihood, 10)
    fast = squared_batch_means(batches, weights)
    parts = [slow(model, part, per_class) for part in NODES.split(10)]
    wanted = tuple(sum(g.square() for g in gs) / 3 for gs in zip(*parts, strict=True))
    assert close(fast, wanted, rtol=1e-4)
    whole = squared_batch_means(replace(batches, batch_size=None), weights)
    assert close(whole, tuple(g.square() for g in slow(model, NODES, per_class)), rtol=1e-4)
    assert not close(whole, fast, rtol=1e-4)


def drawn(seed: int, classes: int, zeros: float = 0.0) -> PerParameter:
    """An encoder weight, a head weight and a head bias; some entries exactly zero."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((4, 3), (3, classes), (classes,))
    made = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    return tuple(
        torch.where(torch.rand(p.shape, generator=generator) < zeros, 0.0, p) for p in made
    )


def squares(parameters: PerParameter) -> PerParameter:
    return tuple(p.square() for p in parameters)


def explicit(tasks: list[tuple[PerParameter, PerParameter]], parameters: PerParameter) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for importance, anchor in tasks:
        for f, a, p in zip(importance, anchor, parameters, strict=True):
            total = total + (f * (p[..., : a.shape[-1]] - a).square()).sum()
    return total


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 10**6))
def test_it_equals_the_sum_over_tasks_and_so_does_its_gradient(count, zeros, seed) -> None:
    tasks = [
        (squares(drawn(seed + 2 * s, 2 + s, zeros)), drawn(seed + 2 * s + 1, 2 + s))
        for s in range(count)
    ]
    penalty = Penalty(*tasks[0])
    for task in tasks[1:]:
        penalty = penalty.add(*task)
    now = tuple(p.requires_grad_() for p in drawn(seed + 99, 3 + count))
    slow, fast = explicit(tasks, now), penalty(now)
    assert torch.allclose(fast, slow, rtol=1e-9, atol=1e-12)
    wanted = torch.autograd.grad(slow, now)
    for g, w in zip(torch.autograd.grad(fast, now), wanted, strict=True):
        assert torch.allclose(g, w, rtol=1e-9, atol=1e-12)


def test_in_single_precision_the_gradient_at_a_common_anchor_is_zero() -> None:
    """Two large sums F p - sum F a would leave a rounding error there."""
    anchor = tuple(1e3 * p.float() for p in drawn(1, 4))
    penalty = Penalty(tuple(p.float() for p in squares(drawn(0, 4))), anchor)
    for s in range(2, 6):
        penalty = penalty.add(tuple(p.float() for p in squares(drawn(s, 4))), anchor)
    now = tuple(p.clone().requires_grad_() for p in anchor)
    for g in torch.autograd.grad(penalty(now), now):
        assert torch.equal(g, torch.zeros_like(g))
