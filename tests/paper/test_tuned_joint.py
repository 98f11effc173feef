"""The tuned network, alone and on tasks apart, and streams that show all tasks so far."""

from dataclasses import replace
from typing import Any

import pytest
import torch

import undrift
from paper.tuned_joint import TunedNetwork, WholeStream, _class_accuracy, fit_tuned
from undrift import InputError, Task, evaluate, load_stream, make_learner
from undrift.encoders import Architecture, Encoder, Training
from undrift.testing import tiny_graph, tiny_stream

TUNED = {"epochs": 3, "hidden": (4,), "dropout": 0.3}


def test_isolated_is_the_tuned_recipe_on_the_union_of_the_task_graphs() -> None:
    stream = tiny_stream()
    learner = make_learner("joint", recipe="isolated", **TUNED)
    for task in stream:
        learner.observe(task)
    kept = learner.learned_
    assert kept.graph.num_edges == sum(task.graph.num_edges for task in stream)
    # the same nodes in one batch, as the third of a tuned learner: the same random numbers
    tuned = make_learner("joint", recipe="tuned", **TUNED)
    whole = WholeStream.of(stream)
    tuned.observe(whole.task(0)).observe(whole.task(1))
    tuned.observe(Task(kept.graph, kept.train, kept.val, ~(kept.train | kept.val), kept.classes))
    assert torch.equal(learner.scores(stream.graph), tuned.scores(stream.graph))


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


def test_joint_with_the_recipe_sees_everything_so_far(tmp_path) -> None:
    plain = tiny_stream()
    stream = WholeStream.of(plain)
    whole = stream.task(1)
    assert whole.classes == stream.seen(1)
    nodes = stream.nodes([0, 1])
    assert whole.graph.adjacency.nnz == stream.graph.subgraph(nodes).adjacency.nnz
    apart = sum(plain.task(t).graph.adjacency.nnz for t in (0, 1))
    assert whole.graph.adjacency.nnz > apart
    assert bool((whole.graph.labelled()[whole.test] == -1).all())
    learner = make_learner("joint", recipe="tuned", epochs=20, lr=1e-2, hidden=(8,))
    found = evaluate(learner, stream)
    assert found.tasks == len(stream)
    assert learner.classes_ == stream.arrived
    learner.save(tmp_path / "joint", least_rows=1)
    again = undrift.load(tmp_path / "joint")
    assert torch.equal(again.scores(stream.graph), learner.scores(stream.graph))
    with pytest.raises(InputError, match="class 0 is not in this batch; give it all tasks so far"):
        learner.observe(plain.task(1))


def test_whole_batches_by_name() -> None:
    stream = load_stream("synthetic@whole")
    assert stream.name == "synthetic@whole"
    assert [task.classes for task in stream] == [stream.seen(t) for t in range(len(stream))]
