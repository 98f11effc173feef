"""How far scores are from those of one training, and how far a learner says they may be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.registry import make_learner
from undrift.storage.state import State
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream

CLASSES = 4
NARROW: dict[str, Any] = {"rank": 40, "fourier": 60}


def crowd(spread: float, *, nodes: int = 400, width: int = 30, seed: int = 0) -> Graph:
    """Dense rows around the means of four classes; no edges."""
    draw = np.random.default_rng(seed)
    labels = np.arange(nodes) % CLASSES
    means = draw.standard_normal((CLASSES, width))
    rows = means[labels] + spread * draw.standard_normal((nodes, width))
    return Graph.from_arrays(rows, [[], []], labels=labels)


def batch(graph: Graph, nodes: np.ndarray[Any, Any]) -> Task:
    train = torch.zeros(graph.num_nodes, dtype=torch.bool)
    train[torch.from_numpy(nodes)] = True
    return Task(graph, train, torch.zeros_like(train))


def taught(first: Learner, batches: Sequence[Task]) -> Learner:
    made = first.sibling()
    for each in batches:
        made.observe(each)
    return made


def off(found: Learner, wanted: Learner, graph: Graph) -> float:
    """Relative to the largest score, columns in one order."""
    order = [found.classes_.index(c) for c in wanted.classes_]
    expected = wanted.scores(graph)
    return float((found.scores(graph)[:, order] - expected).abs().max() / expected.abs().max())


def in_parts(method: str, graph: Graph, **settings: Any) -> tuple[Learner, Learner]:
    """A learner of eight shuffled batches, and one of all nodes at once."""
    every = np.random.default_rng(1).permutation(graph.num_nodes)
    pooled = make_learner(method, **settings).observe(batch(graph, every))
    parts = [batch(graph, nodes) for nodes in np.array_split(every, 8)]
    return taught(pooled, parts), pooled


def after_forgetting(
    method: str, graph: Graph, left: int, **settings: Any
) -> tuple[Learner, Learner]:
    """A learner that forgot all nodes but the first, and one that never saw the others."""
    every = np.arange(graph.num_nodes)
    kept, gone = batch(graph, every[:left]), batch(graph, every[left:])
    first = make_learner(method, **settings).observe(batch(graph, every))
    return taught(first, [kept, gone]).forget(gone), taught(first, [kept])


@pytest.mark.parametrize(("gamma", "most"), [(1e-3, 1e-13), (1e-6, 1e-10)])
def test_classes_without_spread_are_solved_alike_in_any_order(gamma: float, most: float) -> None:
    graph = crowd(1e-4)
    parts, pooled = in_parts("propagation", graph, gamma=gamma, **NARROW)
    assert off(parts, pooled, graph) < most


@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_little_is_left_of_a_large_batch_that_was_forgotten(spread: float) -> None:
    graph = crowd(spread, nodes=4000)
    forgot, never = after_forgetting("propagation", graph, 40, gamma=1e-2, **NARROW)
    assert off(forgot, never, graph) < 1e-9


def few_left(method: str, graph: Graph, **settings: Any) -> tuple[Learner, Learner]:
    return after_forgetting(method, graph, 40, **settings)


@pytest.mark.parametrize("how", [in_parts, few_left])
@pytest.mark.parametrize("spread", [1.0, 1e-5])
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("propagation", NARROW),
        ("propagation", {**NARROW, "gamma": 1e-6}),
        ("propagation", {"rank": 0, "fourier": 0, "gamma": 1e-6}),
        ("propagation", {"rank": 0, "fourier": 0, "balanced": False}),
        ("sgc-ridge", {"gamma": 1e-6}),
        ("ugcn", {"hidden": (20,)}),
    ],
)
def test_scores_are_no_further_off_than_is_told(
    method: str, settings: dict[str, Any], spread: float, how: Any
) -> None:
    graph = crowd(spread, nodes=600)
    found, wanted = how(method, graph, **settings)
    told = found.exactness()
    assert told is not None
    assert off(found, wanted, graph) < told


def test_what_is_told_outlives_a_restart_and_older_states_have_one_too() -> None:
    forgot, never = after_forgetting("propagation", crowd(1.0), 40, **NARROW)
    state = forgot.state()
    assert forgot.clone().load(state).exactness() == forgot.exactness()
    older = {key: v for key, v in state.values.items() if not key.endswith("rounding")}
    assert len(older) < len(state.values)
    restored = forgot.clone().load(State(state.method, state.params, state.tensors, older))
    told = restored.exactness()
    assert told is not None
    assert told == pytest.approx(never.exactness(), rel=10)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("hybrid", {"gain": 0.0}),
        ("acil", {"alpha": 2}),
        ("ds-al", {"alpha": 2, "cleansing": False}),
        ("al-gnn", {"hidden": (20,), "alpha": 2}),
    ],
)
def test_every_method_that_forgets_tells(method: str, settings: dict[str, Any]) -> None:
    if method in ("hybrid", "acil", "ds-al"):
        settings = {**settings, "backbone__epochs": 1}
    learner = make_learner(method, **settings)
    for task in tiny_stream():
        learner.observe(task)
    told = learner.exactness()
    assert told is not None
    assert 0 < told < 1e-6


def test_rounding_that_decides_is_told() -> None:
    """Without a ridge to speak of, fewer rows than columns decide nothing."""
    graph = crowd(1.0, nodes=16)
    learner = make_learner("sgc-ridge", gamma=1e-15).observe(batch(graph, np.arange(16)))
    told = learner.exactness()
    assert told is not None
    assert told > 1e-3
