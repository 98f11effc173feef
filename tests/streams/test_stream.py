from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift import Graph, InputError, TaskStream
from undrift.streams import stream as module
from undrift.testing import tiny_graph


def path_graph(labels):
    """Nodes in a row, each joined to the next."""
    n = len(labels)
    edges = [list(range(n - 1)), list(range(1, n))]
    return Graph.from_arrays(np.eye(n), edges, labels, undirected=True)


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


def test_class_ids_may_have_gaps_and_be_large():
    labels = tiny_graph().labels * 10**12
    graph = Graph(tiny_graph().features, tiny_graph().adjacency, labels)
    stream = TaskStream.from_graph(graph, base=2, increment=4)
    assert stream.classes[0] == (0, 10**12)
    assert stream.task_of.tolist() == [0, 0, 1, 1, 1, 1] * 10


def test_masks_of_ones_own_make_a_stream():
    graph = path_graph([0] * 3 + [1] * 3)
    masks = [torch.tensor([i % 3 == k for i in range(6)]) for k in range(3)]
    stream = TaskStream(graph, ((1,), (0,)), *masks)
    assert stream.task_of.tolist() == [1, 1, 1, 0, 0, 0]
    assert stream.task(0).graph.labels.tolist() == [1, 1, -1]
    assert stream.fractions is None


NONE = torch.zeros(60, dtype=torch.bool)


def built(classes=((0,),), val=NONE):
    return TaskStream(tiny_graph(), classes, NONE, val, NONE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *((partial(built, classes), "none empty and no class twice")
          for classes in ((), ((0,), ()), ((0,), (0, 1)), ((0, -1),))),
        *((partial(built, val=val), "val mask of a stream must be 60 booleans")
          for val in (NONE[1:], NONE.long())),
        *((partial(built().nodes, [0, t]), f"no task {t} in stream 'custom'; its 1 tasks are num")
          for t in (-1, 1, 99)),
        *((partial(TaskStream.from_graph, Graph.from_arrays(np.eye(6), [], labels), base=1,
          increment=1), "needs a graph with class labels") for labels in (None, [-1] * 6)),
    ],
)  # fmt: skip
def test_parts_that_make_no_stream_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"base": None}, "the 6 classes of this graph arrive.*base=3, increment=3"),
        ({"base": 0}, "base must be between 1 and the 6 classes.*not 0"),
        ({"base": "2"}, "base must be a whole number, not '2'"),
        ({"increment": 0}, "increment must be 1 class or more.*not 0"),
        ({"order": [0, 1, 2, 3, 4, 7]}, "missing: 5, unknown: 7"),
        ({"order": [0, 1, 2, 3, 4, 5, 5]}, r"once \(twice: 5\)"),
        ({"order": "labels"}, r"unknown order 'labels' .*choose one of: label, random"),
        ({"order": [0.5, 1]}, r"order must be one of label, random or whole numbers, not \[0\.5"),
        ({"order": "random", "seed": -1}, "seed of a split must be 0 or more"),
    ],
)
def test_what_makes_no_stream_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        TaskStream.from_graph(tiny_graph(), **{"base": 2, "increment": 2, **wrong})


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
        patch.setattr(module, "_EDGES_AT_ONCE", piece)
        rows = stream.describe()
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
