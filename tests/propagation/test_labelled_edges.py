"""Edges between labelled nodes are counted by class."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from undrift.graphs import Graph
from undrift.propagation.sums import edges_between
from undrift.streams.task import Task


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_are_counted_one_by_one(count: int, weighted: bool) -> None:
    rng = np.random.default_rng(count)
    ends = torch.from_numpy(rng.integers(0, 90, (2, 400)))
    labels = torch.from_numpy(np.append(np.arange(count), rng.integers(0, count, 90 - count)))
    labels *= 3  # ids with gaps
    graph = Graph.from_arrays(torch.ones(90, 2), ends, labels)
    if weighted:
        heavy = graph.adjacency.with_values(graph.adjacency.values * 2.5)
        graph = Graph(graph.features, heavy, graph.labels)
    train = torch.from_numpy(rng.random(90) < 0.6)
    train[:count] = True
    classes = tuple(rng.permutation(3 * np.arange(count)).tolist())
    found = edges_between(Task(graph, train, ~train, ~train & False, classes), classes)
    slow = torch.zeros(count, count, dtype=torch.float64)
    for receiver, sender in graph.adjacency.to_dense().nonzero().tolist():
        if train[receiver] and train[sender]:
            place = classes.index(int(labels[receiver])), classes.index(int(labels[sender]))
            slow[place] += 1
    assert torch.equal(found, slow)
    assert float(slow.sum()) > 50
