"""Leakage: how far a test protocol gives away the task of a node, and what that is worth.

Class-incremental learning must name a node's class among all classes seen. Whoever knows the
node's task need only choose among that task's classes, which is the far easier task-incremental
learning. Local testing shows each test node within the graph of its own task, and the task can
be read off that graph without learning anything: match its features against one prototype per
task (Niu et al., "Replay-and-Forget-Free Graph Class-Incremental Learning: A Task Profiling and
Prompting Approach", 2024; as a flaw of local testing: Cheng et al., "Can LLMs Alleviate
Catastrophic Forgetting in Graph Continual Learning?", 2025).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from undrift.errors import InputError, unknown_name
from undrift.evaluation.matrix import AccuracyMatrix, class_accuracy, node_accuracy
from undrift.evaluation.protocols import Exam, Protocol, check_gradable, exams
from undrift.graphs import Graph
from undrift.graphs.normalise import NORMALISATIONS, Normalisation, normalise
from undrift.learners.base import Learner
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, silent

__all__ = [
    "ATTACKS",
    "Attack",
    "Leakage",
    "Lift",
    "TaskIdAccuracy",
    "TaskProfiles",
    "leakage",
    "oracle_lift",
    "task_prototype",
]

Attack = Literal["graph", "node"]
ATTACKS: tuple[Attack, ...] = get_args(Attack)

_ROWS = 65_536  # of a dense matrix in float64 at a time


@dataclass(frozen=True)
class TaskIdAccuracy:
    """How often an attacker names the task of a test node, in percent, after each task.

    `by_node[t]` is the share of the test nodes of tasks 0 to t; `by_task.rows[t][i]` is that
    share among the nodes of task i.
    """

    by_node: tuple[float, ...]
    by_task: AccuracyMatrix


@dataclass(frozen=True)
class Leakage:
    """The accuracy of both attackers under both protocols: `accuracy["local"]["graph"]`.

    `chance[t]` is what naming the largest task every time would get: its share of the test
    nodes of tasks 0 to t, in percent.
    """

    hops: int
    normalisation: Normalisation
    accuracy: Mapping[Protocol, Mapping[Attack, TaskIdAccuracy]]
    chance: tuple[float, ...]


@dataclass(frozen=True)
class Lift:
    """A_f by class of one learner, in percent: with all its classes to choose from (`plain`),
    with those of the task that an attacker named (`graph`, `node`), and with those of the true
    task (`oracle`).
    """

    plain: float
    graph: float
    node: float
    oracle: float


@dataclass(frozen=True, eq=False)
class TaskProfiles:
    """What an attacker keeps: a prototype `[width]` per task (float64), and how it was made.

    The prototype of a task is the mean over its training nodes of their propagated features,
    on the isolated graph of training time (see `task_prototype`).
    """

    prototypes: Tensor
    hops: int = 2
    normalisation: Normalisation = "symmetric"

    @classmethod
    def of(
        cls, stream: TaskStream, *, hops: int = 2, normalisation: Normalisation = "symmetric"
    ) -> TaskProfiles:
        """The profiles of all tasks of a stream, from what a learner sees of each."""
        rows = [
            task_prototype(task.graph, task.train, hops=hops, normalisation=normalisation)
            for task in stream
        ]
        return cls(torch.stack(rows), hops, normalisation)

    def first(self, tasks: int) -> TaskProfiles:
        """The profiles of the first so many tasks."""
        return TaskProfiles(self.prototypes[:tasks], self.hops, self.normalisation)

    def infer(self, attack: Attack, graph: Graph, asked: Tensor) -> Tensor:
        """The task that an attacker names for each of the nodes asked about (a boolean mask).

        `graph`: the prototype of the nodes asked about, on the graph that was handed over, is
        matched to the nearest stored one (Euclid); all nodes get that task. `node`: each node's
        own propagated features are matched to the prototype at the smallest angle. The angle,
        because a node's length tells its degree and how many words it has, not its task; by
        distance the attacker would be weaker.
        """
        if attack not in ATTACKS:
            raise unknown_name("attack", attack, ATTACKS)
        if attack == "graph":
            found = task_prototype(graph, asked, hops=self.hops, normalisation=self.normalisation)
            nearest = (self.prototypes - found).square().sum(dim=1).argmin()
            return nearest.expand(int(asked.sum()))
        lengths = self.prototypes.norm(dim=1, keepdim=True)
        directions = self.prototypes / lengths.clamp(min=torch.finfo(torch.float64).tiny)
        # a node's weight and length are the same for every prototype, so neither is needed
        likeness = _times(graph.features, directions.T.contiguous().to(graph.device))
        operator = _operator(graph, self.normalisation)
        for _ in range(self.hops):
            likeness = operator @ likeness  # S^K (X P^T): the matrix S^K X is never formed
        return likeness.cpu()[asked].argmax(dim=1)


def task_prototype(
    graph: Graph, nodes: Tensor, *, hops: int = 2, normalisation: Normalisation = "symmetric"
) -> Tensor:
    """The prototype p = 1/|V| sum_{i in V} w_i (S^K X)_i of nodes V (a mask), in float64.

    S is the normalised adjacency with self-loops and K the hops. w_i = d_i^-1/2 for `symmetric`,
    where it takes the degree out of S^K X again (Niu et al., who use K = 3); 1 otherwise.

    Cost: K products of S with one vector and one of X: p^T = ((w/|V|)^T S^K) X, so that a sparse
    X stays sparse and no matrix of its size is made.

    >>> g = Graph.from_arrays(torch.eye(3), [[0], [1]], undirected=True)
    >>> task_prototype(g, torch.tensor([True, False, True]), hops=0, normalisation="row").tolist()
    [0.5, 0.0, 0.5]
    """
    if hops < 0:
        raise InputError(f"hops must be 0 or more, not {hops}")
    if not bool(nodes.any()):
        raise InputError("a prototype needs at least one node; give a mask that is not empty")
    operator = _operator(graph, normalisation)
    chosen = nodes.to(graph.device).double()
    weights = chosen / chosen.sum()
    if normalisation == "symmetric":
        weights = weights * _inverse_root_degrees(graph)
    column, back = weights.unsqueeze(1), operator.t()
    for _ in range(hops):
        column = back @ column
    return _transposed_times(graph.features, column).flatten().cpu()


def leakage(
    stream: TaskStream,
    *,
    hops: int = 2,
    normalisation: Normalisation = "symmetric",
    progress: Progress = silent,
) -> Leakage:
    """Run both attackers under both protocols on the test nodes, after each task of a stream.

    Under `global` testing there is one test graph, so the `graph` attacker names one task for
    all nodes. No learner is involved. Cost: per step, K products of the test graph's operator
    with a matrix of one column per task.

    >>> from undrift.testing.graphs import tiny_stream
    >>> found = leakage(tiny_stream())
    >>> found.accuracy["local"]["graph"].by_node
    (100.0, 100.0, 100.0)
    """
    check_gradable(stream, ("test",))
    profiles = TaskProfiles.of(stream, hops=hops, normalisation=normalisation)
    steps = range(len(stream))
    accuracy: dict[Protocol, dict[Attack, TaskIdAccuracy]] = {}
    protocols: tuple[Protocol, ...] = ("local", "global")
    for at, protocol in enumerate(protocols):
        built: dict[int, Exam] = {}
        found: dict[Attack, list[tuple[float, list[float]]]] = {attack: [] for attack in ATTACKS}
        for t in steps:
            progress("attack", at * len(stream) + t, 2 * len(stream))
            papers = list(exams(stream, t, protocol, built=built))
            for attack in ATTACKS:
                found[attack].append(_attacked(profiles.first(t + 1), attack, papers))
        accuracy[protocol] = {
            attack: TaskIdAccuracy(
                tuple(by_node for by_node, _ in rows), AccuracyMatrix([row for _, row in rows])
            )
            for attack, rows in found.items()
        }
    progress("attack", 2 * len(stream), 2 * len(stream))
    return Leakage(hops, normalisation, accuracy, tuple(_chance(stream, t) for t in steps))


def oracle_lift(
    learner: Learner,
    stream: TaskStream,
    protocol: Protocol = "local",
    *,
    hops: int = 2,
    normalisation: Normalisation = "symmetric",
) -> Lift:
    """A_f by class of a learner that has observed the whole stream, without and with a task id.

    With one, only the scores of that task's classes count. `plain` is what `evaluate` reports;
    `oracle` minus `plain` is what a leaked task id can be worth, and `graph` and `node` say how
    much of it an attacker gets. Cost: one call of `scores` per exam.
    """
    _check_observed(learner, stream)
    check_gradable(stream, ("test",))
    profiles = TaskProfiles.of(stream, hops=hops, normalisation=normalisation)
    of_class = {c: t for t, classes in enumerate(stream.classes) for c in classes}
    columns = torch.tensor([of_class[c] for c in learner.classes_])
    classes = torch.tensor(learner.classes_)
    marks: dict[str, list[float]] = {"plain": [], "graph": [], "node": [], "oracle": []}
    for exam in exams(stream, len(stream) - 1, protocol):
        asked = exam.masks["test"]
        scores = learner.scores(exam.graph)[asked]
        truth, task = exam.truth[asked], exam.task[asked]
        answers = {"plain": scores.argmax(dim=1)}
        tasks: dict[str, Tensor] = {"oracle": task}
        for attack in ATTACKS:
            tasks[attack] = profiles.infer(attack, exam.graph, asked)
        for how, ids in tasks.items():
            outside = columns != ids.unsqueeze(1)
            answers[how] = scores.masked_fill(outside, -torch.inf).argmax(dim=1)
        for how, answer in answers.items():
            for i in task.unique().tolist():
                mine = task == i
                predicted = classes[answer[mine]]
                marks[how].append(class_accuracy(predicted, truth[mine], stream.classes[i]))
    return Lift(**{how: sum(row) / len(row) for how, row in marks.items()})


def _attacked(
    profiles: TaskProfiles, attack: Attack, papers: Iterable[Exam]
) -> tuple[float, list[float]]:
    """The accuracy by node over all exams, and that of each task in turn."""
    pairs = []
    for exam in papers:
        asked = exam.masks["test"]
        pairs.append((profiles.infer(attack, exam.graph, asked), exam.task[asked]))
    named, task = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    by_task = [node_accuracy(named[task == i], task[task == i]) for i in task.unique().tolist()]
    return node_accuracy(named, task), by_task


def _chance(stream: TaskStream, t: int) -> float:
    tasks = stream.task_of[stream.test]
    sizes = torch.bincount(tasks[(tasks >= 0) & (tasks <= t)])
    return 100.0 * int(sizes.max()) / int(sizes.sum())


def _check_observed(learner: Learner, stream: TaskStream) -> None:
    wanted = {c for classes in stream.classes for c in classes}
    if set(learner.classes_) != wanted:
        raise InputError(
            f"the learner has observed {len(learner.classes_)} classes, but stream "
            f"{stream.name!r} has {len(wanted)}; let it observe every task of this stream first"
        )


def _operator(graph: Graph, normalisation: Normalisation) -> Csr:
    """The normalised adjacency in float64; the graph's own is in the type of its weights."""
    if normalisation not in NORMALISATIONS:
        raise unknown_name("normalisation", normalisation, NORMALISATIONS)
    return normalise(graph.adjacency.to(dtype=torch.float64), normalisation)


def _inverse_root_degrees(graph: Graph) -> Tensor:
    ones = torch.ones(graph.num_nodes, 1, dtype=torch.float64, device=graph.device)
    degrees = 1 + (graph.adjacency.to(dtype=torch.float64) @ ones).flatten()
    return torch.where(degrees > 0, degrees.clamp(min=0).rsqrt(), 0.0)


def _times(features: Tensor | Csr, right: Tensor) -> Tensor:
    """X right in float64, without a float64 copy of a dense X."""
    if isinstance(features, Csr):
        return features.to(dtype=torch.float64) @ right
    return torch.cat([rows.double() @ right for rows in features.split(_ROWS)])


def _transposed_times(features: Tensor | Csr, right: Tensor) -> Tensor:
    """X^T right in float64, without a float64 copy of a dense X."""
    if isinstance(features, Csr):
        return features.double().t() @ right
    parts = zip(features.split(_ROWS), right.split(_ROWS), strict=True)
    return torch.stack([rows.double().T @ weights for rows, weights in parts]).sum(dim=0)
