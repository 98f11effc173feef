"""EFC: E and the loss by their definitions, known drifts, and less forgetting than Bare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.training import TrainingStep
from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.learners.bare import Bare
from undrift.learners.efc import Efc, elastic_affinity, empirical_feature_matrix
from undrift.learners.parts.backbone import FeatureTeacher
from undrift.learners.parts.prototypes import gaussian_prototypes, semantic_drift
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# E ---------------------------------------------------------------------------------------


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


# the drift update ------------------------------------------------------------------------


def test_affinity_by_a_slow_loop() -> None:
    means, old, root = drawn(3, 4), drawn(8, 4, seed=1), drawn(4, 4, seed=2)
    matrix = root @ root.T
    slow = torch.empty(3, 8)
    for k in range(3):
        for i in range(8):
            slow[k, i] = -(old[i] - means[k]) @ matrix @ (old[i] - means[k])
    slow = (slow - slow.min()) / (slow.max() - slow.min()) / (2 * 0.2**2)
    assert torch.allclose(elastic_affinity(means, old, matrix, 0.2).float(), slow, atol=1e-4)


def test_prototypes_follow_a_translation_exactly() -> None:
    means, old, shift = drawn(4, 3), drawn(30, 3, seed=1), torch.tensor([1.0, -2.0, 0.5])
    affinity = elastic_affinity(means, old, torch.eye(3), 0.2)
    drift = semantic_drift(affinity, old, old + shift)
    assert torch.allclose(drift, shift.expand(4, 3), atol=1e-5)


def test_prototypes_come_closer_under_a_smooth_map() -> None:
    def smooth(x: Tensor) -> Tensor:
        return x + torch.tanh(x @ drawn(6, 6, seed=9) / 2)

    centres = 2 * drawn(4, 6, seed=1)
    gone = centres.repeat_interleave(200, 0) + 0.3 * drawn(800, 6, seed=2)
    here = centres.repeat_interleave(50, 0) + drawn(200, 6, seed=3)
    columns = torch.arange(4).repeat_interleave(200)
    before = gaussian_prototypes(gone, columns, 4).means
    truth = gaussian_prototypes(smooth(gone), columns, 4).means
    affinity = elastic_affinity(before, here, torch.eye(6), 0.2)
    drift = semantic_drift(affinity, here, smooth(here))
    left = (before + drift - truth).norm(dim=1)
    assert bool((left < 0.5 * (before - truth).norm(dim=1)).all())


def test_directions_without_weight_in_e_do_not_count() -> None:
    """Two nodes: one near in the direction E sees, the other near in the one it does not."""
    old = torch.tensor([[0.0, 50.0], [5.0, 0.0]])
    matrix = torch.diag(torch.tensor([1.0, 0.0]))
    affinity = elastic_affinity(torch.zeros(1, 2), old, matrix, 0.2)
    drift = semantic_drift(affinity, old, old + torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    assert torch.allclose(drift, torch.tensor([[1.0, 0.0]]), atol=1e-4)


# the loss --------------------------------------------------------------------------------


def step_after_one_task(learner: Efc) -> tuple[TrainingStep, FeatureTeacher]:
    """A step of task 1 with weights that have moved away from those of task 0."""
    stream = tiny_stream()
    known = learner.observe(stream.task(0)).learned_
    task = stream.task(1)
    generator = torch.Generator().manual_seed(0)
    model = replace(known.model, head=known.model.head.grow(2, generator))
    moved = tuple(
        w + 0.05 * torch.randn(w.shape, generator=generator) for w in model.encoder.weights
    )
    nodes = task.train.nonzero().flatten()
    encoder = model.encoder.with_weights(moved)
    h = encoder.embed(task.graph)[nodes] * (drawn(nodes.numel(), 16) > 0)  # stands for dropout
    assert task.graph.labels is not None
    step = TrainingStep(
        nodes=nodes,
        embeddings=h,
        logits=model.head(h),
        columns=task.graph.labels[nodes],
        class_weights=torch.tensor([0.0, 0.0, 0.3, 0.7]),
        encoder=encoder,
        head=model.head,
        generator=torch.Generator().manual_seed(7),
    )
    return step, FeatureTeacher(model.encoder, task.graph)


def test_loss_is_the_sum_of_its_three_parts() -> None:
    learner = Efc.from_params(**QUICK, elastic=3.0, eta=0.5, jitter=0.01)
    step, teacher = step_after_one_task(learner)
    known = learner.learned_
    fast = float(learner._loss(known, teacher, torch.tensor([2, 3]))(step))

    cross_entropy = functional.cross_entropy
    weights = step.class_weights
    assert weights is not None
    among_new = cross_entropy(step.logits[:, 2:], step.columns - 2, weights[2:])
    among_all = cross_entropy(step.logits, step.columns, weights)
    per_class = round(step.nodes.numel() / 4)
    samples, columns = known.prototypes.sampler(jitter=0.01).draw(
        per_class, torch.Generator().manual_seed(7)
    )
    replay = cross_entropy(step.head(samples), columns)
    new = step.encoder.embed(teacher.graph)[step.nodes]
    old = known.model.embed(teacher.graph)[step.nodes]
    matrix = 3.0 * known.matrix + 0.5 * torch.eye(16)
    elastic = sum(float(c @ matrix @ c) for c in new - old) / len(new)
    slow = float(among_new + 0.5 * replay + 0.5 * among_all) + elastic
    assert fast == pytest.approx(slow, rel=1e-4)
    assert elastic > 0.01


def test_making_the_loss_leaves_the_kept_matrix_alone() -> None:
    learner = Efc.from_params(**QUICK, elastic=1.0)
    _, teacher = step_after_one_task(learner)
    before = learner.learned_.matrix.clone()
    learner._loss(learner.learned_, teacher, torch.tensor([2, 3]))
    assert torch.equal(learner.learned_.matrix, before)


# the whole method ------------------------------------------------------------------------


def test_efc_forgets_less_than_bare() -> None:
    stream = tiny_stream(nodes=180, features=24)
    bare = evaluate(Bare.from_params(**QUICK), stream).by_class
    efc = evaluate(Efc.from_params(**QUICK), stream).by_class
    assert efc.a_f > bare.a_f + 20
    assert efc.a_l > 60


def test_elasticity_holds_what_the_classifier_sees() -> None:
    stream = tiny_stream()
    moves = []
    for elastic in (0.0, 100.0):
        params = {**QUICK, "elastic": elastic, "eta": 0.0}
        known = (learner := Efc.from_params(**params)).observe(stream.task(0)).learned_
        graph = stream.task(1).graph
        before = learner.embed(graph)
        change = learner.observe(stream.task(1)).embed(graph) - before
        moves.append(float(((change @ known.matrix) * change).sum() / change.square().sum()))
    assert moves[1] < 0.3 * moves[0]


def test_covariances_are_never_updated() -> None:
    stream = tiny_stream()
    learner = Efc.from_params(**QUICK)
    first = learner.observe(stream.task(0)).learned_.prototypes
    second = learner.observe(stream.task(1)).learned_.prototypes
    assert torch.equal(first.spreads, second.spreads[:2])
    assert not torch.allclose(first.means, second.means[:2], atol=1e-3)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"sigma": 0}, "sigma must be greater than 0, not 0"),
        ({"elastic": -1}, "elastic must be at least 0, not -1"),
        ({"eta": -0.1}, r"eta must be at least 0, not -0\.1"),
        ({"jitter": -1e-5}, "jitter must be at least 0"),
    ],
)
def test_bad_parameters(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Efc.from_params(**bad)
