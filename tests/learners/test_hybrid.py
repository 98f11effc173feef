"""Hybrid: propagation where features are good, an encoder encoded it where they are poor."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.harness.graphs import noisy_stream, patterned_graph
from tests.harness.references import balanced_joint_ridge
from undrift import Graph, Propagation, TaskStream, evaluate, load_stream
from undrift.analytic.statistics import one_hot
from undrift.datasets.catalogue import DATASETS
from undrift.learners import Hybrid
from undrift.propagation.solve import Solved, candidate
from undrift.sparse import Csr
from undrift.testing import tiny_stream
from undrift.typing import silent

QUICK: dict[str, Any] = {"epochs": 5, "hidden": (8, 8)}


def hybrid(**params: Any) -> Hybrid:
    return Hybrid.from_params(**{**QUICK, **params})


def observed(learner: Hybrid, stream: TaskStream) -> Any:
    for t in range(len(stream)):
        learner.observe(stream.task(t))
    learned: Any = learner.settle().learned_
    return learned


def patterned_stream(increment: int) -> TaskStream:
    """Class c links to class c + 1: neighbours tell by differing."""
    return TaskStream.from_graph(patterned_graph([1, 2, 3, 4, 5, 0]), base=4, increment=increment)


STREAMS: dict[str, Callable[[], TaskStream]] = {
    "dense": tiny_stream,
    "sparse": partial(tiny_stream, sparse=True),
    "noisy": partial(noisy_stream, 12.0),
    "patterned": partial(patterned_stream, 2),
    "no longer patterned": partial(patterned_stream, 1),
}


@pytest.mark.parametrize("name", STREAMS)
def test_where_the_encoder_earns_nothing_it_is_propagation(name: str) -> None:
    stream = STREAMS[name]()
    width = 0 if "patterned" in name else None  # 120 words would get 1,920 Fourier features
    learner, plain = hybrid(gain=0.99, fourier=width), Propagation(sketch=3072, fourier=width)
    for t in range(len(stream)):
        learner.observe(stream.task(t))
        plain.observe(stream.task(t))
        graph = stream.task(t).graph
        assert learner.settle().learned_.solution.beside is None
        assert torch.equal(learner.scores(graph), plain.scores(graph))
    assert learner.learned_.solution.variant == plain.settle().learned_.solution.variant


@pytest.mark.parametrize(
    ("name", "variant"), [("dense", "mix"), ("noisy", "hops"), ("patterned", "separate")]
)
def test_with_the_encoder_it_is_joint_ridge_on_both_columns(name: str, variant: str) -> None:
    """Slowly: every training row kept, both kinds of columns formed, one balanced ridge."""
    stream = STREAMS[name]()
    learner = hybrid(fourier=0)
    known = observed(learner, stream)
    whole = known.sums.encoded[variant].around(known.sums.inside.variants[variant])
    solution = replace(candidate(whole, None, balanced=True), variant="mix", beside=variant)
    known = replace(known, solution=solution)
    learner.learned_ = known
    rows, targets = [], []
    encoder = known.plan.encoder
    features = known.plan.rows.feature_map(variant)
    for t in range(len(stream)):
        task = stream.task(t)
        nodes = task.train.nonzero().flatten()
        z = features.plain(task.graph, nodes).double().to_dense()
        h = functional.normalize(encoder.double().embed(task.graph), dim=1)[nodes]
        rows.append(torch.cat([z, learner.scale * h], dim=1))
        targets.append(one_hot(task.graph.labels[nodes], known.classes))
    wanted = balanced_joint_ridge(torch.cat(rows), torch.cat(targets), known.answer.gamma)
    assert torch.allclose(known.answer.weights, wanted, rtol=1e-7, atol=1e-9)
    graph = stream.graph
    everyone = features.plain(graph, torch.arange(graph.num_nodes)).double().to_dense()
    h = functional.normalize(encoder.double().embed(graph), dim=1)
    scores = torch.cat([everyone, learner.scale * h], dim=1) @ wanted
    assert torch.allclose(learner.scores(graph), scores, rtol=1e-7, atol=1e-8)


def test_the_encoder_is_not_judged_by_the_classes_it_was_trained_on() -> None:
    stream = tiny_stream()
    learner = hybrid(gain=0.0).observe(stream.task(0)).settle()
    assert learner.learned_.solution.beside is None


def squeezed(stream: TaskStream, columns: int) -> TaskStream:
    """The stream with its features projected at random onto a few columns."""
    x = stream.graph.features
    assert isinstance(x, Csr)
    rng = np.random.default_rng(0)
    flat = x.to_scipy() @ (rng.normal(size=(x.shape[1], columns)) / np.sqrt(columns))
    features = torch.tensor(np.asarray(flat), dtype=torch.float32)
    return replace(stream, graph=Graph(features, stream.graph.adjacency, stream.graph.labels))


@pytest.mark.real_data
def test_poor_features_gain_by_the_encoder() -> None:
    """On 16 random columns the encoder brings points that propagation does not have."""
    _need("citeseer-full")
    poor = squeezed(load_stream("citeseer-cl"), 16)
    gained = evaluate(Hybrid(), poor).by_class.a_f
    plain = evaluate(Propagation(), poor).by_class.a_f
    assert gained > plain + 1


def _need(dataset: str) -> None:
    if not DATASETS[dataset].on_disk():
        pytest.skip(f"set UNDRIFT_DATA to the folder that holds {dataset} (gnn-benchmark)")


@pytest.mark.parametrize(
    ("with_it", "used"), [((0.95, 0.95, 0.9), None), ((0.1, 0.1, 0.93), "mix")]
)
def test_an_encoder_that_helps_its_own_batch_only_is_not_used(with_it, used, monkeypatch) -> None:
    """Right more often on the classes it was trained on, no more often on the next."""

    def told(accuracy: tuple[float, ...], *_: object, balanced: bool) -> Solved:
        return Solved(0.1, torch.zeros(1, 3), None, accuracy)

    monkeypatch.setattr("undrift.learners.hybrid.candidate", told)
    inside = SimpleNamespace(eligible=lambda: ("mix",))
    sums: Any = SimpleNamespace(
        inside=inside, whole=lambda _: (0.8, 0.8, 0.9), around=lambda _: with_it
    )
    plan: Any = SimpleNamespace(trained_classes=(0, 1))
    assert hybrid(gain=0.02)._solve(plan, (0, 1, 2), sums, silent).beside == used
