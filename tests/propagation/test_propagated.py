"""Propagated features against a loop over nodes, and at the edges of what a graph can be."""

import math
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tests.harness.graphs import random_graph
from tests.harness.references import hop_weights, propagated_features
from undrift.analytic.random_maps import Sketch
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.propagation.mixes import (
    Propagated,
    effective_feature_count,
    inverse_lengths,
    rows_of_mixes,
)
from undrift.sparse import Csr

MIXES = [
    Propagated(hops=4, evidence_threshold=2.5),
    Propagated(hops=3, evidence_threshold=60.0, homophily=0.4),
    Propagated(hops=2, homophily=1e-3),  # of nodes without features the first hop weighs that
    Propagated("mean", 3, homophily=0.5),
    Propagated("mean", 0),
    Propagated("mean", 2, homophily=0.0),
    Propagated("hop", 2, homophily=0.5),
    Propagated("hop", 2, homophily=0.0),  # takes no hop at all
    Propagated("concat", 2, homophily=0.5),
    Propagated("concat", 1, homophily=0.0),
    Propagated("separate", 2),
]


def dense(rows: Tensor | Csr) -> Tensor:
    return (rows.to_dense() if isinstance(rows, Csr) else rows).double()


def everyone(graph: Graph) -> Tensor:
    return torch.arange(graph.num_nodes)


def odd_graph(kind: str = "dense", density: float = 0.03) -> Graph:
    """32 nodes, some without edges or features; edges point one way and weigh. `words`: wide."""
    settings = {"directed": True, "weighted": True, "sparse": kind != "dense"}
    made = random_graph(1, 32, density=density, **settings)
    words = sp.random(32, 400, 0.008, random_state=np.random.default_rng(0), format="csr")
    return Graph.from_scipy(words, made.adjacency.to_scipy()) if kind == "words" else made


@cache
def slow_rows(kind: str, mix: Propagated) -> Tensor:
    graph = odd_graph(kind)
    links = graph.adjacency.to_dense()
    return propagated_features(dense(graph.features), links, **asdict(mix))


@pytest.mark.parametrize("kind", ["dense", "sparse", "words"])
@pytest.mark.parametrize("narrow", [False, True])
def test_rows_of_one_mix_or_several_equal_those_of_dense_matrices(
    kind: str, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if narrow:  # some columns at a time, few of them in each product
        monkeypatch.setattr("undrift.propagation.mixes._BLOCK", {"cpu": 1})
        monkeypatch.setattr("undrift.propagation.mixes._NARROWEST", 5)
        monkeypatch.setattr("undrift.sparse._BYTES_IN_CACHE", 1)
    graph, dtype = odd_graph(kind), torch.float32 if narrow else torch.float64
    for mixes in (*([mix] for mix in MIXES), MIXES[:-1]):
        for nodes in (everyone(graph), torch.tensor([20, 7, 30, 9]), torch.arange(0)):
            made = rows_of_mixes(mixes, graph, nodes, dtype=dtype)
            for mix, rows in zip(mixes, made, strict=True):
                assert rows.dtype == dtype
                wanted = slow_rows(kind, mix)[nodes]
                torch.testing.assert_close(dense(rows), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_weights_reach_and_looks_are_those_of_a_loop(
    mix: Propagated, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, few = odd_graph(), torch.tensor([7, 3])  # one in sixteen
    slow = hop_weights(dense(graph.features), graph.adjacency.to_dense(), **asdict(mix))
    last = (torch.arange(mix.hops + 1).unsqueeze(1) * (slow > 0)).amax(dim=0)
    for nodes in (everyone(graph), few):
        taken = int(last[nodes].max()) if mix.mix == "adaptive" else mix.hops
        found = torch.stack(mix.weights_at(graph, nodes))
        torch.testing.assert_close(found, slow[: taken + 1, nodes])
        for hops in range(1, mix.hops + 2):
            assert torch.equal(mix.looks(graph, nodes, hops), last[nodes] >= hops)
    assert mix.reach(graph, torch.tensor([7, 3, 9])) is None  # many look at much of a graph
    with monkeypatch.context() as patch:
        patch.setattr("undrift.graphs.field._MOST", 1)
        reach = mix.reach(graph, few)
        assert torch.equal(torch.as_tensor(reach).expand(2), last[few])


def test_who_lacks_evidence_in_a_dense_graph_reaches_much_of_it() -> None:
    assert Propagated().reach(odd_graph(density=0.4), torch.tensor([0])) is None


@pytest.mark.parametrize("degree", [0.0, 3.0])
@pytest.mark.parametrize(
    ("mix", "weights"),
    [
        ("mean", [1.0, 0.5]),
        ("adaptive", [0.5, 0.25, 0.0]),
        ("hop", [0.0, 2.0]),
        ("hop", [0.0, 0.0]),
        ("concat", [1.0, 0.5]),
        ("separate", [1.0, 2.0, 2.0]),
    ],
)
def test_noise_that_averaging_leaves_is_the_formula_entry_by_entry(
    mix: Any, weights: list[float], degree: float
) -> None:
    propagated, hops = Propagated(mix, len(weights) - 1), range(len(weights))
    left = every = 0.0
    for k in hops:
        for other in hops if propagated.blocks == 1 else [k]:
            both = weights[k] * weights[other]
            left += both * (1.0 if k == other == 0 else (degree + 1) ** -1.5)
            every += both
    share = left / every if every else (degree + 1) ** -1.5
    each = [torch.tensor([w], dtype=torch.float64) for w in weights]
    found = propagated.log_noise(each, torch.tensor([degree], dtype=torch.float64))
    assert found.tolist() == pytest.approx([math.log(share)])


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("hops", [0, 1000], [-1, 1001, 2.5, math.nan]),
        ("homophily", [0.0, 1.0], [-0.1, 1.1, math.nan]),
        ("evidence_threshold", [1e-9], [0.0, -1.0]),
        ("mix", ["hop"], ["hops"]),
    ],
)
def test_what_is_no_mix_is_refused_with_the_value(
    name: str, allowed: list[Any], refused: list[Any]
) -> None:
    for value in allowed:
        assert getattr(Propagated(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(InputError, match=rf"{name}.*{value}"):
            Propagated(**{name: value})


def test_of_rows_of_zeros_the_count_is_zero_and_the_scale_one() -> None:
    rows = torch.tensor([[3.0, -4.0], [0.0, 0.0], [0.1, 0.1]])
    assert effective_feature_count(rows).tolist() == pytest.approx([49 / 25, 0, 2])
    assert inverse_lengths(rows).tolist() == pytest.approx([0.2, 1, 50**0.5])


@pytest.mark.parametrize("kind", ["dense", "words"])
@pytest.mark.parametrize("sketched", [False, True])
@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_spread_is_the_product_up_to_a_positive_factor(
    mix: Propagated, kind: str, sketched: bool
) -> None:
    graph, generator = odd_graph(kind), torch.Generator().manual_seed(1)
    sketch = Sketch(graph.num_features, 3) if sketched else None
    rows = dense(mix.rows(graph, everyone(graph), sketch))
    weights = torch.randn(rows.shape[1], 3, dtype=torch.float64, generator=generator)
    slow = normalize(rows @ weights)
    for nodes in (everyone(graph), torch.tensor([7, 3, 30])):
        ours = normalize(mix.unscaled_scores(graph, weights, nodes, sketch))
        torch.testing.assert_close(ours, slow[nodes], atol=1e-5, rtol=0)


def test_sparse_rows_stay_sparse_until_they_fill_up() -> None:
    words = sp.random(100, 2000, 0.004, random_state=np.random.default_rng(0), format="csr")
    ring = np.arange(100)
    graph = Graph.from_arrays(words, [ring, (ring + 1) % 100], undirected=True)
    assert isinstance(Propagated("mean", 2).rows(graph, everyone(graph)), Csr)
    assert isinstance(Propagated("mean", 40).rows(graph, everyone(graph)), Tensor)
