from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from paper.leakage.measure import (
    ATTACKS,
    Attack,
    TaskProfiles,
    leakage,
    oracle_lift,
    task_prototype,
)
from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.evaluation.matrix import class_accuracy
from undrift.evaluation.protocols import Protocol
from undrift.graphs import Graph
from undrift.graphs.normalise import Normalisation
from undrift.learners.bare import Bare
from undrift.learners.base import Learner, at_nodes
from undrift.learners.parts.training.backbone import Backbone
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph, tiny_stream
from undrift.typing import Progress, Rows

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


def blocks(tasks: int = 3, per_task: int = 20, *, joined: bool = True) -> TaskStream:
    """One class per task, and every task has features of its own: orthogonal prototypes.

    Task t is a path; `joined` adds an edge from each of its nodes to one of the next task.
    """
    nodes = np.arange(tasks * per_task)
    labels = nodes // per_task
    x = np.zeros((nodes.size, 2 * tasks))
    x[nodes, 2 * labels] = 1.0
    x[nodes, 2 * labels + 1] = nodes % 3
    inside = nodes[:-1][labels[:-1] == labels[1:]]
    edges = [np.stack([inside, inside + 1])]
    if joined:
        edges.append(np.stack([nodes, (nodes + per_task) % nodes.size]))
    graph = Graph.from_arrays(x, np.concatenate(edges, axis=1), labels, undirected=True)
    return TaskStream.from_graph(graph, base=1, increment=1)


def alike(seed: int, *, edges: int = 0, nodes: int = 300, width: int = 5) -> TaskStream:
    """Three tasks of equal size whose nodes are drawn from one and the same distribution."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(nodes, width))
    pairs = rng.integers(0, nodes, size=(2, edges))
    graph = Graph.from_arrays(x, pairs, np.arange(nodes) % 3, undirected=True)
    return TaskStream.from_graph(graph, base=1, increment=1, seed=seed)


# the attack -------------------------------------------------------------------------------


def test_local_testing_gives_away_tasks_with_features_of_their_own() -> None:
    found = leakage(blocks())
    for attack in ATTACKS:
        assert found.accuracy["local"][attack].by_node == (100.0, 100.0, 100.0)
        assert found.accuracy["local"][attack].by_task.rows[-1] == (100.0, 100.0, 100.0)


def test_under_global_testing_the_graph_attack_names_one_task_for_all() -> None:
    found = leakage(blocks()).accuracy["global"]["graph"]
    assert found.by_node == pytest.approx((100.0, 50.0, 100 / 3))
    assert sorted(found.by_task.rows[-1]) == [0.0, 0.0, 100.0]


def test_edges_between_tasks_are_what_the_node_attack_stumbles_over() -> None:
    """Without such edges a node has the same neighbours under both protocols."""
    stream = tiny_stream(nodes=240)
    apart = stream.graph.adjacency.to_scipy().tocoo()
    task_of = stream.task_of.numpy()
    same = task_of[apart.row] == task_of[apart.col]
    inside = sp.csr_matrix((apart.data[same], (apart.row[same], apart.col[same])), apart.shape)
    without = replace(
        stream, graph=Graph.from_scipy(stream.graph.features, inside, stream.graph.labels)
    )
    joined, cut = leakage(stream).accuracy, leakage(without).accuracy
    assert cut["global"]["node"] == cut["local"]["node"] == joined["local"]["node"]
    assert joined["global"]["node"].by_node[-1] < joined["local"]["node"].by_node[-1]


def test_tasks_alike_in_distribution_are_named_at_chance() -> None:
    """Without edges, test and training nodes are independent: nothing is there to be found."""
    runs = [leakage(alike(seed)) for seed in range(25)]
    for protocol in PROTOCOLS:
        for attack in ATTACKS:
            mean = np.mean([run.accuracy[protocol][attack].by_node[-1] for run in runs])
            assert abs(mean - 100 / 3) < 10, (protocol, attack)


def test_test_nodes_beside_training_nodes_are_enough_to_leak() -> None:
    """The same tasks leak once they have edges: both averages mix the same neighbours."""
    runs = [leakage(alike(seed, edges=3000, width=20)).accuracy for seed in range(6)]
    mean = {
        (protocol, attack): np.mean([run[protocol][attack].by_node[-1] for run in runs])
        for protocol in PROTOCOLS
        for attack in ATTACKS
    }
    assert mean["local", "graph"] > 90
    assert mean["local", "node"] > 70
    assert mean["global", "graph"] == pytest.approx(100 / 3)
    assert mean["global", "node"] < 45


def test_chance_is_the_share_of_the_largest_task() -> None:
    labels = [0] * 10 + [1] * 20 + [2] * 10
    graph = Graph.from_arrays(np.eye(40), [[0], [1]], labels, undirected=True)
    found = leakage(TaskStream.from_graph(graph, base=1, increment=1))
    assert found.chance == pytest.approx((100.0, 200 / 3, 50.0))


def test_labels_play_no_part_in_naming_a_task() -> None:
    stream = tiny_stream()
    profiles = TaskProfiles.of(stream)
    asked = torch.ones(stream.graph.num_nodes, dtype=torch.bool)
    blind = Graph(stream.graph.features, stream.graph.adjacency)
    for attack in ATTACKS:
        assert torch.equal(
            profiles.infer(attack, blind, asked), profiles.infer(attack, stream.graph, asked)
        )


def test_progress_runs_through_both_protocols() -> None:
    heard: list[tuple[str, int, int]] = []
    leakage(tiny_stream(), progress=lambda *report: heard.append(report))
    assert heard == [("attack", done, 6) for done in range(7)]


# the slow twin ----------------------------------------------------------------------------


def dense_operator(graph: Graph, kind: str) -> np.ndarray[Any, Any]:
    a = graph.adjacency.to_dense(torch.float64).numpy() + np.eye(graph.num_nodes)
    into, out = a.sum(axis=1), a.sum(axis=0)
    if kind == "symmetric":
        return np.asarray(a / np.sqrt(np.outer(into, out)))
    return np.asarray(a / into[:, None]) if kind == "row" else a


def propagated(graph: Graph, hops: int, kind: str) -> np.ndarray[Any, Any]:
    """S^K X with its degrees taken out, written down as it is defined."""
    x = graph.features
    dense = x.double().numpy() if isinstance(x, Tensor) else x.to_dense(torch.float64).numpy()
    z = np.linalg.matrix_power(dense_operator(graph, kind), hops) @ dense
    degrees = 1 + graph.adjacency.to_dense(torch.float64).numpy().sum(axis=1)
    return np.asarray(z / np.sqrt(degrees)[:, None]) if kind == "symmetric" else z


def directed() -> Graph:
    rng = np.random.default_rng(5)
    return Graph.from_arrays(
        rng.normal(size=(30, 4)), rng.integers(0, 30, size=(2, 90)), np.arange(30) % 3
    )


@pytest.mark.parametrize("kind", ["symmetric", "row", "sum"])
@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("case", ["dense", "sparse", "directed"])
def test_prototypes_and_guesses_equal_their_definition(
    case: str, hops: int, kind: Normalisation
) -> None:
    graph = directed() if case == "directed" else tiny_graph(1, sparse=case == "sparse")
    stream = TaskStream.from_graph(graph, base=1, increment=1)
    profiles = TaskProfiles.of(stream, hops=hops, normalisation=kind)
    slow = np.stack(
        [propagated(task.graph, hops, kind)[task.train.numpy()].mean(axis=0) for task in stream]
    )
    np.testing.assert_allclose(profiles.prototypes.numpy(), slow, rtol=1e-12, atol=1e-14)
    z = propagated(graph, hops, kind)[stream.test.numpy()]
    nearest = ((slow - z.mean(axis=0)) ** 2).sum(axis=1).argmin()
    cosines = (z @ slow.T) / np.linalg.norm(slow, axis=1) / np.linalg.norm(z, axis=1)[:, None]
    assert profiles.infer("graph", graph, stream.test).tolist() == [nearest] * len(z)
    assert profiles.infer("node", graph, stream.test).tolist() == cosines.argmax(axis=1).tolist()


def test_sparse_and_dense_features_are_attacked_alike() -> None:
    thin = tiny_graph(2, sparse=True)
    assert not isinstance(thin.features, Tensor)
    thick = Graph(thin.features.to_dense(), thin.adjacency, thin.labels)
    a, b = (leakage(TaskStream.from_graph(g, base=2, increment=2)) for g in (thin, thick))
    assert a == b


def test_a_long_dense_matrix_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from paper.leakage import measure as module

    whole = TaskProfiles.of(tiny_stream())
    every = torch.ones(60, dtype=torch.bool)
    named = whole.infer("node", tiny_graph(), every)
    monkeypatch.setattr(module, "_CHUNK_MB", 1e-3)
    parts = TaskProfiles.of(tiny_stream())
    torch.testing.assert_close(parts.prototypes, whole.prototypes, rtol=1e-13, atol=1e-15)
    assert torch.equal(parts.infer("node", tiny_graph(), every), named)


def test_sparse_features_stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dense copy, and no product of two sparse matrices, which would fill up."""
    product = Csr.__matmul__

    def with_dense(left: Csr, right: Rows) -> Rows:
        return refuse() if isinstance(right, Csr) else product(left, right)

    def refuse(*arguments: object, **named: object) -> Any:
        raise AssertionError("a matrix of the size of the features was made")

    stream = TaskStream.from_graph(tiny_graph(sparse=True), base=2, increment=2)
    monkeypatch.setattr(Csr, "to_dense", refuse)
    monkeypatch.setattr(Csr, "__matmul__", with_dense)
    assert leakage(stream).accuracy["local"]["graph"].by_node[-1] == 100.0


# what a task id is worth -------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    classes: tuple[int, ...]
    num_features: int


@dataclass(kw_only=True)
class Reader(Learner):
    """Its scores are the first features of a node: a test can write them down."""

    name: ClassVar[str] = "reader"
    learned_type: ClassVar[type] = Table

    def _learn(self, task: Task, progress: Progress) -> Table:
        return Table((*self.classes_, *task.classes), task.graph.num_features)

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        assert isinstance(graph.features, Tensor)
        return at_nodes(graph.features, nodes)[:, : len(learned.classes)]


def by_hand() -> tuple[Reader, TaskStream]:
    """Classes 3 and 1, then 2 and 0, so the columns of the scores are 3, 1, 2, 0.

    No edges. One training node per class, whose features after the scores give the task away.
    Test nodes say what they score; the third of them looks like a node of the other task.
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
    graph = Graph.from_arrays(
        np.array(train + test, dtype=float), np.zeros((2, 0), np.int64), labels
    )
    is_train = torch.arange(9) < 4
    nothing = torch.zeros(9, dtype=torch.bool)
    stream = TaskStream(graph, ((3, 1), (2, 0)), is_train, nothing, ~is_train, name="by-hand")
    learner = Reader()
    for task in stream:
        learner.observe(task)
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


def test_the_graph_attack_masks_a_whole_graph() -> None:
    learner, stream = by_hand()
    local, whole = (oracle_lift(learner, stream, p, hops=0) for p in ("local", "global"))
    assert local.graph == pytest.approx(local.oracle)
    # the consolidated graph looks like task 1: no node of task 0 can be right any more
    assert whole.graph == pytest.approx((0 + 50) / 2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_is_what_evaluate_reports_and_the_oracle_is_never_worse(protocol: Protocol) -> None:
    stream = tiny_stream()
    learner = Bare(backbone=Backbone(hidden=(8,), epochs=20))
    graded = evaluate(learner, stream, protocol=protocol)
    lift = oracle_lift(learner, stream, protocol)
    assert lift.plain == pytest.approx(graded.by_class.a_f)
    assert lift.oracle >= max(lift.plain, lift.graph, lift.node)


def test_the_oracle_chooses_among_the_classes_of_the_task_only() -> None:
    stream = tiny_stream()
    learner = Bare(backbone=Backbone(hidden=(8,), epochs=5))
    evaluate(learner, stream)
    marks = []
    for t, classes in enumerate(stream.classes):
        nodes = stream.nodes([t])
        scores = learner.scores(stream.graph.subgraph(nodes))
        columns = [learner.classes_.index(c) for c in classes]
        predicted = torch.tensor(classes)[scores[:, columns].argmax(dim=1)]
        mask = stream.test[nodes]
        assert stream.graph.labels is not None
        marks.append(class_accuracy(predicted[mask], stream.graph.labels[nodes][mask], classes))
    assert oracle_lift(learner, stream, "local").oracle == pytest.approx(np.mean(marks))


# bad input --------------------------------------------------------------------------------


def test_the_stream_must_have_been_learned() -> None:
    stream = tiny_stream()
    learner = Bare(backbone=Backbone(hidden=(4,), epochs=1))
    learner.observe(stream.task(0))
    with pytest.raises(InputError, match=r"has observed 2 classes, but stream 'tiny' has 6; let"):
        oracle_lift(learner, stream)


def test_what_cannot_be_attacked_is_named() -> None:
    stream = tiny_stream()
    with pytest.raises(InputError, match="hops must be 0 or more, not -1"):
        leakage(stream, hops=-1)
    with pytest.raises(InputError, match=r"unknown normalisation 'rows'.*row, sum, symmetric"):
        leakage(stream, normalisation="rows")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no test node"):
        leakage(replace(stream, test=torch.zeros_like(stream.test)))
    with pytest.raises(InputError, match="at least one node"):
        task_prototype(stream.graph, torch.zeros_like(stream.test))


def test_an_unknown_attack_prints_the_list() -> None:
    stream = tiny_stream()
    wrong: Any = "edge"
    with pytest.raises(InputError, match=r"unknown attack 'edge'.*graph, node"):
        TaskProfiles.of(stream).infer(wrong, stream.graph, stream.test)


def test_features_that_are_all_zero_are_no_trouble() -> None:
    stream = blocks()
    empty = Graph(torch.zeros(60, 3), stream.graph.adjacency, stream.graph.labels)
    attack: Attack
    for attack in ATTACKS:
        found = leakage(replace(stream, graph=empty)).accuracy["local"][attack]
        assert found.by_node[-1] == pytest.approx(100 / 3)
