"""CaT: a bank of condensed graphs, and a model that learns from the bank alone."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.references import dense_operator
from undrift.encoders.training import cross_entropy, fit
from undrift.graphs import Graph
from undrift.learners.cat import Cat, class_means, shares
from undrift.sparse import Csr
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def cat(**params: Any) -> Cat:
    return Cat.from_params(**{**QUICK, "epochs": 3, "n_encoders": 3, **params})


@pytest.mark.parametrize("budget", [1, 4])
def test_the_bank_grows_by_its_budget_and_old_graphs_stay(budget: int) -> None:
    stream = tiny_stream(nodes=90)
    learner = cat(budget=budget)
    first = learner.observe(stream.task(0)).learned_.bank[0].features.clone()
    for t in (1, 2):
        learner.observe(stream.task(t))
    bank = learner.learned_.bank
    assert [graph.num_nodes for graph in bank] == [2 * budget] * 3
    assert [set(graph.labels.tolist()) for graph in bank] == [{0, 1}, {2, 3}, {4, 5}]
    assert torch.equal(bank[0].features, first)
    state = learner.state()
    kept = sum(t.nbytes for k, t in state.tensors.items() if k.endswith("features"))
    assert kept == 4 * 6 * budget * 12


def test_training_reads_every_condensed_graph_and_no_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, list[int]]] = []

    def spy(model: Any, task: Any, columns: Any, **rest: Any) -> Any:
        assert rest["loss"] is cross_entropy
        nodes = task.train.nonzero().flatten()
        seen.append((task.graph.num_nodes, task.graph.num_edges, nodes.tolist()))
        return fit(model, task, columns, **rest)

    monkeypatch.setattr("undrift.learners.parts.backbone.fit", spy)
    learner = cat(budget=2)
    for task in tiny_stream(nodes=90):
        learner.observe(task)
    assert seen == [(n, 0, list(range(n))) for n in (4, 8, 12)]


TRAIN = torch.arange(0, 90, 2)  # of tiny_graph(nodes=90, classes=3): 15 nodes of each class
CLASSES = (0, 1, 2)


def tiny(**options: Any) -> Graph:
    return tiny_graph(nodes=90, classes=3, **options)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def condensed(graph: Graph, **options: Any) -> Graph:
    train = torch.zeros(90, dtype=torch.bool)
    train[options.pop("train", TRAIN)] = True
    return Cat(**options).condense(Task(graph, train, classes=CLASSES), generator())


def dense(features: Tensor | Csr) -> Tensor:
    return features.to_dense() if isinstance(features, Csr) else features


def drawn_weight(graph: Graph, width: int, noise: torch.Generator) -> Tensor:
    return torch.empty(graph.num_features, width).uniform_(-1, 1, generator=noise)


def slow_means(rows: Tensor, labels: list[int], weight: Tensor) -> Tensor:
    """The mean embedding of each class, row by row, in float64."""
    means = []
    for c in CLASSES:
        total = torch.zeros(weight.shape[1], dtype=torch.float64)
        mine = [row for row, label in zip(rows, labels, strict=True) if label == c]
        for row in mine:
            r = (row.double() @ weight.double()).clamp_min(0)
            total += r / r.norm().clamp_min(1e-12)
        means.append(total / len(mine))
    return torch.stack(means)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("propagations", [0, 1, 2])
def test_the_real_side_is_the_class_mean_of_the_propagated_nodes(sparse, propagations) -> None:
    graph = tiny(sparse=sparse)
    weight = drawn_weight(graph, 7, generator())
    rows = dense(graph.features).double()
    operator = dense_operator(graph.adjacency.to_dense(), "symmetric")
    for _ in range(propagations):
        rows = operator @ rows
    slow = slow_means(rows[TRAIN], graph.labels[TRAIN].tolist(), weight)
    fast = class_means(graph, TRAIN, CLASSES, propagations)(weight)
    assert torch.allclose(fast.double(), slow, atol=1e-6)


def mismatch(graph: Graph, synthetic: Graph) -> float:
    """The matching loss under encoders that condensation has not seen."""
    real, unseen = class_means(graph, TRAIN, CLASSES, 1), generator(99)
    labels, total = synthetic.labels.tolist(), 0.0
    for _ in range(10):
        weight = drawn_weight(graph, 32, unseen)
        fake = slow_means(dense(synthetic.features), labels, weight)
        total += float((real(weight) - fake).square().sum())
    return total / 10


@pytest.mark.parametrize("sparse", [False, True])
def test_the_loss_falls_under_encoders_never_seen(sparse: bool) -> None:
    graph = tiny(sparse=sparse)
    options: dict[str, Any] = {"budget": 3, "condense_lr": 1e-2, "encoder_width": 16}
    losses = [mismatch(graph, condensed(graph, n_encoders=n, **options)) for n in (0, 30, 300)]
    assert losses[1] < 0.8 * losses[0]
    assert losses[2] < 0.5 * losses[1]


def test_rows_start_as_training_nodes_and_move_away() -> None:
    graph = tiny()
    nodes = dense(graph.features)[TRAIN]
    start, moved = condensed(graph, n_encoders=0), condensed(graph, n_encoders=100)
    assert torch.equal(start.labels, moved.labels)
    place = torch.cdist(dense(start.features).double(), nodes.double())
    assert float(place.min(dim=1).values.max()) < 1e-6
    assert torch.equal(graph.labels[TRAIN][place.argmin(dim=1)], start.labels)
    assert len(set(place.argmin(dim=1).tolist())) == len(start.labels), "a node taken twice"
    distance = (dense(moved.features) - dense(start.features)).norm(dim=1)
    assert float(distance.min()) > 0.05


def test_the_budget_is_split_by_class_ratio() -> None:
    labels = np.repeat([0, 1, 2], [60, 29, 1])
    x = np.random.default_rng(0).normal(size=(90, 4))
    graph = Graph.from_arrays(x, np.zeros((2, 0), dtype=int), labels)
    for budget, expected in ((1, [1, 1, 1]), (4, [7, 4, 1]), (10, [19, 10, 1]), (99, [60, 29, 1])):
        made = condensed(graph, train=torch.arange(90), budget=budget, n_encoders=1)
        assert torch.bincount(made.labels).tolist() == expected
        assert made.num_nodes <= 3 * budget
        assert made.num_edges == 0


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=12), st.integers(0, 300))
def test_shares_add_up_and_fit(counts: list[int], total: int) -> None:
    given_out = shares(counts, total)
    assert sum(given_out) == max(len(counts), min(total, sum(counts)))
    assert all(1 <= share <= count for share, count in zip(given_out, counts, strict=True))
    order = sorted(range(len(counts)), key=lambda c: counts[c])
    for small, large in pairwise(order):
        assert given_out[small] <= given_out[large] + 1, "a larger class must not get less"
