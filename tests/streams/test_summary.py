"""What `TaskStream.describe` counts, against a slow count of the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.graphs import Graph
from undrift.streams import summary
from undrift.streams.stream import TaskStream
from undrift.streams.summary import summarise


def random_stream(seed, nodes=60, directed=True):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(60) % 6, rng.integers(-1, 6, nodes - 60)])
    labels[rng.random(nodes) < 0.05] = -1
    edges = rng.integers(0, nodes, (2, rng.integers(0, 400)))
    graph = Graph.from_arrays(np.eye(nodes), edges, labels, undirected=not directed)
    return TaskStream.from_graph(graph, base=2, increment=3, seed=seed)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), directed=st.booleans(), piece=st.sampled_from([1, 7, 10**6]))
def test_edges_are_counted_as_one_by_one(seed, directed, piece):
    stream = random_stream(seed, directed=directed)
    task = stream.task_of.tolist()
    matrix = stream.graph.adjacency.to_scipy().tocoo()
    pairs = list(zip(matrix.row.tolist(), matrix.col.tolist(), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "_EDGES_AT_ONCE", piece)
        rows = summarise(stream)
    for t, row in enumerate(rows):
        ending = [source for target, source in pairs if task[target] == t]
        assert row.edges == sum(task[source] == t for source in ending)
        assert row.dropped == len(ending) - row.edges
        assert row.nodes == task.count(t)
        masks = (stream.train, stream.val, stream.test)
        inside = stream.task_of == t
        assert (row.train, row.val, row.test) == tuple(int((m & inside).sum()) for m in masks)


def test_a_class_without_a_node_is_infinitely_rare():
    graph = Graph.from_arrays(np.eye(6), [[0], [1]], [0, 0, 0, 2, 2, 2])
    masks = [torch.tensor([i % 3 == k for i in range(6)]) for k in range(3)]
    rows = TaskStream(graph, ((0, 1), (2,)), *masks).describe()
    assert [row.imbalance for row in rows] == [float("inf"), 1.0]
