from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from paper.leakage.measure import ATTACKS, TaskProfiles, leakage, oracle_lift, task_prototype
from tests.harness.references import dense_operator
from undrift import Bare, Graph, InputError, TaskStream, evaluate
from undrift.evaluation.protocols import Protocol
from undrift.graphs import Normalisation
from undrift.testing import tiny_graph, tiny_stream

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


def blocks() -> TaskStream:
    """Three classes, a task each, with features of their own: orthogonal prototypes.

    Each is a path of 20 nodes, and each node has an edge to one of the next task.
    """
    nodes = np.arange(60)
    labels = nodes // 20
    x = np.zeros((60, 6))
    x[nodes, 2 * labels] = 1.0
    x[nodes, 2 * labels + 1] = nodes % 3
    inside = nodes[:-1][labels[:-1] == labels[1:]]
    edges = np.stack([np.append(inside, nodes), np.append(inside + 1, (nodes + 20) % 60)])
    graph = Graph.from_arrays(x, edges, labels, undirected=True)
    return TaskStream.from_graph(graph, base=1, increment=1)


def test_local_testing_gives_away_tasks_with_features_of_their_own() -> None:
    found = leakage(blocks())
    for attack in ATTACKS:
        assert found.accuracy["local"][attack].by_node == (100.0, 100.0, 100.0)
        assert found.accuracy["local"][attack].by_task.rows[-1] == (100.0, 100.0, 100.0)
    whole = found.accuracy["global"]["graph"]  # names one task for all
    assert whole.by_node == pytest.approx((100.0, 50.0, 100 / 3))
    assert sorted(whole.by_task.rows[-1]) == [0.0, 0.0, 100.0]


def test_chance_is_the_share_of_the_largest_task() -> None:
    labels = [0] * 10 + [1] * 20 + [2] * 10
    graph = Graph.from_arrays(np.eye(40), [[0], [1]], labels, undirected=True)
    found = leakage(TaskStream.from_graph(graph, base=1, increment=1))
    assert found.chance == pytest.approx((100.0, 200 / 3, 50.0))


def propagated(graph: Graph, hops: int, kind: str) -> np.ndarray[Any, Any]:
    """S^K X with its degrees taken out, written down as it is defined."""
    x = graph.features
    dense = x.double().numpy() if isinstance(x, Tensor) else x.to_dense(torch.float64).numpy()
    links = graph.adjacency.to_dense(torch.float64)
    z = np.linalg.matrix_power(dense_operator(links, kind).numpy(), hops) @ dense
    degrees = 1 + links.numpy().sum(axis=1)
    return np.asarray(z / np.sqrt(degrees)[:, None]) if kind == "symmetric" else z


def directed() -> Graph:
    rng = np.random.default_rng(5)
    features, edges = rng.normal(size=(30, 4)), rng.integers(0, 30, size=(2, 90))
    return Graph.from_arrays(features, edges, np.arange(30) % 3)


@pytest.mark.parametrize("kind", ["symmetric", "row", "sum"])
@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("case", ["dense", "sparse", "directed"])
def test_prototypes_and_guesses_are_as_defined(case: str, hops: int, kind: Normalisation) -> None:
    graph = directed() if case == "directed" else tiny_graph(1, sparse=case == "sparse")
    stream = TaskStream.from_graph(graph, base=1, increment=1)
    profiles = TaskProfiles.of(stream, hops=hops, normalisation=kind)
    every = [propagated(task.graph, hops, kind)[task.train.numpy()] for task in stream]
    slow = np.stack([rows.mean(axis=0) for rows in every])
    np.testing.assert_allclose(profiles.prototypes.numpy(), slow, rtol=1e-12, atol=1e-14)
    z = propagated(graph, hops, kind)[stream.test.numpy()]
    nearest = ((slow - z.mean(axis=0)) ** 2).sum(axis=1).argmin()
    cosines = (z @ slow.T) / np.linalg.norm(slow, axis=1) / np.linalg.norm(z, axis=1)[:, None]
    assert profiles.infer("graph", graph, stream.test).tolist() == [nearest] * len(z)
    assert profiles.infer("node", graph, stream.test).tolist() == cosines.argmax(axis=1).tolist()


def by_hand() -> tuple[Any, TaskStream]:
    """Classes 3 and 1, then 2 and 0, so the columns of the scores are 3, 1, 2, 0.

    No edges. One training node per class, whose features after the scores give the task away.
    Test nodes say what they score; the third of them looks like a node of the other task.
    The learner's scores are the first features of a node.
    """
    train = [[0, 0, 0, 0, t, 1 - t] for t in (10, 10, 0, 0)]
    test = [
        # scores of 3, 1, 2, 0    looks    truth  plain  with its task
        [5, 4, 9, 0, 100, 0],  #  task 0   3      2      3  right
        [5, 6, 1, 0, 100, 0],  #  task 0   1      1      1  right in any case
        [5, 6, 9, 0, 0, 100],  #  task 1   3      2      1  wrong in any case
        [7, 0, 3, 2, 0, 100],  #  task 1   2      3      2  right
        [0, 0, 3, 2, 0, 100],  #  task 1   0      2      2  wrong in any case
    ]
    labels = [3, 1, 2, 0, 3, 1, 3, 2, 0]
    features = np.array(train + test, dtype=float)
    graph = Graph.from_arrays(features, np.zeros((2, 0), np.int64), labels)
    is_train = torch.arange(9) < 4
    nothing = torch.zeros(9, dtype=torch.bool)
    stream = TaskStream(graph, ((3, 1), (2, 0)), is_train, nothing, ~is_train, name="by-hand")
    learner = SimpleNamespace(classes_=(3, 1, 2, 0), scores=lambda g, nodes: g.features[nodes, :4])
    return learner, stream


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_masking_by_hand(protocol: Protocol) -> None:
    learner, stream = by_hand()
    lift = oracle_lift(learner, stream, protocol, hops=0)
    # plain: classes 3, 1 -> 0, 100; classes 2, 0 -> 0, 0
    assert lift.plain == pytest.approx((50 + 0) / 2)
    # true task: class 3 is right for one of its two nodes, 1 stays right, 2 is right, 0 is not
    assert lift.oracle == pytest.approx(((50 + 100) / 2 + 50) / 2)
    # per node: as with the true task, but for the node that was wrong in any case
    assert lift.node == pytest.approx(lift.oracle)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_is_what_evaluate_reports_and_the_oracle_is_never_worse(protocol: Protocol) -> None:
    stream = tiny_stream()
    learner = Bare(hidden=(8,), epochs=20)
    graded = evaluate(learner, stream, protocol=protocol)
    lift = oracle_lift(learner, stream, protocol)
    assert lift.plain == pytest.approx(graded.by_class.a_f)
    assert lift.oracle >= max(lift.plain, lift.graph, lift.node)


def test_what_cannot_be_attacked_is_named() -> None:
    stream, wrong = tiny_stream(), cast(Any, "rows")
    learner = Bare(hidden=(4,), epochs=1)
    learner.observe(stream.task(0))
    with pytest.raises(InputError, match=r"has observed 2 classes, but stream 'tiny' has 6; let"):
        oracle_lift(learner, stream)
    with pytest.raises(InputError, match="hops must be 0 or more, not -1"):
        leakage(stream, hops=-1)
    with pytest.raises(InputError, match=r"unknown normalisation 'rows'.*row, sum, symmetric"):
        leakage(stream, normalisation=wrong)
    with pytest.raises(InputError, match="has no test node"):
        leakage(replace(stream, test=torch.zeros_like(stream.test)))
    with pytest.raises(InputError, match="at least one node"):
        task_prototype(stream.graph, torch.zeros_like(stream.test))
    with pytest.raises(InputError, match=r"unknown attack 'rows'.*graph, node"):
        TaskProfiles.of(stream).infer(wrong, stream.graph, stream.test)
