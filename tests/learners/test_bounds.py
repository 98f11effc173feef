"""Bare forgets, others do less, and Joint does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import undrift
from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder
from undrift.encoders.training import Training
from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.learners.joint import Joint, TunedNetwork, _class_accuracy, fit_tuned
from undrift.learners.registry import make_learner
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def test_bare_forgets_and_others_do_less() -> None:
    stream = tiny_stream(nodes=180, features=24)

    def run(method: str, **params: Any) -> Any:
        return evaluate(make_learner(method, **QUICK, **params), stream).by_class

    bare = run("bare")
    assert bare.a_l > 90
    assert bare.a_f < 50
    assert run("joint").a_f > 75
    for sampler in ("mf", "cm"):
        assert run("er-gnn", sampler=sampler, budget=5).a_f > bare.a_f + 15
    for method in ("efc", "polo"):
        assert run(method).a_f > bare.a_f + 20
        assert run(method).a_l > 60
    cat = run("cat", n_encoders=100, budget=3, condense_lr=1e-2)
    assert cat.a_f > max(60, bare.a_f + 20), "chance is 17"


def test_joint_trains_on_every_graph_and_keeps_tasks_apart() -> None:
    stream = tiny_stream()
    learner = Joint.from_params(epochs=1, hidden=(4,))
    edges = 0
    for task in stream:
        learner.observe(task)
        edges += task.graph.num_edges
    kept = learner.learned_
    assert kept.graph.num_nodes == stream.graph.num_nodes
    assert kept.graph.num_edges == edges < stream.graph.num_edges
    assert int(kept.train.sum()) == int(stream.train.sum())


@pytest.mark.parametrize("method", ["joint", "cat"])
def test_the_model_starts_anew_at_every_task(method: str) -> None:
    stream = tiny_stream()
    learner = make_learner(method, epochs=1, lr=1e-12, hidden=(4,)).observe(stream.task(0))
    before = learner.learned_.model.encoder.weights[0]
    learner.observe(stream.task(1))
    assert not torch.allclose(learner.learned_.model.encoder.weights[0], before, atol=1e-3)


TUNED = {"epochs": 3, "hidden": (4,), "dropout": 0.3}


def test_isolated_is_the_tuned_recipe_on_the_union_of_the_task_graphs() -> None:
    stream = tiny_stream()
    learner = Joint.from_params(recipe="isolated", **TUNED)
    for task in stream:
        learner.observe(task)
    kept = learner.learned_
    assert kept.graph.num_edges == sum(task.graph.num_edges for task in stream)
    # the same nodes in one batch, as the third of a tuned learner: the same random numbers
    tuned = Joint.from_params(recipe="tuned", **TUNED)
    tuned.observe(stream.until(0)).observe(stream.until(1))
    tuned.observe(Task(kept.graph, kept.train, kept.val, ~(kept.train | kept.val), kept.classes))
    assert torch.equal(learner.scores(stream.graph), tuned.scores(stream.graph))


# the tuned network ------------------------------------------------------------------------

TRAIN, VAL = torch.arange(0, 40), torch.arange(40, 60)


def created(kind: str = "gcn", seed: int = 0) -> TunedNetwork:
    architecture = Architecture(kind=kind, hidden=(8, 8), dropout=0.25)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(seed)
    return TunedNetwork.create(Encoder.create(architecture, 12, generator), 6, generator)


def fitted(network: TunedNetwork, **params: Any) -> TunedNetwork:
    graph = tiny_graph()
    train, val = torch.zeros(60, dtype=torch.bool), torch.zeros(60, dtype=torch.bool)
    train[TRAIN], val[params.pop("val", VAL)] = True, True
    task = Task(graph, train, val, classes=range(6))
    training = Training(**{"epochs": 60, "lr": 1e-2, **params})
    return fit_tuned(network, task, training, torch.Generator().manual_seed(1))


def test_a_layer_is_aggregate_and_skip_normed_and_activated() -> None:
    graph, network = tiny_graph(sparse=True), created().double()
    h = graph.features.to_dense().double()
    operator = graph.operator().to_dense().double()
    gains = tuple(g + 0.1 * k for k, g in enumerate(network.gains, start=1))
    network = replace(network, gains=gains)
    for k in range(2):
        z = operator @ h @ network.encoder.weights[k] + h @ network.skips[k]
        mean, spread = z.mean(dim=1, keepdim=True), z.var(dim=1, keepdim=True, correction=0)
        h = torch.relu((z - mean) / (spread + 1e-5).sqrt() * gains[k] + network.shifts[k])
    torch.testing.assert_close(network.embed(graph), h, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["gcn", "sage", "gat"])
def test_it_learns_and_keeps_the_best_epoch(kind: str) -> None:
    graph = tiny_graph()
    network = created(kind)
    before = [p.clone() for p in network.parameters]
    last = fitted(network, val=VAL[:0])
    right = last.logits(graph).argmax(dim=1) == graph.labelled()
    assert float(right[TRAIN].float().mean()) > 0.8
    assert all(map(torch.equal, before, network.parameters))
    best, again = fitted(network, epochs=20), fitted(network, epochs=20)
    assert all(map(torch.equal, best.parameters, again.parameters))
    shares = [
        _class_accuracy(n.logits(graph)[VAL], graph.labelled()[VAL])
        for n in (best, fitted(network, epochs=20, val=VAL[:0]))
    ]
    assert shares[0] >= shares[1]


def test_joint_with_the_recipe_sees_everything_so_far(tmp_path: Path) -> None:
    stream = tiny_stream()
    whole = stream.until(1)
    assert whole.classes == stream.seen(1)
    nodes = stream.nodes([0, 1])
    assert whole.graph.adjacency.nnz == stream.graph.subgraph(nodes).adjacency.nnz
    apart = sum(stream.task(t).graph.adjacency.nnz for t in (0, 1))
    assert whole.graph.adjacency.nnz > apart
    assert bool((whole.graph.labelled()[whole.test] == -1).all())
    learner = Joint.from_params(recipe="tuned", epochs=20, lr=1e-2, hidden=(8,))
    found = evaluate(learner, stream)
    assert found.tasks == len(stream)
    assert learner.classes_ == stream.arrived
    learner.save(tmp_path / "joint", least_rows=1)
    again = undrift.load(tmp_path / "joint")
    assert torch.equal(again.scores(stream.graph), learner.scores(stream.graph))
    with pytest.raises(InputError, match="class 0 is not in this batch; give it all tasks so far"):
        learner.observe(stream.task(1))
