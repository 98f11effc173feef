"""A probe: accuracy per class where neighbours are less pure than in a task graph."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from undrift.graphs import Graph
from undrift.learners.parts.propagation.bank import PerturbedValidation, impure
from undrift.learners.parts.propagation.feature_map import FeatureMap, dense
from undrift.learners.parts.propagation.propagated import Propagated
from undrift.testing.graphs import noisy_stream, tiny_stream


def test_hits_are_the_accuracy_of_each_class_added_up() -> None:
    task = tiny_stream().task(1)
    probe = PerturbedValidation.of(task, task.graph, (0, 1, 2, 3), seed=0)
    draw = torch.Generator().manual_seed(0)
    scores = [torch.rand(task.graph.num_nodes, 4, generator=draw) for _ in probe.graphs]
    wanted = 0.0
    assert task.graph.labels is not None
    for table in scores:
        for c in task.classes:
            members = [i for i in range(task.graph.num_nodes) if task.val[i]]
            members = [i for i in members if int(task.graph.labels[i]) == c]
            wanted += sum(int(table[i].argmax()) == c for i in members) / len(members)
    assert probe.hits(table[probe.nodes] for table in scores) == pytest.approx(wanted / 3)


def test_a_task_without_validation_nodes_has_nothing_to_probe() -> None:
    task = tiny_stream().task(0)
    blind = replace(task, val=torch.zeros_like(task.val))
    probe = PerturbedValidation.of(blind, task.graph, task.classes, seed=0)
    assert probe.graphs == (task.graph,)
    assert probe.hits([torch.zeros(0, 2)]) == 0.0


def test_impure_graphs_have_random_edges_beside_their_own() -> None:
    graph = noisy_stream(1.0).graph
    more = impure(graph, 0.5, seed=0)
    own, now = graph.adjacency.to_scipy(), more.adjacency.to_scipy()
    assert (now - now.T).nnz == 0
    assert (own > now).nnz == 0  # nothing is lost
    assert now.sum() == pytest.approx(1.5 * own.sum(), rel=0.01)  # less a self-loop or two
    assert torch.equal(more.adjacency.values, impure(graph, 0.5, seed=0).adjacency.values)
    assert torch.equal(more.features, graph.features)  # type: ignore[arg-type]


def test_impure_means_more_neighbours_of_other_classes() -> None:
    graph = noisy_stream(1.0).graph
    assert graph.labels is not None
    labels = graph.labels.numpy()
    shares = []
    for share in (0.25, 0.5):
        edges = impure(graph, share, seed=0).adjacency.to_scipy().tocoo()
        shares.append(float((labels[edges.row] != labels[edges.col]).mean()))
    assert 0.1 < shares[0] < shares[1] < 0.35


def test_a_graph_without_edges_stays_as_it_is() -> None:
    graph = Graph.from_arrays(torch.eye(3), edges=[[], []], labels=[0, 1, 1])
    assert impure(graph, 0.5, seed=0).num_edges == 0


def test_rows_are_made_once_for_every_bank() -> None:
    task = tiny_stream().task(0)
    probe = PerturbedValidation.of(task, task.graph, task.classes, seed=0)
    fixed, other = FeatureMap(Propagated()), FeatureMap(Propagated("concat", hops=2))
    rows = probe.rows(fixed)
    assert probe.rows(FeatureMap(Propagated())) is rows
    assert probe.rows(other) is not rows
    for graph, part in zip(probe.graphs, rows, strict=True):
        assert torch.equal(dense(part), dense(fixed.plain(graph, probe.nodes)))
