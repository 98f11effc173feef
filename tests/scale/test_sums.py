"""A graph in pieces gives the rows and the sums that it gives in memory."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tests.scale.conftest import half_labelled
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot
from undrift.graphs import Graph
from undrift.propagation.features import FeatureMap
from undrift.propagation.mixes import Propagated
from undrift.scale.blocks import block_calls, first_calls, rows_of
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.plan import BlockPlan, complete
from undrift.scale.sums import added, sum_calls
from undrift.typing import silent

MAPS = {
    "adaptive": FeatureMap(Propagated(evidence_threshold=40, homophily=0.9), fourier=24),
    "concat": FeatureMap(Propagated("concat", hops=2, homophily=0.5), fourier=0),
    "separate": FeatureMap(Propagated("separate", hops=2), fourier=8),
    "mean": FeatureMap(Propagated("mean", hops=3), sketch=5, fourier=0),
    "hop": FeatureMap(Propagated("hop", hops=1), sketch=5, fourier=7),
    "own": FeatureMap(Propagated("mean", hops=0), fourier=0),
}


def test_rows_and_sums_are_those_of_memory(imported: Callable[[Graph], GraphFolder]) -> None:
    graph = half_labelled(nodes=90, features=7)
    folder = imported(graph)
    assert len(folder.manifest.shards) > 3
    assert folder.manifest.blocks > 1
    plan = BlockPlan.of(folder, MAPS, range(6))
    for calls in (first_calls(plan), block_calls(plan), sum_calls(plan)):
        complete(plan, calls, Local(), "", silent)
    known = (graph.labelled() >= 0).nonzero().flatten()
    targets = one_hot(graph.labelled()[known], tuple(range(6)))
    for name, features in MAPS.items():
        rows = features.plain(graph, known).double().to_dense()
        found = rows_of(plan, name, slice(0, len(known)))
        assert found.shape == rows.shape
        assert float((found - rows).abs().max()) < 1e-12, name
        wanted = ClassSums.of(next(features.pieces(rows))[1], targets)
        for part in ("gram", "moment", "squares", "counts"):
            mine, theirs = getattr(added(plan, name), part), getattr(wanted, part)
            assert torch.allclose(mine, theirs, rtol=1e-9, atol=1e-9), (name, part)
