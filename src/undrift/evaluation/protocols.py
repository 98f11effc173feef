"""What a learner is examined on, after which batches, and what a row of its grades is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.registry import RECOMMENDERS, REGISTRY
from undrift.streams.stream import TaskStream

Protocol = Literal["global", "local"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
Split = Literal["val", "test"]
SPLITS: tuple[str, ...] = get_args(Split)

MOST = 20
"""A stream of many small batches is graded so many times, evenly over its batches."""


@dataclass(frozen=True)
class Exam:
    """One graph to predict, without labels, and what is needed to grade the prediction.

    `truth` and `task` give the class and the task of each node (where classes come back, the
    class's place in the order of arrival), `masks` the nodes that count, per split.
    """

    graph: Graph
    truth: Tensor
    task: Tensor
    masks: Mapping[str, Tensor]


def exams(
    stream: TaskStream,
    t: int,
    protocol: Protocol = "global",
    splits: Sequence[Split] = ("test",),
    *,
    built: dict[int, Exam] | None = None,
) -> Iterator[Exam]:
    """The exams after task t.

    `global`: one exam, the induced subgraph of every class seen so far. Nothing tells which task a
    node belongs to (the paper's protocol). Where classes come back, all nodes of a class seen are
    in it. `local`: one exam per task seen, its own graph alone; which nodes come together gives
    the task away. Exams in `built` are not made again. Cost: the edges of the nodes examined.
    """
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if protocol == "global":
        back = stream.returning
        seen = of_classes(stream, stream.seen(t)) if back else stream.nodes(range(t + 1))
        yield exam_of(stream, seen, splits)
        return
    if stream.returning:
        raise InputError(
            f"local testing asks task by task, and the classes of stream {stream.name!r} are in "
            "many; use global testing"
        )
    kept = {} if built is None else built
    for i in range(t + 1):
        kept[i] = kept.get(i) or exam_of(stream, stream.nodes([i]), splits)
        yield kept[i]


def check_gradable(stream: TaskStream, splits: Sequence[Split]) -> None:
    """Reject a split in which some task (some class, where those come back) has no node."""
    if stream.holds != "graphs":
        raise InputError(
            f"a stream of {stream.holds} such as {stream.name!r} has no nodes to grade; use "
            "evaluate_ranking, and give settings in place of a search"
        )
    for split in splits:
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        of = stream.graph.labelled() if stream.returning else stream.task_of
        graded = set(of[getattr(stream, split)].tolist())
        wanted = stream.arrived if stream.returning else range(len(stream))
        what = "class" if stream.returning else "task"
        for part in (part for part in wanted if part not in graded):
            raise InputError(
                f"{what} {part} of stream {stream.name!r} has no {split} node, so its "
                f"accuracy is undefined; put some of its nodes into {split}"
            )


def check_fits(learner: Any, stream: Any) -> None:
    """Reject what is no learner or no stream, and a learner of graphs on sessions or the like."""
    if isinstance(learner, type) or not hasattr(learner, "observe"):
        kind = learner.__name__ if isinstance(learner, type) else type(learner).__name__
        what = f"the class {kind}" if isinstance(learner, type) else f"a {kind}"
        way = "undrift.Propagation() or make_learner('adr')"
        raise InputError(f"a learner comes first, such as {way}, and then a stream; not {what}")
    if isinstance(stream, type) or not hasattr(stream, "holds"):
        way = "TaskStream.from_graph(data, base=2, increment=2), or load_stream(name)"
        raise InputError(f"{type(stream).__name__} is no stream of tasks; make one, as {way}")
    if learner.learns != stream.holds:
        known = ", ".join((RECOMMENDERS if stream.holds == "sessions" else REGISTRY).names())
        raise InputError(
            f"method {learner.name!r} learns {learner.learns}, and stream {stream.name!r} holds "
            f"{stream.holds}; take one of: {known}"
        )


def check_returns(learner: Learner, *, returning: bool) -> None:
    """Reject a learner that cannot learn a class again, where classes come back."""
    if returning and (learner.verbs_need or not learner.returns):
        learner._must("returns", "learn a class that comes back")


def graded_batches(stream: TaskStream) -> tuple[int, ...]:
    """The batches after which a stream is graded: every one, or where classes come back `MOST`."""
    batches = len(stream)
    if not stream.returning or batches <= MOST:
        return tuple(range(batches))
    return tuple(-(-batches * k // MOST) - 1 for k in range(1, MOST + 1))


def graded_nodes(stream: TaskStream, split: Split) -> tuple[int, ...]:
    """How many nodes of a split every class has, in the order in which the classes arrive."""
    labels = stream.graph.labelled()[getattr(stream, split)]
    return tuple(int((labels == c).sum()) for c in stream.arrived)


def of_classes(stream: TaskStream, classes: Iterable[int]) -> Tensor:
    """All nodes of these classes."""
    labels = stream.graph.labelled()
    wanted = torch.tensor(sorted(classes), dtype=torch.int64, device=labels.device)
    return torch.isin(labels, wanted).nonzero().flatten()


def exam_of(stream: TaskStream, nodes: Tensor, splits: Sequence[Split] = ()) -> Exam:
    """The exam on some nodes, and the edges between them."""
    part, truth = stream.graph.subgraph(nodes), stream.graph.labelled()[nodes].cpu()
    task = stream.task_of[nodes].cpu()
    if stream.returning:
        places = torch.empty(max(stream.arrived) + 1, dtype=torch.int64)
        places[list(stream.arrived)] = torch.arange(len(stream.arrived))
        task = places[truth]
    masks: dict[str, Tensor] = {split: getattr(stream, split)[nodes].cpu() for split in splits}
    return Exam(Graph(part.features, part.adjacency), truth, task, masks)
