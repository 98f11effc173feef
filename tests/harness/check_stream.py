"""`check_stream`: whether a stream keeps the promises that learners and evaluation rely on."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from undrift import Task, TaskStream
from undrift.sparse import Csr
from undrift.streams.split import split_nodes

SPLITS = ("train", "val", "test")


def check_stream(stream: TaskStream, make: Callable[[int], TaskStream] | None = None) -> None:
    """Raise an AssertionError that says which promise the stream breaks; else return.

    Checked: the tasks' classes cover every label of the graph, and are disjoint unless the stream
    is `returning`; every labelled node is in one task; masks are disjoint and cover no node outside
    the tasks; every class is in every split; no label of a test node or of context is visible in a
    task; a task's features, labels, masks and edges are those of the full graph; and a seed draws
    the same split and tasks again. For that of a stream of your own give `make`, a function from a
    seed to a stream.

    >>> from undrift.testing.graphs import tiny_stream
    >>> check_stream(tiny_stream())
    """
    _check_classes(stream)
    _check_masks(stream)
    for t in range(len(stream)):
        _check_task(stream, t, stream.task(t))
    _check_seed(stream, make)


def _check_classes(stream: TaskStream) -> None:
    flat = [c for classes in stream.classes for c in classes]
    twice = sorted({c for c in flat if flat.count(c) > 1})
    assert stream.returning or not twice, (
        f"class {twice[0]} arrives in more than one task; a class arrives once"
    )
    labels = _labels(stream)
    present = set(labels[labels >= 0].tolist())
    lost = sorted(present - set(flat))
    assert not lost, f"class {lost[0]} of the graph is in no task; label its nodes -1 or add it"
    empty = sorted(set(flat) - present)
    assert not empty, f"class {empty[0]} of the stream has no node in the graph"
    _nowhere((labels >= 0) & (stream.task_of < 0), "has a label but is in no task")
    assert len(stream) == len(stream.classes), (
        f"len(stream) is {len(stream)}, but stream.classes has {len(stream.classes)} tasks"
    )


def _check_masks(stream: TaskStream) -> None:
    together = torch.stack([getattr(stream, split) for split in SPLITS]).sum(dim=0)
    _nowhere(together > 1, "is in more than one of train, val and test")
    _nowhere((together > 0) & (stream.task_of < 0), "belongs to no task but is in a split")
    for split in SPLITS:
        present = set(_labels(stream)[getattr(stream, split)].tolist())
        for t, classes in enumerate(stream.classes):
            for c in classes:
                assert c in present, f"class {c} of task {t} has no {split} node"


def _nowhere(mask: Tensor, sentence: str) -> None:
    assert not bool(mask.any()), f"node {int(mask.long().argmax())} {sentence}"


def _check_task(stream: TaskStream, t: int, task: Task) -> None:
    nodes = stream.shown(t)
    labels, visible = _labels(stream)[nodes], task.graph.labels
    where = f"task {t}"
    came = stream.task_of[nodes]
    own = came == t
    missing = int((stream.task_of == t).sum() - own.sum())
    assert not missing, f"{where} does not show all its nodes"
    assert bool(((came >= 0) & (came <= t)).all()), f"{where} shows a node that arrives later"
    assert stream.context == "seen" or bool(own.all()), f"{where} shows nodes of other tasks"
    assert task.classes == stream.classes[t], (
        f"{where} says its classes are {task.classes}, the stream says {stream.classes[t]}"
    )
    assert task.graph.num_nodes == nodes.numel(), (
        f"{where} has {task.graph.num_nodes} nodes, but {nodes.numel()} nodes have its classes"
    )
    assert visible is not None, f"{where} has no labels, not even for training nodes"
    taught = torch.tensor([c in task.classes for c in labels.tolist()], dtype=torch.bool)
    for split in SPLITS:
        wanted = getattr(stream, split)[nodes] & own
        wanted = wanted & taught if split == "val" else wanted
        assert torch.equal(getattr(task, split), wanted), (
            f"the {split} mask of {where} is not that of the stream at its nodes"
        )
    for hidden, kind in ((task.test, "test nodes"), (~own, "nodes of context")):
        leaked = int((visible[hidden] >= 0).sum())
        assert not leaked, f"{where} shows the labels of {leaked} {kind}; they must be -1"
    known = task.train | task.val
    assert torch.equal(visible[known], labels[known]), (
        f"{where} shows a wrong label at a train or val node"
    )
    _check_edges(stream, nodes, task, where)
    full, part = stream.graph.features, task.graph.features
    assert full.shape[1] == part.shape[1], (
        f"{where} has {part.shape[1]} features per node, the stream's graph {full.shape[1]}"
    )
    whole, own_rows = (
        each.to_scipy() if isinstance(each, Csr) else each.cpu().numpy() for each in (full, part)
    )
    same = not (whole[nodes.cpu().numpy()] != own_rows).sum()
    assert same, f"the features of {where} are not those of the graph at its nodes"


def _check_edges(stream: TaskStream, nodes: Tensor, task: Task, where: str) -> None:
    """Compare edges as pairs of original nodes, found without the code that cuts subgraphs."""
    ids, n = nodes.cpu().numpy(), stream.graph.num_nodes
    full = stream.graph.adjacency.to_scipy().tocoo()
    inside = np.isin(full.row, ids) & np.isin(full.col, ids)
    wanted = full.row[inside].astype(np.int64) * n + full.col[inside]
    part = task.graph.adjacency.to_scipy().tocoo()
    found = ids[part.row] * n + ids[part.col]
    strange, lost = np.setdiff1d(found, wanted), np.setdiff1d(wanted, found)
    assert not strange.size, (
        f"{where} has {strange.size} edges that are not between its own nodes in the graph, "
        f"first from node {strange[0] % n} to node {strange[0] // n}"
    )
    assert not lost.size, (
        f"{where} lost {lost.size} edges between its own nodes, first from node "
        f"{lost[0] % n} to node {lost[0] // n}"
    )
    weights = np.array_equal(part.data[np.argsort(found)], full.data[inside][np.argsort(wanted)])
    assert weights, f"{where} changed the weight of an edge"


def _check_seed(stream: TaskStream, make: Callable[[int], TaskStream] | None) -> None:
    own = (stream.train, stream.val, stream.test)
    again: list[tuple[Tensor, ...]] = []
    if stream.fractions is not None:
        again.append(split_nodes(_labels(stream), seed=stream.seed, fractions=stream.fractions))
    for other in (make(stream.seed), make(stream.seed)) if make is not None else ():
        again.append(tuple(getattr(other, split) for split in SPLITS))
        assert other.classes == stream.classes, (
            f"seed {stream.seed} gives other classes per task when the stream is made again"
        )
        assert torch.equal(other.task_of, stream.task_of), (
            f"seed {stream.seed} gives other nodes per task when the stream is made again"
        )
    for masks in again:
        for split, first, second in zip(SPLITS, own, masks, strict=True):
            assert torch.equal(first.cpu(), second.cpu()), (
                f"seed {stream.seed} does not give the same {split} nodes again"
            )


def _labels(stream: TaskStream) -> Tensor:
    labels = stream.graph.labels
    assert labels is not None, "the stream's graph has no labels"
    return labels
