"""The penalty of constant size against the explicit sum over tasks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift.encoders.adam import widened
from undrift.learners.parts.regularisation.penalty import (
    Parameters,
    Penalty,
    model_of,
    parameters_of,
)
from undrift.learners.parts.training.backbone import Backbone, generator_for
from undrift.testing.graphs import tiny_graph


def drawn(seed: int, classes: int, zeros: float = 0.0) -> Parameters:
    """An encoder weight, a head weight and a head bias; some entries exactly zero."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((4, 3), (3, classes), (classes,))
    made = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    return tuple(
        torch.where(torch.rand(p.shape, generator=generator) < zeros, 0.0, p) for p in made
    )


def squares(parameters: Parameters) -> Parameters:
    return tuple(p.square() for p in parameters)


def explicit(tasks: list[tuple[Parameters, Parameters]], parameters: Parameters) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for importance, anchor in tasks:
        for f, a, p in zip(importance, anchor, parameters, strict=True):
            total = total + (f * (p[..., : a.shape[-1]] - a).square()).sum()
    return total


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 10**6))
def test_it_equals_the_sum_over_tasks_and_so_does_its_gradient(
    count: int, zeros: float, seed: int
) -> None:
    tasks = [
        (squares(drawn(seed + 2 * s, 2 + s, zeros)), drawn(seed + 2 * s + 1, 2 + s))
        for s in range(count)
    ]
    penalty = Penalty.of(*tasks[0])
    for task in tasks[1:]:
        penalty = penalty.add(*task)
    now = tuple(p.requires_grad_() for p in drawn(seed + 99, 3 + count))
    slow, fast = explicit(tasks, now), penalty(now)
    assert torch.allclose(fast, slow, rtol=1e-9, atol=1e-12)
    wanted = torch.autograd.grad(slow, now)
    for g, w in zip(torch.autograd.grad(fast, now), wanted, strict=True):
        assert torch.allclose(g, w, rtol=1e-9, atol=1e-12)


def test_its_size_does_not_grow_with_tasks() -> None:
    penalty = Penalty.of(squares(drawn(0, 4)), drawn(1, 4))
    sizes = [p.shape for p in penalty.importance]
    for s in range(5):
        penalty = penalty.add(squares(drawn(2 * s, 4)), drawn(2 * s + 1, 4))
    assert [p.shape for p in penalty.importance] == sizes
    assert [p.shape for p in penalty.anchor] == sizes


def test_in_single_precision_the_gradient_at_a_common_anchor_is_zero() -> None:
    """Two large sums F p - sum F a would leave a rounding error there."""
    anchor = tuple(1e3 * p.float() for p in drawn(1, 4))
    penalty = Penalty.of(tuple(p.float() for p in squares(drawn(0, 4))), anchor)
    for s in range(2, 6):
        penalty = penalty.add(tuple(p.float() for p in squares(drawn(s, 4))), anchor)
    now = tuple(p.clone().requires_grad_() for p in anchor)
    for g in torch.autograd.grad(penalty(now), now):
        assert torch.equal(g, torch.zeros_like(g))


def test_columns_of_later_classes_are_free() -> None:
    penalty = Penalty.of(squares(drawn(0, 2)), drawn(1, 2))
    now = tuple(p.requires_grad_() for p in drawn(2, 5))
    gradients = torch.autograd.grad(penalty(now), now)
    for g in gradients[1:]:
        assert float(g[..., 2:].abs().max()) == 0
        assert float(g[..., :2].abs().min()) > 0


def test_widened_adds_columns_of_zeros() -> None:
    old, like = drawn(0, 2), drawn(1, 4)
    wide = widened(old, like)
    assert [p.shape for p in wide] == [p.shape for p in like]
    assert torch.equal(wide[0], old[0])
    assert torch.equal(wide[1][:, :2], old[1])
    assert float(wide[1][:, 2:].abs().max()) == float(wide[2][2:].abs().max()) == 0


@pytest.mark.parametrize("encoder", ["gcn", "gin"])
def test_a_model_is_its_parameters(encoder: str) -> None:
    graph = tiny_graph()
    backbone = Backbone(encoder=encoder, hidden=(5, 4))  # type: ignore[arg-type]
    model = backbone.model_for(graph, 3, generator_for(0, 0))
    parameters = parameters_of(model.encoder, model.head)
    assert len(parameters) == len(model.encoder.weights) + 2
    assert torch.equal(model_of(model, parameters).logits(graph), model.logits(graph))
    doubled = model_of(model, tuple(2 * p for p in parameters))
    assert not torch.allclose(doubled.logits(graph), model.logits(graph))
