"""ER-GNN: remembers by replay, keeps no more than its budget, and starts as Bare."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.graphs import Graph
from undrift.learners import er_gnn as module
from undrift.learners.bare import Bare
from undrift.learners.er_gnn import ErGnn, Sampler, conflicts, distance_to_mean
from undrift.sparse import Csr
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def er_gnn(**params: Any) -> ErGnn:
    return ErGnn.from_params(**{**QUICK, "epochs": 3, **params})


@pytest.mark.parametrize("sampler", get_args(Sampler))
def test_replay_forgets_less_than_bare(sampler: str) -> None:
    stream = tiny_stream(nodes=180, features=24)
    bare = evaluate(Bare.from_params(**QUICK), stream).by_class
    replay = evaluate(ErGnn.from_params(**QUICK, sampler=sampler, budget=5), stream).by_class
    assert replay.a_f > bare.a_f + 15


def test_the_base_task_is_bare() -> None:
    stream = tiny_stream()
    both = (er_gnn(), Bare.from_params(**{**QUICK, "epochs": 3}))
    mine, bare = (learner.observe(stream.task(0)).scores(stream.graph) for learner in both)
    assert torch.equal(mine, bare)
    mine, bare = (learner.observe(stream.task(1)).scores(stream.graph) for learner in both)
    assert not torch.allclose(mine, bare)


@pytest.mark.parametrize("budget", [1, 3, 50])
@pytest.mark.parametrize("sampler", get_args(Sampler))
def test_never_more_than_the_budget_of_a_class(budget: int, sampler: str) -> None:
    stream = tiny_stream(nodes=90)
    learner = er_gnn(budget=budget, sampler=sampler)
    available = []
    for task in stream:
        assert task.graph.labels is not None
        available += [int((task.graph.labels[task.train] == c).sum()) for c in task.classes]
        learner.observe(task)
        kept = torch.bincount(learner.learned_.buffer.graph.labels).tolist()
        assert kept == [min(budget, n) for n in available]


def test_the_buffer_holds_training_nodes_of_the_right_class() -> None:
    stream = tiny_stream(nodes=90)
    learner = er_gnn(sampler="mf", budget=2)
    for task in stream:
        learner.observe(task)
    kept, at = learner.learned_.buffer.graph, 0
    for task in stream:
        labels, features = task.graph.labels, task.graph.features
        assert labels is not None
        assert isinstance(features, torch.Tensor)
        for c in task.classes:
            mine = features[task.train & (labels == c)]
            nearest = mine[distance_to_mean(mine).argsort()[:2]]
            assert torch.equal(kept.features[at : at + 2], nearest)
            at += 2
    assert at == kept.num_nodes
    assert kept.num_edges == 0


def test_which_nodes_are_kept_does_not_depend_on_training() -> None:
    stream = tiny_stream(nodes=90)
    short, long = (
        er_gnn(sampler="random", budget=2, epochs=n).observe(stream.task(0)) for n in (0, 5)
    )
    kept = [learner.learned_.buffer.graph.features for learner in (short, long)]
    assert torch.equal(kept[0], kept[1])


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"distance": 0.0}, {"sampler": "mean"}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        er_gnn(**wrong)


def chosen(graph: Graph, train: Tensor, sampler: str, **options: Any) -> dict[int, list[int]]:
    """The selected nodes by class."""
    settings: dict[str, Any] = {"budget": 4, "distance": 4.0, "seed": 0, **options}
    generator = torch.Generator().manual_seed(settings.pop("seed"))
    assert graph.labels is not None
    classes = tuple(sorted(set(graph.labels.tolist())))
    learner = ErGnn.from_params(sampler=sampler, **settings)
    nodes = learner.select(graph, train, classes, generator).tolist()
    return {c: [i for i in nodes if int(graph.labels[i]) == c] for c in classes}


def dense(graph: Graph) -> np.ndarray:
    features = graph.features
    return (features.to_dense() if isinstance(features, Csr) else features).double().numpy()


def members(graph: Graph, train: Tensor, c: int) -> list[int]:
    assert graph.labels is not None
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
def test_chunks_do_not_change_the_counts(
    monkeypatch: pytest.MonkeyPatch, pairs: int, sparse: bool
) -> None:
    features = tiny_graph(sparse=sparse).features
    mine = torch.arange(25)
    a, b = features[mine], features[torch.arange(25, 60)]
    whole = conflicts(a, b, 3.0)
    monkeypatch.setattr(module, "_PAIRS", pairs)
    assert torch.equal(conflicts(a, b, 3.0), whole)
    assert 0 < int(whole.max()) < 35


def test_cm_ranks_the_whole_of_a_large_class() -> None:
    """2,000 nodes sit on the other class; the five that do not are found wherever they are."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2100, 3)) * 0.1
    free = [3, 700, 1200, 1500, 1999]
    x[free] += 50.0
    labels = np.repeat([0, 1], [2000, 100])
    graph = Graph.from_arrays(x, np.zeros((2, 0), dtype=int), labels)
    found = chosen(graph, torch.arange(2100), "cm", budget=5, distance=1.0)[0]
    assert sorted(found) == free


def test_ties_fall_at_random_and_not_by_index() -> None:
    graph = tiny_graph()
    first, second = (chosen(graph, TRAIN, "cm", distance=1e-3, seed=s) for s in (1, 2))
    assert first != second
    assert first == chosen(graph, TRAIN, "cm", distance=1e-3, seed=1)


def test_random_depends_on_the_seed_only() -> None:
    graph = tiny_graph()
    draws = [chosen(graph, TRAIN, "random", seed=s) for s in range(20)]
    assert draws[0] == chosen(graph, TRAIN, "random", seed=0)
    everyone = {i for draw in draws for i in draw[0]}
    assert everyone == set(members(graph, TRAIN, 0)), "every node must have its chance"


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
