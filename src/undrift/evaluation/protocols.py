"""What a learner is examined on, after which batches, and what a row of its grades is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.streams.stream import TaskStream

Protocol = Literal["global", "local"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
Split = Literal["val", "test"]
SPLITS: tuple[str, ...] = get_args(Split)

MOST = 20
"""A stream of many small batches is graded so many times, evenly over its batches."""


@dataclass(frozen=True)
class Exam:
    """One graph to predict, and what is needed to grade the prediction.

    `graph` carries no labels: it is what the learner gets. `truth` and `task` give the class
    and the task of each of its nodes, `masks` the nodes that count, per split; all on the CPU.
    Where classes come back, the class's place in the order of arrival stands for the task.
    """

    graph: Graph
    truth: Tensor
    task: Tensor
    masks: Mapping[Split, Tensor]


def exams(
    stream: TaskStream,
    t: int,
    protocol: Protocol = "global",
    splits: Sequence[Split] = ("test",),
    *,
    built: dict[int, Exam] | None = None,
) -> Iterator[Exam]:
    """The exams after task t.

    `global`: one exam, the induced subgraph of every class seen so far. Edges between tasks are
    kept and nodes of later tasks are absent, so nothing tells which task a node belongs to (the
    paper's global testing protocol). Where classes come back, all nodes of a class seen are in
    it: a class is graded on the same test nodes at every step.

    `local`: one exam per task seen, its own graph alone. Which nodes come together gives the
    task away, so scores are higher than a deployed learner would get. Such an exam is the same at
    every t: pass the same dict as `built` to make each once.

    Cost: the edges of the nodes examined.
    """
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if protocol == "global":
        yield _exam(stream, range(t + 1), splits)
        return
    if stream.returning:
        raise InputError(
            f"local testing asks task by task, and the classes of stream {stream.name!r} are in "
            "many; use global testing"
        )
    kept = {} if built is None else built
    for i in range(t + 1):
        if i not in kept:
            kept[i] = _exam(stream, [i], splits)
        yield kept[i]


def check_gradable(stream: TaskStream, splits: Sequence[Split]) -> None:
    """Reject a split in which some task (some class, where those come back) has no node."""
    for split in splits:
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        of = stream.graph.labelled() if stream.returning else stream.task_of
        graded = set(of[getattr(stream, split)].tolist())
        wanted = stream.arrived if stream.returning else range(len(stream))
        missing = [part for part in wanted if part not in graded]
        if missing:
            what = "class" if stream.returning else "task"
            raise InputError(
                f"{what} {missing[0]} of stream {stream.name!r} has no {split} node, so its "
                f"accuracy is undefined; put some of its nodes into {split}"
            )


def check_returns(learner: Learner, *, returning: bool) -> None:
    """Reject a learner that cannot learn a class again, where classes come back."""
    if returning:
        learner._must("returns", "learn a class that comes back")


def graded_batches(stream: TaskStream) -> tuple[int, ...]:
    """The batches after which a stream is graded, the last among them.

    Every task where no class comes back; else every batch, or `MOST` of them.
    """
    batches = len(stream)
    if not stream.returning or batches <= MOST:
        return tuple(range(batches))
    return tuple(-(-batches * k // MOST) - 1 for k in range(1, MOST + 1))


def share_of_nodes(stream: TaskStream, t: int) -> float:
    """The share of the training nodes that arrived since the grading before that of batch t."""
    before = max((batch for batch in graded_batches(stream) if batch < t), default=-1)
    arrived = stream.task_of[stream.train & (stream.task_of >= 0)]
    return int(((arrived > before) & (arrived <= t)).sum()) / arrived.numel()


def graded_nodes(stream: TaskStream, split: Split) -> tuple[int, ...]:
    """How many nodes of a split every class has, in the order in which the classes arrive."""
    labels = stream.graph.labelled()[getattr(stream, split)]
    return tuple(int((labels == c).sum()) for c in stream.arrived)


def _exam(stream: TaskStream, tasks: Sequence[int], splits: Sequence[Split]) -> Exam:
    labels = stream.graph.labelled()
    nodes = stream.nodes(tasks)
    if stream.returning:
        seen = torch.tensor(stream.seen(max(tasks)), device=labels.device)
        nodes = torch.isin(labels, seen).nonzero().flatten()
    part = stream.graph.subgraph(nodes)
    truth = labels[nodes].cpu()
    return Exam(
        graph=Graph(part.features, part.adjacency),
        truth=truth,
        task=_places(stream, truth) if stream.returning else stream.task_of[nodes].cpu(),
        masks={split: getattr(stream, split)[nodes].cpu() for split in splits},
    )


def _places(stream: TaskStream, labels: Tensor) -> Tensor:
    """The place of each node's class in the order of arrival."""
    places = torch.empty(max(stream.arrived) + 1, dtype=torch.int64)
    places[list(stream.arrived)] = torch.arange(len(stream.arrived))
    return places[labels]
