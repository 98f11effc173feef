"""TWP: both importances by autograd on dense matrices, and the faithful quirks."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from paper.public_methods import PublicTwp, aggregated_gradient
from tests.harness.steps import step_of
from undrift.encoders.encoder import Encoder
from undrift.encoders.training import cross_entropy
from undrift.graphs import Graph
from undrift.learners.parts.backbone import Backbone, generator_for
from undrift.learners.parts.importance import PenaltyLearned, PerParameter
from undrift.learners.parts.model_learner import TaskTraining
from undrift.learners.twp import Twp, topology_gradient
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK = {"epochs": 5, "hidden": (6, 5), "lr": 1e-2, "lr_next": 1e-2}


def twp(kind: type[Twp] = Twp, **params: Any) -> Twp:
    return kind.from_params(**{**QUICK, **params})


def gradients_by_hand(model, task, *, aggregated=False) -> tuple[PerParameter, PerParameter]:
    """d CE / d theta of a GCN by autograd on dense matrices, and the gradient of the topology."""
    live = tuple(p.clone().requires_grad_() for p in model.parameters)
    a = task.graph.operator("symmetric").to_dense()
    h = torch.as_tensor(task.graph.features)
    for weight in live[:-2]:
        h = torch.relu(a @ h @ weight)
    labels = task.labels[task.train]
    counts = torch.bincount(labels, minlength=live[-1].numel())
    logits = (h @ live[-2] + live[-1])[task.train]
    loss = functional.cross_entropy(logits, labels, 1 / counts.clamp_min(1))
    first = (aggregated_gradient if aggregated else topology_gradient)(model.encoder, task.graph)
    return torch.autograd.grad(loss, live), (first, *(torch.zeros_like(p) for p in live[1:]))


def near(one: PerParameter, other: PerParameter) -> bool:
    a = torch.cat([p.flatten() for p in one])
    b = torch.cat([p.flatten() for p in other])
    return float((a - b).norm() / b.norm()) < 1e-3


@pytest.mark.parametrize("batch_size", [None, 5])
@pytest.mark.parametrize("strengths", [(3.0, 0.0), (0.0, 2.0), (3.0, 2.0)])
def test_importances_are_the_squares_of_two_separate_gradients(strengths, batch_size) -> None:
    task = tiny_stream().task(0)
    learner = twp(loss_strength=strengths[0], topology_strength=strengths[1], batch_size=batch_size)
    known: PenaltyLearned = learner.observe(task).learned_
    of_loss, of_edges = gradients_by_hand(known.model, task)
    slow = tuple(
        strengths[0] * a.square() + strengths[1] * b.square()
        for a, b in zip(of_loss, of_edges, strict=True)
    )
    assert near(known.penalty.importance, slow)


def test_faithful_squares_the_sum_of_both_gradients() -> None:
    task = tiny_stream().task(0)
    known: PenaltyLearned = (
        twp(PublicTwp, loss_strength=3.0, topology_strength=2.0).observe(task).learned_
    )
    of_loss, of_edges = gradients_by_hand(known.model, task, aggregated=True)
    slow = tuple(
        3.0 * a.square() + 2.0 * (a + b).square() for a, b in zip(of_loss, of_edges, strict=True)
    )
    assert near(known.penalty.importance, slow)
    apart = tuple(
        3.0 * a.square() + 2.0 * b.square() for a, b in zip(of_loss, of_edges, strict=True)
    )
    assert not near(known.penalty.importance, apart)


def test_faithful_mini_batches_have_no_topology() -> None:
    task = tiny_stream().task(0)
    both, loss_only = (
        twp(PublicTwp, loss_strength=a, topology_strength=b, batch_size=5).observe(task)
        for a, b in ((3.0, 2.0), (5.0, 0.0))
    )
    assert near(both.learned_.penalty.importance, loss_only.learned_.penalty.importance)


def test_faithful_training_counts_cross_entropy_twice() -> None:
    task = tiny_stream().task(0)
    weak = twp(loss_strength=1.0, topology_strength=1.0)
    for before in (None, weak.observe(task).learned_):
        plain, faithful = (
            learner._loss(TaskTraining.of(learner, task, before))
            for learner in (twp(), twp(PublicTwp))
        )
        model = Backbone(hidden=(6, 5)).model_for(task.graph, 2, generator_for(0, 0))
        step = step_of(model, torch.randn(4, 2), torch.tensor([0, 1, 1, 1]))
        assert torch.allclose(faithful(step) - plain(step), cross_entropy(step), rtol=1e-4)


def encoder_for(graph: Graph, **params: Any) -> Encoder:
    drawn = Backbone(hidden=(5, 4), **params).encoder_for(graph, generator_for(0, 0))
    return Encoder(drawn.architecture, tuple(w.double() for w in drawn.weights))


def dense(encoder: Encoder, graph: Graph, *, self_loops: bool = True, first: int = 0) -> Tensor:
    """d ||e||_2 / d W_0 with a full matrix of scores, a row per receiver."""
    x = graph.features.to_dense() if isinstance(graph.features, Csr) else graph.features
    weight = encoder.weights[0].clone().requires_grad_()
    h = x.double() @ weight[first:]
    scores = torch.nn.functional.leaky_relu(torch.tanh(h) @ h.T, 0.01)
    edges = graph.adjacency.to_dense() > 0
    if self_loops:
        edges = edges | torch.eye(graph.num_nodes, dtype=torch.bool)
    attention = torch.softmax(scores.masked_fill(~edges, -torch.inf), dim=1)
    (gradient,) = torch.autograd.grad(torch.linalg.vector_norm(attention), weight)
    return gradient


ONE_WAY = Graph.from_arrays(tiny_graph().features, [[0, 1, 2, 5], [1, 2, 0, 2]])


@pytest.mark.parametrize("graph", [tiny_graph(), tiny_graph(sparse=True), ONE_WAY])
def test_it_is_autograd_on_a_dense_attention_matrix(graph: Graph) -> None:
    encoder = encoder_for(graph)
    fast = topology_gradient(encoder, graph)
    slow = dense(encoder, graph)
    assert float(slow.norm()) > 1e-3
    assert float((fast - slow).norm() / slow.norm()) < 1e-10


def test_scores_after_aggregation_for_every_kind_of_layer() -> None:
    graph = tiny_graph()
    for kind in ("gcn", "sage"):
        encoder = encoder_for(graph, encoder=kind)
        operator = encoder.architecture.operator(graph).to_dense().double()
        weight = encoder.weights[0].clone().requires_grad_()
        x = torch.as_tensor(graph.features).double()
        h = (torch.cat([x, operator @ x], dim=1) if kind == "sage" else operator @ x) @ weight
        scores = functional.leaky_relu(torch.tanh(h) @ h.T, 0.2).masked_fill(operator == 0, -1e9)
        norm = torch.linalg.vector_norm(scores.softmax(dim=1) * (operator != 0))
        (slow,) = torch.autograd.grad(norm, weight)
        fast = aggregated_gradient(encoder, graph)
        assert float((fast - slow).norm() / slow.norm()) < 1e-9


def test_sage_scores_what_goes_along_the_edges() -> None:
    graph = tiny_graph()
    encoder = encoder_for(graph, encoder="sage")
    fast = topology_gradient(encoder, graph)
    width = graph.num_features
    slow = dense(encoder, graph, self_loops=False, first=width)
    assert float((fast - slow).norm() / slow.norm()) < 1e-10
    assert float(fast[:width].abs().max()) == 0
