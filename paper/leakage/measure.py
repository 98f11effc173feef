"""Leakage: how far a test protocol gives away the task of a node, and what that is worth.

Local testing shows each test node within the graph of its own task, and the task can be read off
that graph without learning anything: match its features against one prototype per task (Niu et
al., "Replay-and-Forget-Free Graph Class-Incremental Learning", 2024; as a flaw of local testing:
Cheng et al., "Can LLMs Alleviate Catastrophic Forgetting in Graph Continual Learning?", 2025).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor

from undrift.analytic.statistics import add_product_, pieces
from undrift.errors import InputError, unknown_name
from undrift.evaluation.matrix import AccuracyMatrix, class_accuracy, node_accuracy
from undrift.evaluation.protocols import Exam, Protocol, check_gradable, exams
from undrift.graphs import Graph
from undrift.graphs.normalise import Normalisation, normalise
from undrift.learners.base import Learner
from undrift.streams.stream import TaskStream
from undrift.typing import Progress, Rows, silent

Attack = Literal["graph", "node"]
ATTACKS: tuple[Attack, ...] = get_args(Attack)

_CHUNK_MB = 256  # of a dense matrix in float64 at a time


@dataclass(frozen=True)
class TaskIdAccuracy:
    """How often an attacker names the task of a test node, in percent, after each task: of all
    nodes of tasks 0 to t (`by_node[t]`), and of those of task i (`by_task.rows[t][i]`).
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
    """A_f by class of one learner, in percent, with all its classes to choose from (`plain`) or
    those of one task: as an attacker named it (`graph`, `node`), or the true one (`oracle`).
    """

    plain: float
    graph: float
    node: float
    oracle: float


@dataclass(frozen=True, eq=False)
class TaskProfiles:
    """What an attacker keeps: a prototype `[width]` per task (float64), and how it was made."""

    prototypes: Tensor
    hops: int = 2
    normalisation: Normalisation = "symmetric"

    @classmethod
    def of(
        cls, stream: TaskStream, *, hops: int = 2, normalisation: Normalisation = "symmetric"
    ) -> TaskProfiles:
        """The profiles of all tasks of a stream, from what a learner sees of each."""
        how = partial(task_prototype, hops=hops, normalisation=normalisation)
        rows = [how(task.graph, task.train) for task in stream]
        return cls(torch.stack(rows), hops, normalisation)

    def infer(
        self, attack: Attack, graph: Graph, asked: Tensor, *, tasks: int | None = None
    ) -> Tensor:
        """The task, of the first so many, that an attacker names for each node of a mask.

        `graph`: the prototype of these nodes, on the graph that was handed over, is matched to
        the nearest stored one (Euclid); all nodes get that task. `node`: each node's own
        propagated features are matched to the prototype at the smallest angle; a node's length
        tells its degree and how many words it has, not its task.
        """
        if attack not in ATTACKS:
            raise unknown_name("attack", attack, ATTACKS)
        known = self.prototypes[:tasks]
        if attack == "graph":
            found = task_prototype(graph, asked, hops=self.hops, normalisation=self.normalisation)
            return (known - found).square().sum(dim=1).argmin().expand(int(asked.sum()))
        lengths = known.norm(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
        # a node's weight and length are the same for every prototype, so neither is needed
        likeness = _times(graph.features, (known / lengths).T.contiguous().to(graph.device))
        operator = normalise(graph.adjacency.to(dtype=torch.float64), self.normalisation)
        for _ in range(self.hops):
            likeness = operator @ likeness  # S^K (X P^T): the matrix S^K X is never formed
        return likeness.cpu()[asked].argmax(dim=1)


def task_prototype(
    graph: Graph, nodes: Tensor, *, hops: int = 2, normalisation: Normalisation = "symmetric"
) -> Tensor:
    """The prototype p = 1/|V| sum_{i in V} w_i (S^K X)_i of nodes V (a mask), in float64.

    S is the normalised adjacency with self-loops and K the hops. w_i = d_i^-1/2 for `symmetric`,
    where it takes the degree out of S^K X again (Niu et al., who use K = 3); 1 otherwise. Cost:
    K products of S with one vector and one of X, which stays sparse.

    >>> g = Graph.from_arrays(torch.eye(3), [[0], [1]], undirected=True)
    >>> task_prototype(g, torch.tensor([True, False, True]), hops=0, normalisation="row").tolist()
    [0.5, 0.0, 0.5]
    """
    if hops < 0:
        raise InputError(f"hops must be 0 or more, not {hops}")
    if not bool(nodes.any()):
        raise InputError("a prototype needs at least one node; give a mask that is not empty")
    adjacency = graph.adjacency.to(dtype=torch.float64)
    back = normalise(adjacency, normalisation).t()
    column = nodes.to(graph.device).double().unsqueeze(1) / int(nodes.sum())
    if normalisation == "symmetric":
        degrees = 1 + adjacency @ torch.ones_like(column)
        column = column * torch.where(degrees > 0, degrees.clamp(min=0).rsqrt(), 0.0)
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
    >>> leakage(tiny_stream()).accuracy["local"]["graph"].by_node
    (100.0, 100.0, 100.0)
    """
    check_gradable(stream, ("test",))
    profiles = TaskProfiles.of(stream, hops=hops, normalisation=normalisation)
    accuracy: dict[Protocol, dict[Attack, TaskIdAccuracy]] = {"local": {}, "global": {}}
    for at, (protocol, found) in enumerate(accuracy.items()):
        built: dict[int, Exam] = {}
        for t in range(len(stream)):
            progress("attack", at * len(stream) + t, 2 * len(stream))
            asked = list(exams(stream, t, protocol, built=built))
            for attack in ATTACKS:
                so_far = found.get(attack, TaskIdAccuracy((), AccuracyMatrix()))
                found[attack] = _attacked(so_far, profiles, attack, asked, t + 1)
    progress("attack", 2 * len(stream), 2 * len(stream))
    tasks = stream.task_of[stream.test & (stream.task_of >= 0)]
    sizes = [torch.bincount(tasks[tasks <= t]) for t in range(len(stream))]
    chance = tuple(100.0 * int(size.max()) / int(size.sum()) for size in sizes)
    return Leakage(hops, normalisation, accuracy, chance)


def oracle_lift(
    learner: Learner,
    stream: TaskStream,
    protocol: Protocol = "local",
    *,
    hops: int = 2,
    normalisation: Normalisation = "symmetric",
) -> Lift:
    """A_f by class of a learner that has observed the whole stream, without and with a task id.

    With one, only the scores of that task's classes count. `plain` is what `evaluate` reports.
    Cost: one call of `scores` per exam.
    """
    of_class = {c: t for t, classes in enumerate(stream.classes) for c in classes}
    if set(learner.classes_) != set(of_class):
        raise InputError(
            f"the learner has observed {len(learner.classes_)} classes, but stream "
            f"{stream.name!r} has {len(of_class)}; let it observe every task of this stream first"
        )
    check_gradable(stream, ("test",))
    profiles = TaskProfiles.of(stream, hops=hops, normalisation=normalisation)
    columns = torch.tensor([of_class[c] for c in learner.classes_])
    classes = torch.tensor(learner.classes_)
    marks: dict[str, list[float]] = {"plain": [], "graph": [], "node": [], "oracle": []}
    for exam in exams(stream, len(stream) - 1, protocol):
        asked = exam.masks["test"]
        scores = learner.scores(exam.graph, asked)
        truth, task = exam.truth[asked], exam.task[asked]
        tasks: dict[str, Tensor] = {"plain": columns, "oracle": task.unsqueeze(1)}
        for attack in ATTACKS:
            tasks[attack] = profiles.infer(attack, exam.graph, asked).unsqueeze(1)
        for how, row in marks.items():
            outside = columns != tasks[how]
            predicted = classes[scores.masked_fill(outside, -torch.inf).argmax(dim=1)]
            row += [
                class_accuracy(predicted[task == i], truth[task == i], stream.classes[i])
                for i in task.unique().tolist()
            ]
    return Lift(**{how: sum(row) / len(row) for how, row in marks.items()})


def _attacked(
    so_far: TaskIdAccuracy, profiles: TaskProfiles, attack: Attack, given: list[Exam], tasks: int
) -> TaskIdAccuracy:
    """With the accuracy by node over all exams, and that of each task in turn."""
    named = torch.cat(
        [profiles.infer(attack, exam.graph, exam.masks["test"], tasks=tasks) for exam in given]
    )
    task = torch.cat([exam.task[exam.masks["test"]] for exam in given])
    by_task = [node_accuracy(named[task == i], task[task == i]) for i in task.unique().tolist()]
    by_node = (*so_far.by_node, node_accuracy(named, task))
    return TaskIdAccuracy(by_node, so_far.by_task.then(by_task))


def _times(features: Rows, right: Tensor) -> Tensor:
    """X right in float64, without a float64 copy of a dense X."""
    return torch.cat([part.double() @ right for _, part in pieces(features, _CHUNK_MB)])


def _transposed_times(features: Rows, right: Tensor) -> Tensor:
    """X^T right in float64, without a float64 copy of a dense X."""
    total = right.new_zeros(features.shape[1], right.shape[1])
    for where, part in pieces(features, _CHUNK_MB):
        add_product_(total, part.double(), right[where])
    return total
