"""What a learner is examined on after each task: the global and the local protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph
from undrift.streams.stream import TaskStream

Protocol = Literal["global", "local"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
Split = Literal["val", "test"]
SPLITS: tuple[str, ...] = get_args(Split)


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

    `global`: one exam, the induced subgraph of every class seen so far (tasks 0 to t). Edges
    between tasks are kept and nodes of later tasks are absent, so nothing tells the learner
    which task a node belongs to (the paper's global testing protocol). Where classes come back,
    all nodes of a class seen are in it, also those that arrive later: so a class is graded on the
    same test nodes at every step.

    `local`: one exam per task seen, its own graph alone. Which nodes come together gives the
    task away, so scores are higher than a deployed learner would get.

    A local exam is the same at every t: pass the same dict as `built` to make each once. It
    holds at most one copy of the graph. Cost: the edges of the nodes examined. A global exam is
    cut from the whole graph: growing the last one would move 93 of 100 of the entries that cutting
    reads (Reddit-CL's size), as every column changes its place.
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
        mask, wanted = getattr(stream, split), range(len(stream))
        what, graded = "task", set(stream.task_of[mask].tolist())
        if stream.returning:
            what, graded = "class", set(stream.graph.labelled()[mask].tolist())
        missing = [
            part for part in (stream.arrived if stream.returning else wanted) if part not in graded
        ]
        if missing:
            raise InputError(
                f"{what} {missing[0]} of stream {stream.name!r} has no {split} node, so its "
                f"accuracy is undefined; put some of its nodes into {split}"
            )


def _exam(stream: TaskStream, tasks: Sequence[int], splits: Sequence[Split]) -> Exam:
    nodes = _of_seen_classes(stream, tasks) if stream.returning else stream.nodes(tasks)
    part = stream.graph.subgraph(nodes)
    if part.labels is None:  # a stream checks that its graph has labels
        raise InputError(f"the graph of stream {stream.name!r} has no labels to grade with")
    return Exam(
        graph=Graph(part.features, part.adjacency),
        truth=part.labels.cpu(),
        task=_places(stream, part.labels) if stream.returning else stream.task_of[nodes].cpu(),
        masks={split: getattr(stream, split)[nodes].cpu() for split in splits},
    )


def _of_seen_classes(stream: TaskStream, tasks: Sequence[int]) -> Tensor:
    labels = stream.graph.labelled()
    seen = torch.tensor(stream.seen(max(tasks)), device=labels.device)
    return torch.isin(labels, seen).nonzero().flatten()


def _places(stream: TaskStream, labels: Tensor) -> Tensor:
    """The place of each node's class in the order of arrival."""
    places = torch.empty(max(stream.arrived) + 1, dtype=torch.int64)
    places[list(stream.arrived)] = torch.arange(len(stream.arrived))
    return places[labels.cpu()]
