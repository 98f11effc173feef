"""Each promise of a stream can be broken, and `check_stream` says which was."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.harness.check_stream import check_stream
from undrift import Graph, TaskStream
from undrift.sparse import Csr
from undrift.testing import tiny_stream

MASKS = ("train", "val", "test")


def a_class_twice(stream: TaskStream) -> TaskStream:
    object.__setattr__(stream, "classes", ((0, 1), (1, 2, 3), (4, 5)))  # past its own check
    return stream


def overlapping(stream: TaskStream) -> TaskStream:
    test = stream.test.clone()
    test[int(stream.train.nonzero()[0])] = True
    return replace(stream, test=test)


def astray(stream: TaskStream) -> TaskStream:
    labels = stream.graph.labels.clone()
    labels[int(stream.train.nonzero()[0])] = -1
    graph = Graph(stream.graph.features, stream.graph.adjacency, labels)
    return replace(stream, graph=graph)


def lacking(split: str, stream: TaskStream) -> TaskStream:
    mask = getattr(stream, split) & (stream.graph.labels != 3)
    return replace(stream, **{split: mask})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: replace(s, classes=((0, 1), (2, 3), (5,))), "class 4 .* is in no task"),
        (lambda s: replace(s, classes=(*s.classes, (9,))), "class 9 .* has no node"),
        (a_class_twice, "class 1 arrives in more than one task"),
        (overlapping, r"node \d+ is in more than one of train, val"),
        (astray, r"node \d+ belongs to no task but is in a split"),
        (lambda s: lacking("train", s), "class 3 of task 1 has no train node"),
        (lambda s: lacking("val", s), "class 3 of task 1 has no val node"),
        (lambda s: lacking("test", s), "class 3 of task 1 has no test node"),
        (lambda s: replace(s, seed=1), "seed 1 does not give the same train nodes"),
    ],
)
def test_a_stream_that_breaks_its_word_is_found(change, sentence) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_stream(change(tiny_stream()))


def relabelled(labels: Callable[..., Any]) -> Callable[..., Graph]:
    return lambda s, task: Graph(task.graph.features, task.graph.adjacency, labels(s, task))


def swapped(stream: TaskStream, task: Any) -> Any:
    labels = task.graph.labels.clone()
    labels[labels >= 0] = 5 - labels[labels >= 0]  # task 1 has classes 2 and 3
    return labels


def rewired(change: Callable[[Any], Any]) -> Callable[..., Graph]:
    def graph(stream: TaskStream, task: Any) -> Graph:
        matrix = change(task.graph.adjacency.to_scipy().copy().tolil())
        return Graph(task.graph.features, Csr.from_scipy(matrix.tocsr()), task.graph.labels)

    return graph


def one_more(matrix: Any) -> Any:
    missing = next((i, j) for i in range(20) for j in range(20) if i != j and not matrix[i, j])
    matrix[missing] = 1.0
    return matrix


def one_less(matrix: Any) -> Any:
    row, col = matrix.nonzero()
    matrix[row[0], col[0]] = 0.0
    return matrix


def doubled(stream: TaskStream, task: Any) -> Graph:
    features = task.graph.features
    sparse = isinstance(features, Csr)
    twice = Csr.from_scipy(features.to_scipy() * 2) if sparse else features * 2
    return Graph(twice, task.graph.adjacency, task.graph.labels)


TRUTH = relabelled(lambda s, task: s.graph.labels[s.nodes([1])])
CUT = {split: lambda s, task, split=split: getattr(task, split)[:-1] for split in MASKS}
BROKEN: dict[str, dict[str, Callable[..., Any]]] = {
    "shows the labels of 4 test nodes": {"graph": TRUTH},
    "shows a wrong label": {"graph": relabelled(swapped)},
    r"says its classes are \(3, 2\), the stream": {"classes": lambda s, task: (3, 2)},
    "has 1 edges that are not between its own": {"graph": rewired(one_more)},
    "lost 1 edges between its own nodes": {"graph": rewired(one_less)},
    "changed the weight of an edge": {"graph": rewired(lambda matrix: matrix * 2)},
    "has 19 nodes, but 20 nodes have its classes": {
        "graph": lambda s, task: task.graph.subgraph(range(19)),
        **CUT,
    },
    "the val mask of": {"val": lambda s, task: torch.zeros_like(task.val)},
    "the features of": {"graph": doubled},
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("sentence", BROKEN)
def test_a_task_that_is_not_of_the_graph_is_found(sentence: str, sparse: bool, monkeypatch) -> None:
    original = TaskStream.task

    def task(self: TaskStream, t: int) -> Any:
        made = original(self, t)
        new = {name: part(self, made) for name, part in BROKEN[sentence].items()}
        return replace(made, **new) if t == 1 else made

    monkeypatch.setattr(TaskStream, "task", task)
    with pytest.raises(AssertionError, match=sentence) as caught:
        check_stream(tiny_stream(sparse=sparse))
    assert "task 1" in str(caught.value)
