"""The buffer holds what it says and no more; the loss is the weighted sum it says."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.training import TrainingStep
from undrift.graphs import NORMALISATIONS, Graph
from undrift.learners.parts.backbone import Backbone, Model
from undrift.learners.parts.replay import Buffer, edge_free, places_taken, replayed
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_without_edges_a_node_hears_only_itself(kind: str) -> None:
    graph = edge_free(torch.randn(4, 3, generator=generator()), torch.tensor([0, 0, 1, 1]))
    operator = graph.operator(kind)  # type: ignore[arg-type]
    assert torch.equal(operator.to_dense(), torch.eye(4))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_buffer_holds_the_nodes_it_was_given(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    assert graph.labels is not None
    nodes = torch.tensor([7, 0, 13, 6])
    buffer = Buffer.of(graph, nodes, budget=2)
    kept, whole = buffer.graph.features, graph.features
    assert isinstance(kept, Csr) == isinstance(whole, Csr) == sparse
    dense = [x.to_dense() if isinstance(x, Csr) else x for x in (kept, whole)]
    assert torch.equal(dense[0], dense[1][nodes])
    assert buffer.graph.labels is not None
    assert torch.equal(buffer.graph.labels, graph.labels[nodes])
    assert buffer.graph.num_edges == 0
    assert len(buffer) == 4


@pytest.mark.parametrize("sparse", [False, True])
def test_adding_appends_and_keeps_the_budget(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)  # node i has class i % 6
    first = Buffer.of(graph, torch.tensor([0, 6, 1]), budget=2)
    both = first.add(Buffer.of(graph, torch.tensor([2, 8]), budget=2))
    assert both.graph.labels is not None
    assert both.graph.labels.tolist() == [0, 0, 1, 2, 2]
    assert both.budget == 2
    assert len(first) == 3, "adding must not change the buffer added to"
    assert isinstance(both.graph.features, Csr) == sparse


def step_of(model: Model, graph: Graph, nodes: Tensor, seed: int = 0) -> TrainingStep:
    embeddings = model.embed(graph)[nodes]
    assert graph.labels is not None
    return TrainingStep(
        nodes=nodes,
        embeddings=embeddings,
        logits=model.head(embeddings),
        columns=graph.labels[nodes],
        class_weights=None,
        encoder=model.encoder,
        head=model.head,
        generator=generator(seed),
    )


def slow_loss(model: Model, buffer: Buffer, graph: Graph, nodes: Tensor, weighted: bool) -> float:
    """The formula, node by node."""

    def negative_log(h: Tensor, label: int) -> float:
        logits: list[float] = (h @ model.head.weight + model.head.bias).tolist()
        return math.log(sum(math.exp(v) for v in logits)) - logits[label]

    assert isinstance(buffer.graph.features, Tensor)
    assert buffer.graph.labels is not None
    assert graph.labels is not None
    labels = buffer.graph.labels.tolist()
    total = weight_sum = 0.0
    for row, label in zip(buffer.graph.features, labels, strict=True):
        h = row
        for weight in model.encoder.weights:
            h = (h @ weight).clamp_min(0)
        w = 1 / labels.count(label) if weighted else 1.0
        total += w * negative_log(h, label)
        weight_sum += w
    new = [negative_log(model.embed(graph)[i], int(graph.labels[i])) for i in nodes.tolist()]
    beta = len(labels) / (len(labels) + len(new))
    return beta * sum(new) / len(new) + (1 - beta) * total / weight_sum


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_the_formula(weighted: bool) -> None:
    graph = tiny_graph()
    model = Backbone(hidden=(5, 4), dropout=0.0).model_for(graph, 6, generator())
    buffer = Buffer.of(graph, torch.tensor([0, 6, 12, 1]), budget=3)
    nodes = torch.tensor([2, 3, 4, 5, 8, 9, 10])
    loss = replayed(buffer, model, tuple(range(6)), class_weighted=weighted)
    fast = float(loss(step_of(model, graph, nodes)))
    assert fast == pytest.approx(slow_loss(model, buffer, graph, nodes, weighted), rel=1e-5)


def test_the_smaller_side_has_the_larger_weight() -> None:
    """beta = |B| / (|B| + n): a single batch node against a buffer of five counts 5/6."""
    graph = tiny_graph()
    model = Backbone(hidden=(4,), dropout=0.0).model_for(graph, 6, generator())
    buffer = Buffer.of(graph, torch.arange(5), budget=1)
    step = step_of(model, graph, torch.tensor([5]))
    old = functional.cross_entropy(model.logits(buffer.graph), torch.arange(5))
    new = functional.cross_entropy(step.logits, step.columns)
    loss = replayed(buffer, model, tuple(range(6)), class_weighted=True)(step)
    assert torch.allclose(loss, 5 / 6 * new + 1 / 6 * old)


def test_the_buffer_is_seen_in_training_mode() -> None:
    """Dropout is on, and its noise comes from the step's generator."""
    graph = tiny_graph()
    model = Backbone(hidden=(16,), dropout=0.5).model_for(graph, 6, generator())
    loss = replayed(
        Buffer.of(graph, torch.arange(6), 1), model, tuple(range(6)), class_weighted=False
    )
    values = [float(loss(step_of(model, graph, torch.arange(6), seed))) for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


def test_every_node_has_the_same_chance_of_a_place_however_it_came() -> None:
    generator = torch.Generator().manual_seed(0)
    budget, sizes, rounds = 4, (3, 5, 1, 7), 4000
    kept = torch.zeros(sum(sizes))
    for _ in range(rounds):
        places = torch.full((budget,), -1)
        seen = 0
        for size in sizes:
            taken = places_taken(budget, seen, size, generator)
            order = torch.randperm(size, generator=generator)  # a sampler ranks the new ones
            places[taken] = seen + order[: taken.numel()]
            seen += size
        assert bool((places >= 0).all())
        kept[places] += 1
    assert float((kept / rounds - budget / sum(sizes)).abs().max()) < 0.04
