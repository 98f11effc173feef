"""A validation: accuracy per class where neighbours are less pure than in a task graph."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from undrift.graphs import Graph
from undrift.learners.parts.propagation.bank import PerturbedValidation, add_random_edges
from undrift.learners.parts.propagation.feature_map import FeatureMap
from undrift.learners.parts.propagation.propagated import Propagated
from undrift.testing.graphs import noisy_stream, tiny_stream


def test_accuracies_of_the_classes_are_summed() -> None:
    task = tiny_stream().task(1)
    validation = PerturbedValidation.of(task, seed=0)
    draw = torch.Generator().manual_seed(0)
    scores = [torch.rand(task.graph.num_nodes, 2, generator=draw) for _ in validation.graphs]
    wanted = 0.0
    assert task.graph.labels is not None
    for table in scores:
        for c in task.classes:
            members = [i for i in range(task.graph.num_nodes) if task.val[i]]
            members = [i for i in members if int(task.graph.labels[i]) == c]
            wanted += sum(task.classes[int(table[i].argmax())] == c for i in members) / len(members)
    assert validation.summed_accuracy(table[validation.nodes] for table in scores) == pytest.approx(
        wanted / 3
    )


def test_a_task_without_validation_nodes_has_no_accuracy() -> None:
    task = tiny_stream().task(0)
    blind = replace(task, val=torch.zeros_like(task.val))
    validation = PerturbedValidation.of(blind, seed=0)
    assert validation.graphs == (task.graph,)
    assert validation.summed_accuracy([torch.zeros(0, 2)]) == 0.0


def test_random_edges_are_added_to_a_graphs_own() -> None:
    graph = noisy_stream(1.0).graph
    more = add_random_edges(graph, 0.5, seed=0)
    own, now = graph.adjacency.to_scipy(), more.adjacency.to_scipy()
    assert (now - now.T).nnz == 0
    assert (own > now).nnz == 0  # nothing is lost
    assert now.sum() == pytest.approx(1.5 * own.sum(), rel=0.01)  # less a self-loop or two
    assert torch.equal(more.adjacency.values, add_random_edges(graph, 0.5, seed=0).adjacency.values)
    assert torch.equal(more.features, graph.features)  # type: ignore[arg-type]


def test_random_edges_join_nodes_of_other_classes() -> None:
    graph = noisy_stream(1.0).graph
    assert graph.labels is not None
    labels = graph.labels.numpy()
    shares = []
    for share in (0.25, 0.5):
        edges = add_random_edges(graph, share, seed=0).adjacency.to_scipy().tocoo()
        shares.append(float((labels[edges.row] != labels[edges.col]).mean()))
    assert 0.1 < shares[0] < shares[1] < 0.35


def test_a_graph_without_edges_stays_as_it_is() -> None:
    graph = Graph.from_arrays(torch.eye(3), edges=[[], []], labels=[0, 1, 1])
    assert add_random_edges(graph, 0.5, seed=0).num_edges == 0


def test_rows_are_those_of_the_nodes_in_every_graph() -> None:
    task = tiny_stream().task(0)
    validation = PerturbedValidation.of(task, seed=0)
    features = FeatureMap(Propagated())
    for graph, part in zip(validation.graphs, validation.rows(features), strict=True):
        assert torch.equal(part.to_dense(), features.plain(graph, validation.nodes).to_dense())
