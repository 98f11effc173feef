"""Rows, in pieces too, and their sums; rankings of float32 are those of float64."""

from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tests.harness.graphs import random_graph
from tests.harness.references import propagated_features
from undrift.analytic.random_maps import Fourier
from undrift.graphs import Graph
from undrift.propagation.features import FeatureMap, count_columns, plain_rows
from undrift.propagation.learner import Propagation
from undrift.propagation.mixes import Propagated
from undrift.propagation.sums import PropagationSums, summed
from undrift.testing.graphs import tiny_graph, tiny_stream

MEAN, CHANNELS = Propagated("mean", 2), Propagated("concat", 2, homophily=0.5)
MAPS = [
    FeatureMap(MEAN),
    FeatureMap(CHANNELS),
    FeatureMap(Propagated("separate", 2)),
    FeatureMap(MEAN, sketch=3),
    FeatureMap(CHANNELS, sketch=5, seed=1),
    FeatureMap(MEAN, power=0.5, counts=True),
    FeatureMap(Propagated(hops=2), fourier=8, seed=2, counts=True, degrees=True),
]


def slow_rows(features: FeatureMap, graph: Graph) -> Tensor:
    """For all nodes, each step by its definition, on dense rows."""
    x, everyone = graph.features.to_dense().double(), torch.arange(graph.num_nodes)
    mix = features.propagated
    rows = propagated_features(x, graph.adjacency.to_dense(), **asdict(mix))
    if sketch := features.sketch_of(x.shape[1]):  # its size has a test below
        parts = [
            part @ sketch(torch.eye(x.shape[1]).double()) for part in rows.chunk(mix.blocks, 1)
        ]
        rows = normalize(torch.cat(parts, dim=1))
    rows = normalize(rows.sign() * rows.abs() ** features.power)
    blind = 0
    if features.counts:
        counted = count_columns(graph, everyone, degrees=features.degrees).to_dense()
        rows, blind = torch.cat([rows, counted], dim=1), counted.shape[1]
    if features.fourier:
        fourier = Fourier(rows.shape[1], features.fourier, features.seed, blind)
        rows = torch.cat([rows, fourier(rows)], dim=1)
    return rows


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("density", [0.03, 0.3])  # in a dense graph the field is all of it
def test_rows_of_all_maps_at_once_or_alone_equal_the_slow_ones(
    sparse: bool, density: float
) -> None:
    graph = random_graph(2, 33, directed=True, weighted=True, sparse=sparse, density=density)
    slow = {features: slow_rows(features, graph) for features in MAPS}
    for nodes in (torch.arange(33), torch.tensor([7, 30])):
        for features, wanted in slow.items():
            assert features.width(4) == wanted.shape[1]
            whole = features.rows_of(graph, nodes)
            torch.testing.assert_close(whole, wanted[nodes], rtol=0, atol=1e-5)
        for maps in (MAPS[:2], MAPS[1:3], MAPS[:-1], MAPS):
            for features, rows in zip(maps, plain_rows(maps, graph, nodes), strict=True):
                plain = slow[features][nodes, : features.width(4) - features.fourier]
                torch.testing.assert_close(rows.to_dense(), plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("mix", "sketch", "size"),
    [
        *((MEAN, 0, None), (MEAN, 1, 1), (MEAN, 11, 11), (MEAN, 12, None), (MEAN, 13, None)),
        *((CHANNELS, 2, 1), (CHANNELS, 12, 4), (CHANNELS, 35, 11), (CHANNELS, 36, None)),
    ],
)
def test_rows_are_sketched_where_all_their_channels_have_more_columns(
    mix: Propagated, sketch: int, size: int | None
) -> None:
    found = FeatureMap(mix, sketch=sketch).sketch_of(12)
    assert (found.size if found else None) == size
    assert FeatureMap(mix, sketch=sketch).width(12) == (size or 12) * mix.blocks


def test_rows_reach_as_far_as_their_mix_but_with_degrees_over_all_edges() -> None:
    graph, nodes = random_graph(2, 33, density=0.03), torch.tensor([7, 30])
    assert FeatureMap(MEAN, counts=True).reach(graph, nodes) == 2
    assert FeatureMap(MEAN, counts=True, degrees=True).reach(graph, nodes) is None


@pytest.mark.parametrize("fourier", [0, 8])
@pytest.mark.parametrize("rank", [0, 2])
def test_rows_come_in_pieces_of_the_size_asked_for_and_none_is_a_sum(
    fourier: int, rank: int
) -> None:
    features = FeatureMap(Propagated("mean", 2), fourier=fourier, rank=rank)
    rows = features.plain(tiny_graph(), torch.arange(60))
    parts = [part for _, part in features.pieces(rows, budget_mb=6 * 8 * 20 / 2**20)]
    assert [len(part) for part in parts] == ([6] * 10 if fourier else [60])
    assert torch.equal(torch.cat(parts), features.rows_of(tiny_graph(), torch.arange(60)))
    none = summed(features, rows[:0], torch.zeros(0, 3))
    assert (none.width, none.classes, none.count, none.trace) == (12 + fourier, 3, 0, 0.0)
    one = summed(features, rows[:1], torch.ones(1, 1))
    assert (one.total, one.present, one.count) == (1.0, 1.0, 1)


@pytest.mark.parametrize("fourier", [0, 8])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_ranking_tells_apart_what_float32_cannot(sparse: bool, fourier: int) -> None:
    graph = tiny_graph(sparse=sparse)
    features = FeatureMap(Propagated("mean", 2), fourier=fourier)
    nodes = torch.arange(60)
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(features.width(12), 1, dtype=torch.float64, generator=generator)
    move = torch.randn(features.width(12), 3, dtype=torch.float64, generator=generator)
    weights = first + 1e-9 * move  # of float32's precision, three equal columns
    rows = features.plain(graph, nodes)
    exact = features.scored(rows, weights).argmax(dim=1)
    rough = features.scored(rows.float(), weights.float()).argmax(dim=1)
    assert exact.unique().numel() == 3
    assert not torch.equal(rough, exact)
    assert torch.equal(features.ranking(graph, weights, nodes).argmax(dim=1), exact)
    apart, scores = features.ranking(graph, move, nodes), features.scored(rows, move)
    factor = (apart * scores).sum(dim=1, keepdim=True) / scores.square().sum(dim=1, keepdim=True)
    assert bool((factor > 0).all())
    torch.testing.assert_close(apart, factor * scores, rtol=0, atol=1e-4)


@pytest.mark.parametrize("classes", [1, 2])
def test_what_sums_tell_beside_rows(classes: int) -> None:
    """Of a single row too; and what an old state does not tell is not a number for any class."""
    task = tiny_stream().task(0)
    one = task.train & (task.train.cumsum(0) == 1)
    known = Propagation(mix="adaptive", fourier=8).observe(task).settle().learned_
    assert known.sums.scored(known.solution) is known.sums.variants["mix"]
    for within in (one, task.train):
        noise = known.plan.log_noise(task.graph, task.training(within))
        sums = PropagationSums.of(known.plan, task, within)
        assert sums.usual_noise == pytest.approx(float(noise.mean()))
    for kept in sums.kept(known.plan, task.classes):
        plain = known.plan.feature_map(kept.name).plain(task.graph, task.training())
        assert torch.equal(kept.rows_of(task, task.train)[:, : kept.linear], plain)
    some = sums.select([*range(classes)])
    old = PropagationSums(some.variants, some.edges)
    assert old.noise.shape == (classes,)
    assert old.noise.isnan().all()


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("hops", [0, 8])
def test_rows_are_formed_only_where_rounding_may_decide(
    hops: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the length of W's column, rounding was seen to move a score by 3e-7 after eight hops."""
    graph = Graph.from_arrays(torch.eye(400), [[], []])  # a row of W is the score of a node
    gaps = torch.tensor([0.0, 3e-9, (1 + 2 * hops / 8) * 1e-7, 1e-4]).double().repeat(100)
    first = 1.1 * torch.ones(400, dtype=torch.float64)
    weights = scale * torch.stack([first, first - gaps * first.norm()], dim=1)
    features, formed, plain = FeatureMap(Propagated("hop", hops)), [], FeatureMap.plain

    def seen(self: FeatureMap, graph: Graph, nodes: Tensor, *dtype: Any) -> Any:
        formed.extend(nodes.tolist())
        return plain(self, graph, nodes, *dtype)

    monkeypatch.setattr(FeatureMap, "plain", seen)
    found = features.ranking(graph, weights, torch.arange(400))
    assert formed == (gaps < 1e-6).nonzero().flatten().tolist()
    assert torch.equal(found[formed], weights[formed])
    assert features.ranking(graph, weights[:, :1], torch.tensor([5])).shape == (1, 1)
    assert features.ranking(graph, weights, torch.arange(0)).shape == (0, 2)


@pytest.mark.parametrize("features", MAPS, ids=str)
def test_a_ranking_has_the_order_of_the_scores(features: FeatureMap) -> None:
    graph, nodes = random_graph(3, 33, directed=True, weighted=True), torch.tensor([9, 1, 30, 2])
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(features.width(4), 5, dtype=torch.float64, generator=generator)
    wanted = features.rows_of(graph, nodes) @ weights
    torch.testing.assert_close(features.scored(features.plain(graph, nodes), weights), wanted)
    assert torch.equal(features.ranking(graph, weights, nodes).argsort(), wanted.argsort())
