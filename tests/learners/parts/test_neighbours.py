"""Trust in neighbours follows what labelled edges say, and says 1 where they say nothing."""

from __future__ import annotations

import pytest
import torch

from undrift.datasets.synthetic import generate
from undrift.graphs import Graph
from undrift.learners.parts.neighbours import trust_in_neighbours
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task


def base_task(homophily: float) -> Task:
    graph = generate(nodes=600, words=50, classes=6, homophily=homophily, size_ratio=2.0)
    return TaskStream.from_graph(graph, base=4, increment=2).task(0)


@pytest.mark.parametrize(("homophily", "least", "most"), [(0.0, 0, 0), (0.9, 1, 1), (0.6, 1, 1)])
def test_trust_of_generated_graphs(homophily: float, least: float, most: float) -> None:
    assert least <= trust_in_neighbours(base_task(homophily)) <= most


def test_random_edges_are_hardly_trusted() -> None:
    assert trust_in_neighbours(base_task(1 / 6)) < 0.7


def small_task(edges: list[list[int]], labels: list[int]) -> Task:
    n = len(labels)
    train = torch.ones(n, dtype=torch.bool)
    graph = Graph.from_arrays(torch.eye(n), edges, labels, undirected=True)
    return Task(graph, train, ~train, ~train, tuple(sorted(set(labels))))


def test_nothing_to_go_by_is_full_trust() -> None:
    assert trust_in_neighbours(small_task([[0], [1]], [0, 0])) == 1.0
    assert trust_in_neighbours(small_task([[], []], [0, 1])) == 1.0


def test_a_few_edges_do_not_destroy_trust() -> None:
    assert trust_in_neighbours(small_task([[0, 1], [2, 3]], [0, 0, 1, 1])) == 1.0


def test_edges_of_other_nodes_are_not_looked_at() -> None:
    task = base_task(0.9)
    labels = task.graph.labels
    assert labels is not None
    hidden = torch.where(task.train, labels, 3 - labels.clamp(min=0))
    other = Graph(task.graph.features, task.graph.adjacency, hidden)
    masks = (task.train, torch.zeros_like(task.val), task.test)
    assert trust_in_neighbours(Task(other, *masks, task.classes)) == trust_in_neighbours(task)
