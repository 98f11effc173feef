"""Asked for some nodes, every method answers as for all, and looks at their field alone."""

from functools import cache
from typing import Any, get_args

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift import Graph, Learner, TaskStream, make_learner
from undrift.graphs import ReceptiveField
from undrift.graphs import field as module
from undrift.learners.registry import METHODS, method_class
from undrift.propagation.mixes import Mix

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (8, 8), "n_encoders": 5, "fourier": 7}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in METHODS},
    **{f"{name} gat": (name, {"encoder": "gat"}) for name in ("bare", "adr", "cat", "hybrid")},
    "bare sage": ("bare", {"encoder": "sage"}),
    "bare gin": ("bare", {"encoder": "gin"}),
    "bare sgc": ("bare", {"encoder": "sgc", "backbone__hops": 3}),
    "bare row": ("bare", {"normalisation": "row"}),
    "adr expanded": ("adr", {"alpha": 3}),
    **{f"propagation {mix}": ("propagation", {"mix": mix}) for mix in get_args(Mix)},
    "propagation linear": ("propagation", {"fourier": 0, "evidence_threshold": 25.0}),
    "propagation sketched": ("propagation", {"sketch": 5, "evidence_threshold": 25.0}),
    "hybrid without gain": ("hybrid", {"gain": 0.0, "evidence_threshold": 25.0}),
}
WIDTH = 12


def graph_of(seed, n=60, *, directed=True, weighted=True, sparse=False) -> Graph:
    """A ring with a few chords, so that fields are small; every tenth node has no edge."""
    rng = np.random.default_rng(seed)
    source = np.concatenate([np.arange(n), rng.integers(0, n, n // 4)])
    target = np.concatenate([(np.arange(n) + 1) % n, rng.integers(0, n, n // 4)])
    weights = rng.uniform(0.1, 3.0, source.size) if weighted else np.ones(source.size)
    links = sp.csr_matrix((weights, (target, source)), shape=(n, n))
    alone = np.arange(n) % 10 == 9
    links = sp.diags(1.0 * ~alone) @ links @ sp.diags(1.0 * ~alone)
    if not directed:
        links = links + links.T
    labels = np.arange(n) % 4
    features = np.eye(WIDTH)[labels] + rng.normal(size=(n, WIDTH)) * (rng.random((n, WIDTH)) < 0.4)
    features[3] = 0
    return Graph.from_scipy(sp.csr_matrix(features) if sparse else features, links, labels)


@cache
def taught(variant: str) -> Learner:
    method, params = VARIANTS[variant]
    known = method_class(method).defaults()
    quick = {name: value for name, value in QUICK.items() if name in known}
    learner = make_learner(method, **quick | params)
    for task in TaskStream.from_graph(graph_of(0, directed=False), base=2, increment=2):
        learner.observe(task)
    return learner


def close(some: torch.Tensor, whole: torch.Tensor) -> bool:
    """To 1e-12 of the largest score."""
    return bool((some - whole).abs().max() <= 1e-12 * whole.abs().max()) if some.numel() else True


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 59), max_size=4),
)
def test_some_nodes_get_what_they_get_among_all(variant, seed, directed, weighted, sparse, nodes):
    learner = taught(variant)
    graph = graph_of(seed, directed=directed, weighted=weighted, sparse=sparse)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST", 1)  # a field, however much of the graph it is
        some = learner.scores(graph, nodes)
        classes = learner.predict(graph, nodes)
    assert some.shape == (len(nodes), 4)
    assert close(some, learner.scores(graph)[nodes])
    assert classes.equal(learner.predict(graph)[nodes])


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_field_is_small_and_its_edges_alone_are_read(variant: str, monkeypatch) -> None:
    learner, graph = taught(variant), graph_of(1, 400)
    mask = torch.zeros(400, dtype=torch.bool)
    mask[[17, 200]] = True
    whole, classes = learner.scores(graph), learner.predict(graph)
    sizes = []

    def seen(graph: Graph, nodes: torch.Tensor) -> Graph:
        sizes.append(int(nodes.numel()))
        return part(graph, nodes)

    part = Graph.part
    monkeypatch.setattr(Graph, "part", seen)
    graph = graph_of(1, 400)
    assert close(learner.scores(graph, mask), whole[mask])
    assert learner.predict(graph, [200, 17, 200]).equal(classes[[200, 17, 200]])
    if learner._temperature(learner.learned_) is not None:
        assert learner.predict_proba(graph, [17]).shape == (1, 4)
    assert 2 <= max(sizes) < 40
    assert not graph.operator._made  # the whole graph was never normalised


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.booleans(), st.lists(st.integers(0, 59), min_size=1, max_size=5))
def test_a_field_holds_what_walks_reach(seed: int, directed: bool, nodes: list[int]) -> None:
    graph = graph_of(seed, directed=directed)
    hops = torch.tensor([k % 3 for k in range(len(nodes))])
    walks = graph.adjacency.to_dense() + torch.eye(60)
    expected: set[int] = set()
    for node, k in zip(nodes, hops.tolist(), strict=True):
        expected |= set(torch.matrix_power(walks, k)[node].nonzero().flatten().tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST", 1)
        found = ReceptiveField.of(graph, torch.tensor(nodes), hops)
    assert found.nodes.tolist() == sorted(expected)
    assert found.nodes[found.at].tolist() == nodes
    for kind in ("symmetric", "row", "sum"):
        whole = graph.operator(kind).to_dense()[found.nodes][:, found.nodes]
        assert found.graph.operator(kind).to_dense().equal(whole)
