"""Gradients of a mean, against the loss that training itself computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from undrift.graphs import Graph
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.batch_gradients import (
    loss_weights,
    mean_gradient,
    squared_batch_gradients,
)
from undrift.learners.parts.importance import Parameters, model_of, parameters_of
from undrift.learners.parts.model import Model
from undrift.learners.parts.randomness import generator_for
from undrift.testing.graphs import tiny_graph

GRAPH = tiny_graph(nodes=40, classes=4)
COLUMNS = GRAPH.labels if GRAPH.labels is not None else torch.zeros(0)
NODES = torch.arange(29)  # not as many of every class


def likelihood(logits: Tensor, nodes: Tensor) -> Tensor:
    return functional.cross_entropy(logits, COLUMNS[nodes], reduction="none")


def setting(graph: Graph = GRAPH) -> Model:
    return Backbone(hidden=(5, 4)).model_for(graph, 4, generator_for(0, 0))


def slow(model: Model, nodes: Tensor, class_weights: Tensor | None) -> Parameters:
    """The gradient of torch's own weighted mean over these nodes, on the whole graph."""
    live = tuple(p.clone().requires_grad_() for p in parameters_of(model.encoder, model.head))
    there = model_of(model, live)
    a = GRAPH.operator("symmetric").to_dense()
    h = torch.as_tensor(GRAPH.features)
    for weight in there.encoder.weights:
        h = torch.relu(a @ h @ weight)
    loss = functional.cross_entropy(there.head(h)[nodes], COLUMNS[nodes], class_weights)
    return torch.autograd.grad(loss, live)


def close(one: Parameters, other: Parameters) -> bool:
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-7) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("class_weighted", [True, False])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_the_mean_gradient_is_that_of_the_training_loss(
    class_weighted: bool, batch_size: int | None
) -> None:
    model = setting()
    weights = loss_weights(COLUMNS, NODES, class_weighted=class_weighted)
    fast = mean_gradient(model, GRAPH, NODES, likelihood, weights=weights, batch_size=batch_size)
    per_class = 1 / torch.bincount(COLUMNS[NODES]) if class_weighted else None
    assert close(fast, slow(model, NODES, per_class))
    other = None if class_weighted else 1 / torch.bincount(COLUMNS[NODES])
    assert not close(fast, slow(model, NODES, other))


def test_squares_are_taken_batch_by_batch() -> None:
    model = setting()
    weights = loss_weights(COLUMNS, NODES, class_weighted=True)
    per_class = 1 / torch.bincount(COLUMNS[NODES])
    fast = squared_batch_gradients(model, GRAPH, NODES, likelihood, weights=weights, batch_size=10)
    parts = [slow(model, part, per_class) for part in NODES.split(10)]
    wanted = tuple(sum(g.square() for g in gs) / 3 for gs in zip(*parts, strict=True))
    assert close(fast, wanted)
    whole = squared_batch_gradients(model, GRAPH, NODES, likelihood, weights=weights)
    assert close(whole, tuple(g.square() for g in slow(model, NODES, per_class)))
    assert not close(whole, fast)
