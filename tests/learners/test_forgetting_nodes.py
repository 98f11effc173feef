"""`forget(batch, nodes)`: as if the batch had come without some of its nodes, to 1e-9."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.graphs import field as module
from undrift.learners.base import Learner
from undrift.learners.registry import make_learner
from undrift.streams.task import Task

SMALL: dict[str, Any] = {"epochs": 3, "hidden": (8, 8)}
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "one variant": ("propagation", {"gamma": 0.1, "fourier": 7, "evidence_threshold": 60.0}),
    "far": ("propagation", {"gamma": 0.1, "fourier": 0, "evidence_threshold": 1e4}),
    "mean of hops": ("propagation", {"mix": "mean", "hops": 2, "fourier": 0}),
    "last hop": ("propagation", {"mix": "hop", "hops": 2, "fourier": 0}),
    "two variants": ("propagation", {"fourier": 0}),
    "hybrid": ("hybrid", {**SMALL, "fourier": 0}),
    "acil": ("acil", SMALL),
    "ds-al": ("ds-al", {**SMALL, "cleansing": False}),
}


def batch(seed: int, classes: tuple[int, int], *, directed: bool = False) -> Task:
    """Ninety nodes in a ring with some chords and weights."""
    n, rng = 90, np.random.default_rng(seed)
    source = np.concatenate([np.arange(n), rng.integers(0, n, 12)])
    target = np.concatenate([(np.arange(n) + 1) % n, rng.integers(0, n, 12)])
    links = sp.csr_matrix((rng.uniform(0.5, 2, source.size), (target, source)), shape=(n, n))
    labels = np.where(rng.random(n) < 0.5, *classes)
    features = rng.normal(size=(n, 10)) + np.eye(10)[labels]
    graph = Graph.from_scipy(features, links if directed else links + links.T, labels)
    drawn = torch.from_numpy(rng.random(n))
    return Task(graph, drawn < 0.6, drawn > 0.7, None, classes)


def without(task: Task, nodes: list[int]) -> Task:
    """The batch as it would have come without them."""
    kept = torch.ones(task.graph.num_nodes, dtype=torch.bool)
    kept[nodes] = False
    return Task(
        task.graph.subgraph(kept), task.train[kept], task.val[kept], None, classes=task.classes
    )


def taught(name: str, *batches: Task) -> Learner:
    method, params = LEARNERS[name]
    learner = make_learner(method, **params)
    for each in batches:
        learner.observe(each)
    return learner


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", LEARNERS)
def test_it_is_as_if_they_had_never_been_there(
    name: str, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 1)  # a field, however much of the graph it is
    base, later = batch(0, (0, 1)), batch(1, (2, 1), directed=directed)
    gone = [4, 40, 41]
    forgetful = taught(name, base, later).forget(later, gone)
    expected = taught(name, base, without(later, gone))
    asked = batch(2, (0, 2)).graph
    some, all_of_them = forgetful.scores(asked), expected.scores(asked)
    assert forgetful.classes_ == expected.classes_
    assert float((some - all_of_them).abs().max() / all_of_them.abs().max()) < 1e-9
    before = taught(name, base, later).scores(asked)
    assert float((before - all_of_them).abs().max() / all_of_them.abs().max()) > 1e-6


def test_only_rows_that_see_them_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = batch(0, (0, 1))
    learner = taught("mean of hops", task)
    counted: list[int] = []
    sums = type(learner)._sums

    def counting(self: Any, plan: Any, task: Task, within: Any, progress: Any) -> Any:
        counted.append(int(within.sum()))
        return sums(self, plan, task, within, progress)

    monkeypatch.setattr(type(learner), "_sums", counting)
    learner.forget(task, [int(task.train.nonzero()[20])])
    assert 7 <= counted[0] == counted[1] < 30  # itself, its neighbours, and two hops around those


def test_what_is_not_there_cannot_be_forgotten() -> None:
    task = batch(0, (0, 1))
    learner = taught("one variant", task)
    state = learner.state()
    with pytest.raises(InputError, match="node 90 is not there"):
        learner.forget(task, [90])
    assert learner.state().values == state.values
    learner.forget(task, [])
    again = taught("one variant", task)
    assert torch.allclose(learner.scores(task.graph), again.scores(task.graph), rtol=1e-9)
