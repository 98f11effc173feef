"""Feature distillation: the clean pass, its gradient, and the norm near zero."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder
from undrift.encoders.training import Step
from undrift.graphs import Graph
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.feature_distillation import FeatureTeacher, frobenius_distance
from undrift.testing.graphs import tiny_graph


def encoder(graph: Graph, seed: int) -> Encoder:
    generator = torch.Generator().manual_seed(seed)
    made = Backbone(hidden=(8, 6)).encoder_for(graph, generator)
    return made.with_weights(tuple(w.clone().requires_grad_() for w in made.weights))


def step_of(graph: Graph, model: Encoder, nodes: Tensor) -> Step:
    head = Backbone(hidden=(8, 6)).head_for(2, graph, torch.Generator().manual_seed(0))
    h = torch.zeros(nodes.numel(), 6)
    return Step(
        nodes=nodes,
        embeddings=h,
        logits=head(h),
        columns=torch.zeros_like(nodes),
        class_weights=None,
        encoder=model,
        head=head,
        generator=torch.Generator().manual_seed(0),
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_new_and_old_are_the_embeddings_without_dropout(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    before, now = encoder(graph, 0), encoder(graph, 1)
    teacher = FeatureTeacher(before, graph)
    for nodes in (torch.tensor([3, 1, 20]), torch.tensor([7]), torch.arange(60)):
        new, old = teacher(step_of(graph, now, nodes))
        assert torch.allclose(new, now.embed(graph)[nodes], atol=1e-5)
        assert torch.allclose(old, before.embed(graph)[nodes], atol=1e-5)
        assert new.requires_grad
        assert not old.requires_grad


def test_a_full_batch_builds_its_structure_once() -> None:
    graph = tiny_graph()
    model = encoder(graph, 0)
    teacher = FeatureTeacher(model, graph)
    nodes = torch.arange(10)
    first = teacher._batch(step_of(graph, model, nodes))
    assert teacher._batch(step_of(graph, model, nodes)) is first
    assert teacher._batch(step_of(graph, model, nodes.clone())) is not first


def test_distance_is_the_frobenius_norm() -> None:
    generator = torch.Generator().manual_seed(0)
    new, old = torch.randn(2, 9, 4, generator=generator).double()
    assert float(frobenius_distance(new, old)) == pytest.approx(float((new - old).norm()), rel=1e-3)


def test_distance_at_zero_has_no_gradient_and_rounding_has_little() -> None:
    old = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    for noise, largest in ((0.0, 0.0), (1e-7, 1e-2)):
        new = (old * (1 + noise)).requires_grad_()
        distance = frobenius_distance(new, old)
        distance.backward()
        assert new.grad is not None
        assert float(new.grad.norm()) <= largest
        assert float(distance.detach()) < 1e-5
    zeros = torch.zeros(3, 2, requires_grad=True)
    frobenius_distance(zeros, torch.zeros(3, 2)).backward()
    assert zeros.grad is not None
    assert torch.equal(zeros.grad, torch.zeros(3, 2))
