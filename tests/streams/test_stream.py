from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.sparse import Csr
from undrift.streams.split import split_nodes
from undrift.streams.stream import TaskStream, TaskSummary
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


def test_base_first_then_increments_and_a_smaller_last_task(stream):
    assert stream.classes == ((0, 1), (2, 3, 4), (5,))
    assert len(stream) == 3
    assert stream.num_classes == 6


def test_all_classes_may_arrive_at_once():
    stream = TaskStream.from_graph(tiny_graph(), base=6, increment=1)
    assert stream.classes == ((0, 1, 2, 3, 4, 5),)
    assert stream.task(0).graph.num_nodes == stream.graph.num_nodes


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


def test_random_order_is_seeded():
    graph = tiny_graph()
    orders = [
        TaskStream.from_graph(graph, base=2, increment=2, order="random", seed=s).classes
        for s in (0, 0, 1, 2, 3)
    ]
    assert orders[0] == orders[1]
    assert len(set(orders)) > 2


def test_a_given_order_is_kept_and_changes_no_split():
    graph = tiny_graph()
    plain = TaskStream.from_graph(graph, base=2, increment=2, seed=3)
    other = TaskStream.from_graph(graph, base=3, increment=1, seed=3, order=[5, 0, 4, 1, 3, 2])
    assert other.classes == ((5, 0, 4), (1,), (3,), (2,))
    assert torch.equal(plain.train, other.train)
    assert torch.equal(plain.val, other.val)
    assert torch.equal(plain.test, other.test)


def test_the_split_is_that_of_split_nodes(stream):
    split = split_nodes(stream.graph.labels, seed=0)
    for mine, drawn in zip((stream.train, stream.val, stream.test), split, strict=True):
        assert torch.equal(mine, drawn)


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


def test_iteration_is_lazy(stream, monkeypatch):
    made = []
    original = TaskStream.task
    monkeypatch.setattr(TaskStream, "task", lambda s, t: made.append(t) or original(s, t))
    tasks = iter(stream)
    assert made == []
    next(tasks)
    assert made == [0]


def test_nodes_of_several_tasks_are_sorted_and_unique(stream):
    assert stream.nodes([2, 0, 2]).tolist() == [i for i in range(60) if i % 6 in (0, 1, 5)]
    assert stream.nodes([]).tolist() == []


def test_describe_counts_what_is_there():
    stream = TaskStream.from_graph(path_graph([0] * 10 + [1] * 5 + [2] * 5), base=2, increment=1)
    assert stream.describe() == [
        TaskSummary(0, (0, 1), 15, train=9, val=3, test=3, edges=28, dropped=1, imbalance=2.0),
        TaskSummary(1, (2,), 5, train=3, val=1, test=1, edges=8, dropped=1, imbalance=1.0),
    ]


def test_describe_accounts_for_every_edge_and_agrees_with_the_tasks(stream):
    rows = stream.describe()
    assert sum(row.edges + row.dropped for row in rows) == stream.graph.num_edges
    for row, task in zip(rows, stream, strict=True):
        assert row.edges == task.graph.num_edges
        assert row.nodes == task.graph.num_nodes
        assert (row.train, row.val, row.test) == tuple(
            int(mask.sum()) for mask in (task.train, task.val, task.test)
        )
        assert row.dropped > 0


def test_name_and_origin_are_kept():
    stream = TaskStream.from_graph(
        tiny_graph(), base=3, increment=3, name="mine", provenance={"stand_in": "all", "file": "x"}
    )
    assert (stream.name, stream.stand_in, stream.provenance["file"]) == ("mine", True, "x")
    assert repr(stream).startswith("TaskStream('mine', 2 tasks of 3+3 classes, Graph(60 nodes")


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


@pytest.mark.parametrize("base", [0, -2, 7])
def test_a_bad_base_is_named(base):
    with pytest.raises(InputError, match=f"base must be between 1 and the 6 classes.*not {base}"):
        TaskStream.from_graph(tiny_graph(), base=base, increment=1)


@pytest.mark.parametrize("increment", [0, -1])
def test_a_bad_increment_is_named(increment):
    with pytest.raises(InputError, match=f"increment must be 1 class or more.*not {increment}"):
        TaskStream.from_graph(tiny_graph(), base=2, increment=increment)


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ([0, 1, 2, 3, 4], r"missing \[5\], unknown \[\], repeated \[\]"),
        ([0, 1, 2, 3, 4, 7], r"missing \[5\], unknown \[7\]"),
        ([0, 1, 2, 3, 4, 5, 5], r"repeated \[5\]\); give a permutation of \[0, 1, 2, 3, 4, 5\]"),
    ],
)
def test_an_order_that_is_no_permutation_says_what_is_wrong(order, wanted):
    with pytest.raises(InputError, match=wanted):
        TaskStream.from_graph(tiny_graph(), base=2, increment=2, order=order)


def test_an_unknown_order_prints_the_choices():
    with pytest.raises(InputError, match=r"unknown order 'labels' .*choose one of: label, random"):
        TaskStream.from_graph(tiny_graph(), base=2, increment=2, order="labels")


@pytest.mark.parametrize("order", ["label", "random"])
def test_a_negative_seed_is_refused_in_one_sentence(order):
    with pytest.raises(InputError, match="seed of a split must be 0 or more"):
        TaskStream.from_graph(tiny_graph(), base=2, increment=2, order=order, seed=-1)


def test_a_small_class_is_named():
    with pytest.raises(InputError, match="class 1 has 3 nodes"):
        TaskStream.from_graph(path_graph([0] * 9 + [1] * 3), base=1, increment=1)


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
        (
            {"order": [0.5, 1]},
            r"order must be one of label, random or whole numbers, not \[0\.5, 1",
        ),
        ({"order": 3.5}, "order must be one of label, random or whole numbers, not 3.5"),
        ({"base": "2"}, "base must be a whole number, not '2'"),
        ({"increment": 1.5}, "increment must be a whole number, not 1.5"),
    ],
)
def test_values_of_another_type_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        TaskStream.from_graph(tiny_graph(), **{"base": 2, "increment": 2, **wrong})
