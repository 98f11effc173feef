"""EFC and POLO: prototypes that follow the drift, and what is kept from drifting."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.harness.steps import step_of
from undrift.encoders.training import TrainingStep
from undrift.learners.efc import Efc, elastic_affinity, empirical_feature_matrix
from undrift.learners.parts.model_learner import TaskTraining
from undrift.learners.parts.prototypes import Prototypes, prototypes_of
from undrift.learners.polo import Polo, adaptive_samples, density
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_feature_matrix_is_the_mean_of_squared_gradients_over_nodes_and_classes() -> None:
    h, weight, bias = drawn(9, 4), drawn(4, 5, seed=1), drawn(5, seed=2)
    slow = torch.zeros(4, 4)
    for x in h:
        at = x.clone().requires_grad_()
        log_p = functional.log_softmax(at @ weight + bias, dim=0)
        for c in range(5):
            (gradient,) = torch.autograd.grad(log_p[c], at, retain_graph=True)
            slow += log_p[c].exp().detach() * torch.outer(gradient, gradient) / len(h)
    fast = empirical_feature_matrix(weight, h @ weight + bias)
    assert torch.allclose(fast, slow, atol=1e-5)
    assert torch.equal(fast, fast.T) or torch.allclose(fast, fast.T, atol=1e-6)


def test_the_kept_matrix_is_of_the_last_task_over_all_columns() -> None:
    stream = tiny_stream()
    learner = Efc.from_params(epochs=5, hidden=(8, 6), lr_next=1e-2)
    for task in stream:
        learner.observe(task)
    known, task = learner.learned_, stream.task(2)
    logits = known.model.logits(task.graph)[task.train]
    assert logits.shape[1] == 6
    expected = empirical_feature_matrix(known.model.head.weight, logits)
    assert torch.allclose(known.matrix, expected, atol=1e-6)


def test_affinity_by_a_slow_loop() -> None:
    means, old, root = drawn(3, 4), drawn(8, 4, seed=1), drawn(4, 4, seed=2)
    matrix = root @ root.T
    slow = torch.empty(3, 8)
    for k in range(3):
        for i in range(8):
            slow[k, i] = -(old[i] - means[k]) @ matrix @ (old[i] - means[k])
    slow = (slow - slow.min()) / (slow.max() - slow.min()) / (2 * 0.2**2)
    assert torch.allclose(elastic_affinity(means, old, matrix, 0.2).float(), slow, atol=1e-4)


def step_after_one_task(learner: Efc) -> tuple[TrainingStep, TaskTraining]:
    """A step of task 1 with weights that have moved away from those of task 0."""
    stream = tiny_stream()
    task = stream.task(1)
    training = TaskTraining.of(learner, task, learner.observe(stream.task(0)).learned_)
    generator, model = torch.Generator().manual_seed(0), training.model
    *weights, weight, bias = model.parameters
    moved = [w + 0.05 * torch.randn(w.shape, generator=generator) for w in weights]
    nodes = task.train.nonzero().flatten()
    model = model.with_parameters([*moved, weight, bias])
    h = model.embed(task.graph)[nodes] * (drawn(nodes.numel(), 16) > 0)  # stands for dropout
    columns, weights = task.graph.labels[nodes], torch.tensor([0.0, 0.0, 0.3, 0.7])
    given = {"nodes": nodes, "class_weights": weights, "generator": generator.manual_seed(7)}
    step = step_of(model, model.head(h), columns, **given)
    return step, training


def test_loss_is_the_sum_of_its_three_parts() -> None:
    learner = Efc.from_params(**QUICK, elastic=3.0, eta=0.5, jitter=0.01)
    step, training = step_after_one_task(learner)
    known, graph = learner.learned_, training.task.graph
    fast = float(learner._loss(training)(step))

    cross_entropy = functional.cross_entropy
    weights = step.class_weights
    among_new = cross_entropy(step.logits[:, 2:], step.columns - 2, weights[2:])
    among_all = cross_entropy(step.logits, step.columns, weights)
    per_class = round(step.nodes.numel() / 4)
    samples, columns = known.prototypes.sampler(jitter=0.01).draw(
        per_class, torch.Generator().manual_seed(7)
    )
    replay = cross_entropy(step.model.head(samples), columns)
    new = step.model.embed(graph)[step.nodes]
    old = known.model.embed(graph)[step.nodes]
    matrix = 3.0 * known.matrix + 0.5 * torch.eye(16)
    elastic = sum(float(c @ matrix @ c) for c in new - old) / len(new)
    slow = float(among_new + 0.5 * replay + 0.5 * among_all) + elastic
    assert fast == pytest.approx(slow, rel=1e-4)
    assert elastic > 0.01


def test_covariances_are_never_updated() -> None:
    stream = tiny_stream()
    learner = Efc.from_params(**QUICK)
    first = learner.observe(stream.task(0)).learned_.prototypes
    second = learner.observe(stream.task(1)).learned_.prototypes
    assert torch.equal(first.spreads, second.spreads[:2])
    assert not torch.allclose(first.means, second.means[:2], atol=1e-3)


def slow_density_prototype(rows: Tensor, gamma: float) -> tuple[list[float], float]:
    unit = [row / row.norm() for row in rows.double()]
    weights = []
    for one in unit:
        weights.append(math.exp(gamma * sum(float((one - o).norm()) for o in unit) / len(unit)))
    width = rows.shape[1]
    mean = [
        sum(w * float(row[j]) for w, row in zip(weights, rows, strict=True)) / sum(weights)
        for j in range(width)
    ]
    variance = [
        sum(w * (float(row[j]) - mean[j]) ** 2 for w, row in zip(weights, rows, strict=True))
        / sum(weights)
        for j in range(width)
    ]
    return mean, math.sqrt(sum(variance) / width)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 10.0])
def test_density_prototypes_by_a_slow_loop(gamma: float) -> None:
    h, columns = drawn(30, 4) + 1, torch.arange(30) % 3
    fast = prototypes_of(h, columns, 3, partial(density, gamma=gamma))
    for column in range(3):
        mean, radius = slow_density_prototype(h[columns == column], gamma)
        assert fast.means[column].tolist() == pytest.approx(mean, abs=1e-5)
        assert float(fast.spreads[column]) == pytest.approx(radius, abs=1e-5)


def test_distances_in_chunks_are_those_of_the_whole_class(monkeypatch: pytest.MonkeyPatch) -> None:
    h, columns = drawn(50, 4), torch.zeros(50, dtype=torch.long)
    whole = prototypes_of(h, columns, 1, partial(density, gamma=5.0))
    monkeypatch.setattr("undrift.learners.polo._ROWS", 7)
    chunked = prototypes_of(h, columns, 1, partial(density, gamma=5.0))
    assert torch.allclose(whole.means, chunked.means, atol=1e-6)
    assert torch.allclose(whole.spreads, chunked.spreads, atol=1e-6)


def test_adaptive_samples_by_a_slow_loop() -> None:
    means, h, radii = drawn(5, 6), drawn(12, 6, seed=1), torch.linspace(0.5, 1.5, 5)
    sampler = Prototypes(means, radii, torch.ones(5)).sampler(scale=2.0)
    columns = torch.tensor([3] * 4 + [7] * 8)  # four nodes of a known class that came back
    fast = adaptive_samples(sampler, h, columns, 4, torch.Generator().manual_seed(3))
    noise = drawn(5, 4, 6, seed=3) * 2 * radii.view(5, 1, 1)
    cosine = functional.cosine_similarity
    shortened = 0
    for k in range(5):
        others = [i for i in range(12) if columns[i] != k]
        i = max(others, key=lambda i: float(cosine(h[i], means[k], dim=0)))
        rival = max(range(5), key=lambda j: float(cosine(h[i], means[j], dim=0))) == k
        for s in range(4):
            ahead = float(cosine(h[i] - means[k], noise[k, s], dim=0))
            factor = 1 - ahead if rival and ahead > 0 else 1.0
            shortened += factor < 1
            assert torch.allclose(fast[k, s], means[k] + factor * noise[k, s], atol=1e-5)
    assert 0 < shortened < 20


def test_a_class_that_comes_back_alone_is_no_rival_of_itself() -> None:
    sampler = Prototypes(drawn(1, 6), torch.ones(1), torch.ones(1)).sampler()
    columns = torch.zeros(3, dtype=torch.int64)
    found = adaptive_samples(sampler, drawn(3, 6, seed=1), columns, 4, torch.Generator())
    noise = sampler.noise(4, torch.Generator())
    assert torch.equal(found, sampler.means.unsqueeze(1) + noise)


def test_drift_by_a_slow_loop() -> None:
    means, old, new = drawn(4, 3), drawn(7, 3, seed=1), drawn(7, 3, seed=2)
    fast = Polo(neighbours=2).drift(means, old, new)

    def unit(x: Tensor) -> Tensor:
        return x / x.norm()

    first = []
    for p in means:
        w = [math.exp(-10 * float((unit(h) - unit(p)).norm()) ** 2) for h in old]
        first.append(sum(w[i] * (new[i] - old[i]) for i in range(7)) / sum(w))
    for k in range(4):
        apart = {j: float((unit(means[k]) - unit(means[j])).norm()) for j in range(4) if j != k}
        near = sorted(apart, key=apart.__getitem__)[:2]
        v = {j: math.exp(-20 * apart[j]) for j in near}
        second = sum(v[j] * first[j] for j in near) / sum(v.values())
        assert torch.allclose(fast[k], (first[k] + 0.1 * second) / 1.1, atol=1e-5)


def test_drift_weight_zero_leaves_prototypes_and_one_moves_them() -> None:
    stream = tiny_stream()
    moved = {}
    for weight in (0.0, 1.0):
        learner = Polo.from_params(**{**QUICK, "kd": 0.0, "drift_weight": weight})
        first = learner.observe(stream.task(0)).learned_.prototypes
        second = learner.observe(stream.task(1)).learned_.prototypes
        assert torch.equal(first.spreads, second.spreads[:2])
        moved[weight] = float((second.means[:2] - first.means).norm())
    assert moved[0.0] == 0.0
    assert moved[1.0] > 0.1


def test_kd_holds_the_embeddings() -> None:
    stream = tiny_stream()
    moves = []
    for kd in (0.0, 10.0):
        learner = Polo.from_params(**{**QUICK, "kd": kd}).observe(stream.task(0))
        graph = stream.task(1).graph
        before = learner.embed(graph)
        learner.observe(stream.task(1))
        moves.append(float((learner.embed(graph) - before).norm() / before.norm()))
    assert moves[1] < 0.3 * moves[0]
