"""Observing and predicting a graph folder gives what the same graph gives in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch

from tests.scale.conftest import half_labelled
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.registry import make_learner
from undrift.propagation.learner import Propagation
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.learning import observe, predict
from undrift.storage.state import pack

CLASSES = {f"c{i}": i for i in range(6)}


def heterophilous() -> Graph:
    """Every edge goes to the next class: informative, so there is a bank of both channels."""
    graph = half_labelled(nodes=120, features=6)
    ends = np.arange(120)
    steps = [(ends, (ends + shift) % 120) for shift in (1, 7, 13, 19, 25)]
    return Graph.from_arrays(
        graph.features, np.concatenate(steps, axis=1), graph.labels, undirected=True
    )


@pytest.mark.parametrize("kind", ["alike", "heterophilous", "sketched"])
def test_it_equals_memory(
    kind: str, imported: Callable[[Graph], GraphFolder], tmp_path: Path
) -> None:
    graph = heterophilous() if kind == "heterophilous" else half_labelled(nodes=90, features=6)
    settings = {"sketch": 4, "fourier": 9} if kind == "sketched" else {}
    folder = imported(graph)
    in_memory = Propagation(**settings).observe(graph)
    learner = Propagation(**settings)
    for plan in observe(learner, folder, CLASSES, Local()):
        plan.clear()
    assert learner.learned_.plan == in_memory.learned_.plan
    assert ("separate" in learner.learned_.plan.variants) == (kind == "heterophilous")
    mine, theirs = pack(learner.learned_.sums)[0], pack(in_memory.learned_.sums)[0]
    assert mine.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert torch.allclose(mine[name], tensor, rtol=1e-9, atol=1e-9), name
    out = tmp_path / "predicted.parquet"
    assert (
        predict(learner, folder, [f"c{c}" for c in learner.classes_], out, Local())
        == graph.num_nodes
    )
    rows = duckdb.execute(f"SELECT * FROM '{out}'").fetchall()
    chances = in_memory.predict_proba(graph)
    best = chances.topk(2, dim=1)
    assert [row[0] for row in rows] == [f"n{i}" for i in range(graph.num_nodes)]
    assert [row[1] for row in rows] == [f"c{in_memory.classes_[i]}" for i in best.indices[:, 0]]
    assert [row[3] for row in rows] == [f"c{in_memory.classes_[i]}" for i in best.indices[:, 1]]
    assert np.allclose([row[2] for row in rows], best.values[:, 0], atol=1e-7)
    names = [f"c{c}" for c in learner.classes_]
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
    for name, tensor in pack(second.learned_.sums)[0].items():
        mine = pack(first.learned_.sums)[0][name]
        assert torch.allclose(mine, tensor, rtol=1e-9, atol=1e-9), name


def _only(graph: Graph, *classes: int) -> torch.Tensor:
    labels = graph.labelled()
    return torch.where(torch.isin(labels, torch.tensor(classes)), labels, -1)


def test_what_cannot_be_is_one_sentence(imported: Callable[[Graph], GraphFolder]) -> None:
    folder = imported(half_labelled(nodes=60, features=6))
    with pytest.raises(InputError, match="ADR learns from graphs in memory only"):
        observe(make_learner("adr"), folder, CLASSES, Local())
    with pytest.raises(InputError, match=r"no node of .* has a label"):
        observe(Propagation(), folder, {}, Local())
    private = make_learner("propagation", epsilon=1.0, class_list=range(6))
    with pytest.raises(InputError, match="learned from sums without noise"):
        observe(private, folder, CLASSES, Local())
    with pytest.raises(InputError, match="nothing was observed yet"):
        predict(Propagation(), folder, [], "x.parquet", Local())
    other = Propagation().observe(half_labelled(nodes=60, features=5))
    with pytest.raises(InputError, match="has 6 features per node, but 5 were learned"):
        observe(other, folder, CLASSES, Local())
