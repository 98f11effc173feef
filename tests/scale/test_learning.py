"""A graph folder gives the rows, sums and predictions that the same graph gives in memory."""

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch

from tests.scale.conftest import half_labelled
from undrift import Graph, InputError, Propagation, make_learner
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot
from undrift.propagation.features import FeatureMap
from undrift.propagation.mixes import Propagated
from undrift.propagation.plan import First
from undrift.scale.blocks import added, block_calls, first_calls, rows_of, sum_calls
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder, GraphManifest
from undrift.scale.learning import observe, predict
from undrift.scale.plan import BlockPlan, MemoryEstimate, complete
from undrift.storage.state import pack
from undrift.typing import silent

CLASSES = {f"c{i}": i for i in range(6)}


def heterophilous() -> Graph:
    """Every edge goes to the next class: informative, so there is a bank of both channels."""
    graph = half_labelled(nodes=120, features=6)
    ends = np.arange(120)
    steps = [(ends, (ends + shift) % 120) for shift in (1, 7, 13, 19, 25)]
    return Graph.from_arrays(
        graph.features, np.concatenate(steps, axis=1), graph.labels, undirected=True
    )


def same_sums(one: Propagation, other: Propagation) -> None:
    mine, theirs = (pack(learner.learned_.sums)[0] for learner in (one, other))
    torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["alike", "heterophilous", "sketched"])
def test_it_equals_memory(kind, imported, tmp_path) -> None:
    graph = heterophilous() if kind == "heterophilous" else half_labelled(nodes=90, features=6)
    settings = {"sketch": 4, "fourier": 9} if kind == "sketched" else {}
    folder = imported(graph)
    in_memory = Propagation(**settings).observe(graph)
    learner = Propagation(**settings)
    for plan in observe(learner, folder, CLASSES, Local()):
        plan.clear()
    assert learner.learned_.plan == in_memory.learned_.plan
    assert ("separate" in learner.learned_.plan.variants) == (kind == "heterophilous")
    same_sums(learner, in_memory)
    out, names = tmp_path / "predicted.parquet", [f"c{c}" for c in learner.classes_]
    assert predict(learner, folder, names, out, Local()) == graph.num_nodes
    rows = duckdb.execute(f"SELECT * FROM '{out}'").fetchall()
    chances = in_memory.predict_proba(graph)
    best = chances.topk(2, dim=1)
    assert [row[0] for row in rows] == [f"n{i}" for i in range(graph.num_nodes)]
    assert [row[1::2] for row in rows] == [(names[i], names[j]) for i, j in best.indices.tolist()]
    assert np.allclose([row[2] for row in rows], best.values[:, 0], atol=1e-7)
    predict(learner, folder, names, out, Local(), probabilities=True)
    every = duckdb.execute(f"SELECT COLUMNS('^p_') FROM '{out}'")
    assert [column[0] for column in every.description] == [f"p_{name}" for name in names]
    assert np.allclose(every.fetchall(), chances, atol=1e-7)
    assert not folder.left_over()


def test_batches_add_up_and_context_is_left_out(imported: Callable[[Graph], GraphFolder]) -> None:
    graph = half_labelled(nodes=90, features=6)
    folder = imported(graph)
    first = Propagation().observe(Graph(graph.features, graph.adjacency, _only(graph, 0, 1, 2)))
    second = first.clone().load(first.state())
    observe(first, folder, {"c4": 4, "c5": 5, "c2": 2}, Local())
    second.observe(Graph(graph.features, graph.adjacency, _only(graph, 2, 4, 5)))
    assert first.classes_ == second.classes_ == (0, 1, 2, 4, 5)
    same_sums(first, second)


def _only(graph: Graph, *classes: int) -> torch.Tensor:
    labels = graph.labelled()
    return torch.where(torch.isin(labels, torch.tensor(classes)), labels, -1)


def test_what_cannot_be_is_one_sentence(imported: Callable[[Graph], GraphFolder]) -> None:
    folder = imported(half_labelled(nodes=60, features=6))
    other = Propagation().observe(half_labelled(nodes=60, features=5))
    noisy = make_learner("propagation", epsilon=1.0, class_list=range(6))
    for learner, classes, sentence in (
        (make_learner("adr"), CLASSES, "ADR learns from graphs in memory only"),
        (Propagation(), {}, r"no node of .* has a label"),
        (noisy, CLASSES, "from sums without noise"),
        (other, CLASSES, "has 6 features per node, but 5 were learned"),
    ):
        with pytest.raises(InputError, match=sentence):
            observe(learner, folder, classes, Local())
    with pytest.raises(InputError, match="nothing was observed yet"):
        predict(Propagation(), folder, [], "x.parquet", Local())


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


REPORT = Path(__file__).parents[2] / "benchmarks" / "measured" / "ten-million.json"


@pytest.mark.parametrize("step", ["observe", "predict"])
def test_it_is_near_what_was_measured(step: str) -> None:
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    told, rows = report["import"], report["observe"]["rows"]
    sizes = {"nodes": report["nodes"], "edges": told["edges"], "memory": report["memory"]}
    sizes |= {"width": told["width"], "rows": 244_140, "features": 64, "content": ""}
    manifest = GraphManifest.model_construct(**sizes)
    first = First(rows, int(told["bytes"]), dense=True)
    fixed = Propagation().plan_by(64, torch.eye(20, dtype=torch.float64) * 700 + 15, first)
    observed = step == "observe"
    folder = object.__new__(GraphFolder)
    folder.manifest, folder.path = manifest, Path("nowhere")
    maps = {bank: fixed.feature_map(bank) for bank in fixed.variants[: None if observed else 1]}
    plan = BlockPlan.of(folder, maps, range(20) if observed else None)
    vars(plan).update(folder=folder, nodes=np.arange(rows) if observed else None)
    estimate = MemoryEstimate.of(plan, 1)
    measured = sum(phase["busy"] for phase in report[step]["phases"].values())
    assert 0.7 < estimate.seconds / measured < 1.5
    assert 0.7 < estimate.memory / report[step]["rss"] < 1.5
    shared = MemoryEstimate.of(plan, 4)
    assert estimate.seconds / 4 < shared.seconds < estimate.seconds
