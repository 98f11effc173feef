"""Propagated features against a loop over nodes, and at the edges of what a graph can be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from tests.harness.references import adaptive_features, separate_features
from undrift.analytic.random_maps import Sketch
from undrift.graphs import Graph
from undrift.propagation.mixes import (
    Mix,
    Propagated,
    row_normalised,
    rows_of_mixes,
)
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def dense(rows: Tensor | Csr) -> Tensor:
    return (rows.to_dense() if isinstance(rows, Csr) else rows).double()


def everyone(graph: Graph) -> Tensor:
    return torch.arange(graph.num_nodes)


def last_hop(features: Tensor, adjacency: Tensor, *, hops: int) -> Tensor:
    operator = Graph.from_scipy(features, sp.csr_matrix(adjacency.numpy())).operator().to_dense()
    x = dense(row_normalised(features))
    return torch.nn.functional.normalize(operator.double().matrix_power(hops) @ x, dim=1)


FAR = {"hops": 4, "evidence_threshold": 60.0}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("slow", "mix", "settings"),
    [
        (adaptive_features, "adaptive", {**FAR, "homophily": 1.0}),
        (adaptive_features, "adaptive", {**FAR, "homophily": 0.4}),
        (separate_features, "separate", {"hops": 2}),
        (last_hop, "hop", {"hops": 2}),
    ],
)
def test_rows_equal_those_of_a_loop_over_nodes(
    slow: Callable[..., Tensor], mix: Mix, settings: dict[str, Any], sparse: bool
) -> None:
    graph = tiny_graph(sparse=sparse)
    propagated = Propagated(mix, **settings)
    ours = dense(propagated.rows(graph, everyone(graph)))
    assert ours.shape[1] == 12 * propagated.blocks
    wanted = slow(dense(graph.features), graph.adjacency.to_dense(), **settings)
    torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
def test_mixes_made_in_one_pass_are_those_made_alone(
    sparse: bool, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if narrow:  # some columns at a time, few of them in each product
        monkeypatch.setattr("undrift.propagation.mixes._BLOCK", {"cpu": 1})
        monkeypatch.setattr("undrift.propagation.mixes._NARROWEST", 5)
        monkeypatch.setattr("undrift.sparse._BYTES_IN_CACHE", 1)
    graph = tiny_graph(sparse=sparse)
    mixes = [
        Propagated(evidence_threshold=60.0),
        Propagated("concat", 2, homophily=0.5),
        Propagated("concat", 1, homophily=0.0),
        Propagated("mean", 3),
    ]
    nodes = torch.tensor([7, 3, 41, 59])
    for mix, rows in zip(mixes, rows_of_mixes(mixes, graph, nodes), strict=True):
        alone = dense(mix.rows(graph, everyone(graph)))[nodes]
        torch.testing.assert_close(dense(rows), alone, rtol=1e-9, atol=1e-12)
        rough = rows_of_mixes([mix], graph, nodes, dtype=torch.float32)[0]
        assert rough.dtype == torch.float32
        torch.testing.assert_close(dense(rough), alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("sketched", [False, True])
@pytest.mark.parametrize(
    "propagated",
    [
        Propagated(evidence_threshold=60.0, homophily=0.7),
        Propagated("mean", 2),
        Propagated("hop", 2),
        Propagated("concat", 2),
        Propagated("separate", 2),
        Propagated("mean", 0),
        Propagated("concat", 0),
    ],
    ids=str,
)
def test_spread_is_the_product_up_to_a_positive_factor(
    propagated: Propagated, sparse: bool, sketched: bool
) -> None:
    graph = tiny_graph(sparse=sparse)
    sketch = Sketch(12, 5) if sketched else None
    rows = dense(propagated.rows(graph, everyone(graph), sketch))
    weights = torch.randn(
        rows.shape[1], 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    slow = rows @ weights
    ours = propagated.unscaled_scores(graph, weights, everyone(graph), sketch)
    factor = (ours * slow).sum(dim=1) / slow.square().sum(dim=1)
    assert bool((factor > 0).all())
    torch.testing.assert_close(ours, factor.unsqueeze(1) * slow, atol=1e-5, rtol=1e-5)
    some = torch.tensor([7, 3, 41])
    torch.testing.assert_close(propagated.unscaled_scores(graph, weights, some, sketch), ours[some])


def test_isolated_nodes_and_rows_of_zeros() -> None:
    graph = Graph.from_arrays([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0], [0.0, 0.0]], [[2], [3]])
    rows = dense(Propagated().rows(graph, everyone(graph)))
    torch.testing.assert_close(rows[0], torch.tensor([0.6, 0.8], dtype=torch.float64))
    assert not rows[1].any()
    assert bool(torch.isfinite(rows).all())
    assert rows[3].tolist() == [0.0, 1.0]  # has no words of its own, its neighbour lends some


def test_without_edges_or_homophily_the_features_are_the_nodes_own() -> None:
    linked = tiny_graph()
    alone = Graph.from_scipy(linked.features, sp.csr_matrix((60, 60)))
    own = dense(row_normalised(linked.features))
    torch.testing.assert_close(dense(Propagated().rows(alone, everyone(alone))), own)
    undamped = Propagated(homophily=0.0)
    torch.testing.assert_close(dense(undamped.rows(linked, everyone(linked))), own)
    separate = dense(Propagated("separate", 1).rows(alone, everyone(alone)))
    torch.testing.assert_close(separate, torch.cat([own, torch.zeros_like(own)], dim=1))


def test_sparse_rows_stay_sparse_until_they_fill_up() -> None:
    words = sp.random(400, 500, 0.004, random_state=np.random.default_rng(0), format="csr")
    ring = np.arange(400)
    graph = Graph.from_arrays(words, [ring, (ring + 1) % 400], undirected=True)
    assert isinstance(Propagated("mean", 2).rows(graph, everyone(graph)), Csr)
    assert isinstance(Propagated("mean", 60).rows(graph, everyone(graph)), Tensor)
