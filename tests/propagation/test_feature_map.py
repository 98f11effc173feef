"""Rows in pieces and their sums; rankings of float32 are those of float64."""

import pytest
import torch

from undrift.propagation.features import FeatureMap
from undrift.propagation.learner import Propagation
from undrift.propagation.mixes import Propagated
from undrift.propagation.sums import PropagationSums, summed
from undrift.testing.graphs import tiny_graph, tiny_stream


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
