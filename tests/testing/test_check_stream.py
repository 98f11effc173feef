from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from undrift.graphs import Graph
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream
from undrift.testing.check_stream import check_stream
from undrift.testing.graphs import tiny_graph, tiny_stream

MASKS = ("train", "val", "test")


@pytest.fixture
def stream():
    return tiny_stream()


def break_task(monkeypatch, t, **parts):
    """Make `stream.task(t)` return a task with some parts replaced by functions of it."""
    original = TaskStream.task

    def task(self, k):
        made = original(self, k)
        if k != t:
            return made
        new = {name: part(self, made) for name, part in parts.items()}
        return replace(made, **new)

    monkeypatch.setattr(TaskStream, "task", task)


@pytest.mark.parametrize("order", ["label", "random", [5, 3, 1, 0, 2, 4]])
@pytest.mark.parametrize("sparse", [False, True])
def test_sound_streams_pass(order, sparse):
    graph = tiny_graph(sparse=sparse)
    check_stream(TaskStream.from_graph(graph, base=3, increment=2, order=order, seed=5))


def test_a_stream_with_unlabelled_nodes_and_one_way_edges_passes():
    graph = Graph.from_arrays(
        torch.eye(30), [list(range(29)), list(range(1, 30))], [-1] * 10 + [0] * 10 + [1] * 10
    )
    check_stream(TaskStream.from_graph(graph, base=1, increment=1))


def test_a_class_in_no_task_is_found(stream):
    with pytest.raises(AssertionError, match="class 4 of the graph is in no task"):
        check_stream(replace(stream, classes=((0, 1), (2, 3), (5,))))


def test_a_class_without_nodes_is_found(stream):
    with pytest.raises(AssertionError, match="class 9 of the stream has no node"):
        check_stream(replace(stream, classes=(*stream.classes, (9,))))


def test_a_class_twice_is_found(stream):
    object.__setattr__(stream, "classes", ((0, 1), (1, 2, 3), (4, 5)))  # past its own check
    with pytest.raises(AssertionError, match="class 1 arrives in more than one task"):
        check_stream(stream)


def test_overlapping_masks_are_found(stream):
    node = int(stream.train.nonzero()[0])
    test = stream.test.clone()
    test[node] = True
    with pytest.raises(AssertionError, match=f"node {node} is in more than one of train, val"):
        check_stream(replace(stream, test=test))


def test_a_node_of_no_task_in_a_split_is_found(stream):
    labels = stream.graph.labels.clone()
    node = int(stream.train.nonzero()[0])
    labels[node] = -1
    graph = Graph(stream.graph.features, stream.graph.adjacency, labels)
    with pytest.raises(AssertionError, match=f"node {node} belongs to no task but is in a split"):
        check_stream(replace(stream, graph=graph))


@pytest.mark.parametrize("split", MASKS)
def test_a_class_missing_in_a_split_is_found(stream, split):
    mask = getattr(stream, split) & (stream.graph.labels != 3)
    with pytest.raises(AssertionError, match=f"class 3 of task 1 has no {split} node"):
        check_stream(replace(stream, **{split: mask}))


def relabelled(labels):
    return lambda stream, task: Graph(
        task.graph.features, task.graph.adjacency, labels(stream, task)
    )


def test_a_visible_test_label_is_found(stream, monkeypatch):
    truth = relabelled(lambda s, task: s.graph.labels[s.nodes([1])])
    break_task(monkeypatch, 1, graph=truth)
    with pytest.raises(AssertionError, match="task 1 shows the labels of 4 test nodes"):
        check_stream(stream)


def test_a_wrong_label_is_found(stream, monkeypatch):
    def swapped(s, task):
        labels = task.graph.labels.clone()
        labels[labels >= 0] = 5 - labels[labels >= 0]  # task 1 has classes 2 and 3
        return labels

    break_task(monkeypatch, 1, graph=relabelled(swapped))
    with pytest.raises(AssertionError, match="task 1 shows a wrong label"):
        check_stream(stream)


def test_other_classes_are_found(stream, monkeypatch):
    break_task(monkeypatch, 2, classes=lambda s, task: (5, 4))
    with pytest.raises(AssertionError, match=r"task 2 says its classes are \(5, 4\), the stream"):
        check_stream(stream)


def test_a_changed_mask_is_found(stream, monkeypatch):
    break_task(monkeypatch, 0, val=lambda s, task: torch.zeros_like(task.val))
    with pytest.raises(AssertionError, match="the val mask of task 0 is not that of the stream"):
        check_stream(stream)


def with_adjacency(change):
    def graph(stream, task):
        matrix = change(task.graph.adjacency.to_scipy().copy().tolil())
        return Graph(task.graph.features, Csr.from_scipy(matrix.tocsr()), task.graph.labels)

    return graph


def test_an_edge_too_many_is_found(stream, monkeypatch):
    def add(matrix):
        missing = next((i, j) for i in range(20) for j in range(20) if i != j and not matrix[i, j])
        matrix[missing] = 1.0
        return matrix

    break_task(monkeypatch, 0, graph=with_adjacency(add))
    with pytest.raises(AssertionError, match="task 0 has 1 edges that are not between its own"):
        check_stream(stream)


def test_an_edge_too_few_is_found(stream, monkeypatch):
    def remove(matrix):
        row, col = matrix.nonzero()
        matrix[row[0], col[0]] = 0.0
        return matrix

    break_task(monkeypatch, 0, graph=with_adjacency(remove))
    with pytest.raises(AssertionError, match="task 0 lost 1 edges between its own nodes"):
        check_stream(stream)


def test_a_changed_weight_is_found(stream, monkeypatch):
    break_task(monkeypatch, 0, graph=with_adjacency(lambda matrix: matrix * 2))
    with pytest.raises(AssertionError, match="task 0 changed the weight of an edge"):
        check_stream(stream)


@pytest.mark.parametrize("sparse", [False, True])
def test_changed_features_are_found(monkeypatch, sparse):
    def doubled(s, task):
        features = task.graph.features
        if isinstance(features, Csr):
            features = Csr.from_scipy(features.to_scipy() * 2)
        else:
            features = features * 2
        return Graph(features, task.graph.adjacency, task.graph.labels)

    break_task(monkeypatch, 1, graph=doubled)
    with pytest.raises(AssertionError, match="the features of task 1 are not those of the graph"):
        check_stream(tiny_stream(sparse=sparse))


def test_a_missing_node_is_found(stream, monkeypatch):
    cut = {split: lambda s, task, split=split: getattr(task, split)[:-1] for split in MASKS}
    break_task(monkeypatch, 1, graph=lambda s, task: task.graph.subgraph(range(19)), **cut)
    with pytest.raises(AssertionError, match="task 1 has 19 nodes, but 20 nodes have its classes"):
        check_stream(stream)


def test_a_split_that_its_seed_does_not_give_is_found(stream):
    with pytest.raises(AssertionError, match="seed 1 does not give the same train nodes again"):
        check_stream(replace(stream, seed=1))


def test_given_masks_are_not_compared_with_a_drawn_split(stream):
    check_stream(replace(stream, seed=1, fractions=None))


def test_a_maker_that_ignores_its_seed_is_found(stream):
    calls = itertools.count()
    with pytest.raises(AssertionError, match="seed 0 does not give the same train nodes again"):
        check_stream(
            stream,
            lambda seed: TaskStream.from_graph(tiny_graph(), base=2, increment=2, seed=next(calls)),
        )


def test_a_maker_that_changes_the_classes_is_found(stream):
    with pytest.raises(AssertionError, match="seed 0 gives other classes per task"):
        check_stream(
            stream, lambda seed: TaskStream.from_graph(tiny_graph(), base=3, increment=2, seed=seed)
        )
