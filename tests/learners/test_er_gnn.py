"""ER-GNN: remembers by replay, keeps no more than its budget, and starts as Bare."""

import math
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.harness.steps import step_of
from undrift import Bare, Graph, Task
from undrift.encoders.training import Model, TrainingStep
from undrift.learners import ErGnn
from undrift.learners import er_gnn as module
from undrift.learners.er_gnn import Buffer, Choice, conflicts, places_taken, replayed
from undrift.learners.parts.backbone import Backbone
from undrift.sparse import Csr
from undrift.testing import tiny_graph, tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def er_gnn(**params: Any) -> ErGnn:
    return ErGnn.from_params(**{**QUICK, "epochs": 3, **params})


def test_the_base_task_is_bare() -> None:
    stream = tiny_stream()
    both = (er_gnn(), Bare.from_params(**{**QUICK, "epochs": 3}))
    mine, bare = (learner.observe(stream.task(0)).scores(stream.graph) for learner in both)
    assert torch.equal(mine, bare)
    mine, bare = (learner.observe(stream.task(1)).scores(stream.graph) for learner in both)
    assert not torch.allclose(mine, bare)


@pytest.mark.parametrize("budget", [1, 3, 50])
@pytest.mark.parametrize("sampler", get_args(Choice))
def test_never_more_than_the_budget_of_a_class(budget: int, sampler: str) -> None:
    stream = tiny_stream(nodes=90)
    learner = er_gnn(budget=budget, sampler=sampler)
    available = []
    for task in stream:
        available += [int((task.graph.labels[task.train] == c).sum()) for c in task.classes]
        learner.observe(task)
        kept = torch.bincount(learner.learned_.buffer.graph.labels).tolist()
        assert kept == [min(budget, n) for n in available]


def chosen(graph: Graph, train: Tensor, sampler: str, **options: Any) -> dict[int, list[int]]:
    """The selected nodes by class."""
    settings: dict[str, Any] = {"budget": 4, "distance": 4.0, "seed": 0, **options}
    generator = torch.Generator().manual_seed(settings.pop("seed"))
    classes = tuple(sorted(set(graph.labels.tolist())))
    learner = ErGnn.from_params(sampler=sampler, **settings)
    nodes = learner.select(graph, train, classes, generator).tolist()
    return {c: [i for i in nodes if int(graph.labels[i]) == c] for c in classes}


def dense(graph: Graph) -> np.ndarray:
    features = graph.features
    return (features.to_dense() if isinstance(features, Csr) else features).double().numpy()


def members(graph: Graph, train: Tensor, c: int) -> list[int]:
    return [i for i in train.tolist() if int(graph.labels[i]) == c]


TRAIN = torch.tensor([i for i in range(60) if i % 5])


@pytest.mark.parametrize("sparse", [False, True])
def test_mf_takes_the_nearest_to_the_class_mean(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    x = dense(graph)
    for c, nodes in chosen(graph, TRAIN, "mf").items():
        mine = members(graph, TRAIN, c)
        mean = sum(x[i] for i in mine) / len(mine)
        nearest = sorted(mine, key=lambda i: float(np.linalg.norm(x[i] - mean)))
        assert nodes == nearest[:4]


@pytest.mark.parametrize("sparse", [False, True])
def test_cm_takes_those_with_fewest_other_class_nodes_around(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    x = dense(graph)

    def around(i: int, c: int) -> int:
        others = [j for j in TRAIN.tolist() if j not in members(graph, TRAIN, c)]
        return sum(float(np.linalg.norm(x[i] - x[j])) < 4.0 for j in others)

    ranks = []
    for c, nodes in chosen(graph, TRAIN, "cm").items():
        counts = sorted(around(i, c) for i in members(graph, TRAIN, c))
        assert [around(i, c) for i in nodes] == counts[:4]
        ranks += counts
    assert len(set(ranks)) > 3, "the graph must not make every node alike"


@pytest.mark.parametrize("pairs", [1, 50, 333])
@pytest.mark.parametrize("sparse", [False, True])
def test_chunks_do_not_change_the_counts(monkeypatch, pairs: int, sparse: bool) -> None:
    features = tiny_graph(sparse=sparse).features
    mine = torch.arange(25)
    a, b = features[mine], features[torch.arange(25, 60)]
    whole = conflicts(a, b, 3.0)
    monkeypatch.setattr(module, "_PAIRS", pairs)
    assert torch.equal(conflicts(a, b, 3.0), whole)
    assert 0 < int(whole.max()) < 35


def test_ties_fall_at_random_and_not_by_index() -> None:
    graph = tiny_graph()
    first, second = (chosen(graph, TRAIN, "cm", distance=1e-3, seed=s) for s in (1, 2))
    assert first != second
    assert first == chosen(graph, TRAIN, "cm", distance=1e-3, seed=1)


def test_a_class_that_comes_back_shares_its_budget_with_its_old_nodes() -> None:
    graph = tiny_graph(nodes=300, classes=3)
    labels = graph.labelled()
    order = torch.arange(300) // 3
    batches = [
        Task(graph, (order >= 20 * k) & (order < 20 * k + 20) & (labels != k % 3)) for k in range(5)
    ]
    learner = er_gnn(budget=8, sampler="mf")
    for batch in batches:
        learner.observe(batch)
    known = learner.learned_
    assert dict(zip(known.classes, known.seen, strict=True)) == {0: 60, 1: 60, 2: 80}
    kept = known.buffer.graph
    assert torch.bincount(kept.labelled()).tolist() == [8, 8, 8]
    features = graph.features
    assert isinstance(features, torch.Tensor)
    found = [int((features == row).all(dim=1).nonzero()) for row in kept.features]
    assert torch.equal(labels[found], kept.labelled())
    came = {k: sum(20 * k <= i // 3 < 20 * k + 20 for i in found) for k in range(5)}
    assert min(came.values()) >= 1  # no batch fills the buffer, none is left out


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def step_on(model: Model, graph: Graph, nodes: Tensor, seed: int = 0) -> TrainingStep:
    logits, columns = model.logits(graph)[nodes], graph.labelled()[nodes]
    return step_of(model, logits, columns, generator=generator(seed))


def slow_loss(model: Model, buffer: Buffer, graph: Graph, nodes: Tensor, weighted: bool) -> float:
    """The formula, node by node."""

    def negative_log(h: Tensor, label: int) -> float:
        logits: list[float] = (h @ model.head.weight + model.head.bias).tolist()
        return math.log(sum(math.exp(v) for v in logits)) - logits[label]

    assert isinstance(buffer.graph.features, Tensor)
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
    fast = float(loss(step_on(model, graph, nodes)))
    assert fast == pytest.approx(slow_loss(model, buffer, graph, nodes, weighted), rel=1e-5)


def test_the_buffer_is_seen_in_training_mode() -> None:
    """Dropout is on, and its noise comes from the step's generator."""
    graph = tiny_graph()
    model = Backbone(hidden=(16,), dropout=0.5).model_for(graph, 6, generator())
    loss = replayed(
        Buffer.of(graph, torch.arange(6), 1), model, tuple(range(6)), class_weighted=False
    )
    values = [float(loss(step_on(model, graph, torch.arange(6), seed))) for seed in (1, 1, 2)]
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
