"""Trust in neighbours follows what labelled edges say, and says 1 where they say nothing."""

from __future__ import annotations

import pytest
import torch

from undrift.datasets.synthetic import generate
from undrift.graphs import Graph
from undrift.learners.parts.neighbours import (
    TELLING_FROM,
    pattern_of_neighbours,
    trust_in_neighbours,
)
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.patterned import patterned_graph
from undrift.testing.reference_propagation import pattern_by_counting


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


# neighbours that differ ---------------------------------------------------------------------


def patterned_task(follows: list[int | None]) -> Task:
    stream = TaskStream.from_graph(patterned_graph(follows), base=len(follows), increment=1)
    return stream.task(0)


def test_the_pattern_is_chi_squared_by_counting() -> None:
    task = patterned_task([1, 2, 3, 0])
    labels, train = task.graph.labels, task.train
    assert labels is not None
    adjacency = task.graph.adjacency.to_dense()
    ends = [
        (int(labels[i]), int(labels[j]))
        for i, j in adjacency.triu().nonzero().tolist()
        if train[i] and train[j]
    ]
    assert pattern_of_neighbours(task) == pytest.approx(pattern_by_counting(ends), abs=1e-12)


@pytest.mark.parametrize("follows", [[1, 2, 3, 4, 5, 6, 7, 0], [1, 0, 3, 2], [0, 1, 2, 3]], ids=str)
def test_classes_that_link_to_one_class_have_a_pattern(follows: list[int | None]) -> None:
    assert pattern_of_neighbours(patterned_task(follows)) >= TELLING_FROM


def test_random_links_have_none() -> None:
    for classes in (3, 4, 8):
        assert pattern_of_neighbours(patterned_task([None] * classes)) < 0.03
    assert pattern_of_neighbours(base_task(0.0)) < 0.5 * TELLING_FROM


def test_two_classes_show_no_pattern_unless_it_was_seen_before() -> None:
    task = patterned_task([1, 0])
    assert pattern_of_neighbours(task) == 0.0
    assert pattern_of_neighbours(task, least_classes=2) >= TELLING_FROM
    assert pattern_of_neighbours(small_task([[0], [1]], [0, 0]), least_classes=1) == 0.0
    assert pattern_of_neighbours(small_task([[], []], [0, 1]), least_classes=1) == 0.0


def test_a_few_edges_are_no_pattern() -> None:
    ring = small_task([[0, 1, 2], [1, 2, 0]], [0, 1, 2])
    assert pattern_of_neighbours(ring) < TELLING_FROM
