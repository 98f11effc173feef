from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph


def path_graph(labels):
    """Nodes in a row, each joined to the next."""
    n = len(labels)
    edges = [list(range(n - 1)), list(range(1, n))]
    return Graph.from_arrays(np.eye(n), edges, labels, undirected=True)


@pytest.fixture
def stream():
    return TaskStream.from_graph(tiny_graph(), base=2, increment=3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(base=st.integers(1, 6), increment=st.integers(1, 6), seed=st.integers(0, 1000))
def test_every_class_arrives_exactly_once(base, increment, seed):
    graph = tiny_graph()
    stream = TaskStream.from_graph(graph, base=base, increment=increment, order="random", seed=seed)
    sizes = [len(classes) for classes in stream.classes]
    assert sorted(c for classes in stream.classes for c in classes) == list(range(6))
    assert sizes[0] == base
    assert all(size == increment for size in sizes[1:-1])
    assert all(0 < size <= increment for size in sizes[1:])
    everything = torch.cat([stream.nodes([t]) for t in range(len(stream))])
    assert everything.sort().values.tolist() == list(range(graph.num_nodes))
    again = TaskStream.from_graph(graph, base=base, increment=increment, order="random", seed=seed)
    assert again.classes == stream.classes


def test_a_given_order_is_kept_and_changes_no_split():
    graph = tiny_graph()
    plain = TaskStream.from_graph(graph, base=2, increment=2, seed=3)
    other = TaskStream.from_graph(graph, base=3, increment=1, seed=3, order=[5, 0, 4, 1, 3, 2])
    assert other.classes == ((5, 0, 4), (1,), (3,), (2,))
    assert torch.equal(plain.train, other.train)
    assert torch.equal(plain.val, other.val)
    assert torch.equal(plain.test, other.test)


def test_nodes_without_label_belong_to_no_task():
    labels = tiny_graph().labels.clone()
    labels[:12] = -1
    graph = tiny_graph()
    stream = TaskStream.from_graph(
        Graph(graph.features, graph.adjacency, labels), base=2, increment=2
    )
    assert (stream.task_of[:12] == -1).all()
    assert not (stream.train | stream.val | stream.test)[:12].any()
    assert stream.nodes(range(3)).tolist() == list(range(12, 60))
    assert sum(task.graph.num_nodes for task in stream) == 48


def test_class_ids_may_have_gaps_and_be_large():
    labels = tiny_graph().labels * 10**12
    graph = Graph(tiny_graph().features, tiny_graph().adjacency, labels)
    stream = TaskStream.from_graph(graph, base=2, increment=4)
    assert stream.classes[0] == (0, 10**12)
    assert stream.task_of.tolist() == [0, 0, 1, 1, 1, 1] * 10


@pytest.mark.parametrize("sparse", [False, True])
def test_a_task_is_the_induced_subgraph_in_ascending_order(sparse):
    stream = TaskStream.from_graph(tiny_graph(sparse=sparse), base=2, increment=2)
    nodes = stream.nodes([1])
    task = stream.task(1)
    assert isinstance(task, Task)
    assert nodes.tolist() == [i for i in range(60) if i % 6 in (2, 3)]
    full = stream.graph.adjacency.to_dense()
    assert torch.equal(task.graph.adjacency.to_dense(), full[nodes][:, nodes])
    features = [
        f.to_dense() if isinstance(f, Csr) else f
        for f in (task.graph.features, stream.graph.features)
    ]
    assert torch.equal(features[0], features[1][nodes])
    assert torch.equal(task.train, stream.train[nodes])
    assert torch.equal(task.val, stream.val[nodes])
    assert torch.equal(task.test, stream.test[nodes])
    assert task.classes == (2, 3)


def test_a_task_hides_test_labels_and_shows_the_others(stream):
    for t, task in enumerate(stream):
        truth = stream.graph.labels[stream.nodes([t])]
        assert (task.graph.labels[task.test] == -1).all()
        assert torch.equal(task.graph.labels[~task.test], truth[~task.test])
        assert task.test.any()
    assert (stream.graph.labels >= 0).all()  # hiding did not touch the full graph


def test_masks_of_ones_own_make_a_stream():
    graph = path_graph([0] * 3 + [1] * 3)
    masks = [torch.tensor([i % 3 == k for i in range(6)]) for k in range(3)]
    stream = TaskStream(graph, ((1,), (0,)), *masks)
    assert stream.task_of.tolist() == [1, 1, 1, 0, 0, 0]
    assert stream.task(0).graph.labels.tolist() == [1, 1, -1]
    assert stream.fractions is None


# errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [-1, 3, 99])
def test_a_task_out_of_range_is_named(stream, t):
    wanted = f"no task {t} in stream 'custom'; its 3 tasks are numbered 0 to 2"
    with pytest.raises(InputError, match=wanted):
        stream.task(t)
    with pytest.raises(InputError, match=wanted):
        stream.nodes([0, t])


@pytest.mark.parametrize("labels", [None, [-1] * 6])
def test_a_graph_without_labels_is_refused(labels):
    graph = Graph.from_arrays(np.eye(6), [[0], [1]], labels)
    with pytest.raises(InputError, match="needs a graph with class labels"):
        TaskStream.from_graph(graph, base=1, increment=1)


@pytest.mark.parametrize("classes", [(), ((0,), ()), ((0,), (0, 1)), ((0, -1),)])
def test_bad_groups_of_classes_are_refused(classes):
    mask = torch.zeros(60, dtype=torch.bool)
    with pytest.raises(InputError, match="none empty and no class twice"):
        TaskStream(tiny_graph(), classes, mask, mask, mask)


@pytest.mark.parametrize(
    "bad", [torch.zeros(59, dtype=torch.bool), torch.zeros(60, dtype=torch.int64)]
)
def test_a_bad_mask_is_named(bad):
    mask = torch.zeros(60, dtype=torch.bool)
    with pytest.raises(InputError, match="val mask of a stream must be 60 booleans"):
        TaskStream(tiny_graph(), ((0,),), mask, bad, mask)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"base": 0}, "base must be between 1 and the 6 classes.*not 0"),
        ({"base": 7}, "base must be between 1 and the 6 classes.*not 7"),
        ({"base": "2"}, "base must be a whole number, not '2'"),
        ({"increment": 0}, "increment must be 1 class or more.*not 0"),
        ({"increment": 1.5}, "increment must be a whole number, not 1.5"),
        ({"order": [0, 1, 2, 3, 4]}, r"missing \[5\], unknown \[\], repeated \[\]"),
        ({"order": [0, 1, 2, 3, 4, 7]}, r"missing \[5\], unknown \[7\]"),
        ({"order": [0, 1, 2, 3, 4, 5, 5]}, r"repeated \[5\]\); give a permutation of \[0, 1"),
        ({"order": "labels"}, r"unknown order 'labels' .*choose one of: label, random"),
        ({"order": [0.5, 1]}, r"order must be one of label, random or whole numbers, not \[0\.5"),
        ({"order": "random", "seed": -1}, "seed of a split must be 0 or more"),
    ],
)
def test_what_makes_no_stream_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        TaskStream.from_graph(tiny_graph(), **{"base": 2, "increment": 2, **wrong})
