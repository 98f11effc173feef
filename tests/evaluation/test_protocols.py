import pytest
import torch

from undrift import Graph, InputError, TaskStream
from undrift.evaluation.protocols import check_gradable, exams
from undrift.testing import tiny_stream


def chain() -> TaskStream:
    """Nodes 0-5 in a ring; classes 0, 1, 2 in turn, one class per task: all edges cross tasks.

    Node 6 belongs to class 0 and hangs on node 0, the only edge within a task.
    """
    labels = [0, 1, 2, 0, 1, 2, 0]
    edges = [[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 6]]
    graph = Graph.from_arrays(torch.eye(7), edges, labels, undirected=True)
    train = torch.tensor([1, 1, 1, 0, 0, 0, 0], dtype=torch.bool)
    test = torch.tensor([0, 0, 0, 1, 1, 1, 0], dtype=torch.bool)
    val = torch.tensor([0, 0, 0, 0, 0, 0, 1], dtype=torch.bool)
    return TaskStream(graph, ((0,), (1,), (2,)), train, val, test)


def test_the_global_exam_has_the_classes_seen_and_their_edges_between_tasks() -> None:
    (exam,) = exams(chain(), 1)
    assert exam.truth.tolist() == [0, 1, 0, 1, 0]  # nodes 0, 1, 3, 4, 6: class 2 is still to come
    assert exam.task.tolist() == [0, 1, 0, 1, 0]
    dense = exam.graph.adjacency.to_dense()
    edges = {tuple(sorted(pair)) for pair in dense.nonzero().tolist()}
    assert edges == {(0, 1), (2, 3), (0, 4)}  # 0-1 and 3-4 join two tasks; 0-6 is within one
    assert exam.masks["test"].tolist() == [False, False, True, True, False]


def test_local_exams_are_the_task_graphs_without_an_edge_between_tasks() -> None:
    stream = tiny_stream()
    prepared = list(exams(stream, 2, "local"))
    assert len(prepared) == 3
    for t, exam in enumerate(prepared):
        assert exam.graph.labels is None
        assert set(exam.task.tolist()) == {t}
        task = stream.task(t)
        assert torch.equal(exam.graph.adjacency.to_dense(), task.graph.adjacency.to_dense())
        assert torch.equal(exam.masks["test"], task.test)
    inside = sum(exam.graph.num_edges for exam in prepared)
    assert inside < stream.graph.num_edges


def test_what_cannot_be_graded_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown protocol 'both'.*global, local"):
        list(exams(tiny_stream(), 0, "both"))  # type: ignore[arg-type]
    check_gradable(chain(), ["test"])
    with pytest.raises(InputError, match="task 1 of stream 'custom' has no val node"):
        check_gradable(chain(), ["val"])
