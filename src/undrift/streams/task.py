"""`Task`: all that a learner may see at one step of a stream, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph

_VALIDATION = 0.2  # the share of labelled nodes that gamma and the like are chosen by


@dataclass(frozen=True, init=False)
class Task:
    """A task T_t = {G_t, Y_t} of the stream.

    `graph` holds this task's nodes only; edges to other tasks are not in it. `train`, `val` and
    `test` are disjoint boolean masks over its nodes; without `val` or `test`, no node is in it.
    `classes` are the classes that arrive with the task, those of the training nodes where they
    are not given. Labels of test nodes are not in it (-1): a learner cannot look at what it does
    not have. Without masks those of the graph count, which `Graph.from_pyg` keeps.

    >>> graph = Graph.from_arrays(torch.eye(3), [[0], [1]], labels=[4, 2, -1])
    >>> Task(graph, train=torch.tensor([True, True, False])).classes
    (2, 4)
    """

    graph: Graph
    train: Tensor
    val: Tensor
    test: Tensor
    classes: tuple[int, ...]

    def __init__(
        self,
        graph: Graph,
        train: Tensor | None = None,
        val: Tensor | None = None,
        test: Tensor | None = None,
        classes: Iterable[int] | None = None,
    ) -> None:
        nowhere = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
        given = {"train": train, "val": val, "test": test}
        if train is None and val is None and test is None:
            given = {name: graph.masks.get(name) for name in given}
        masks = {name: nowhere if mask is None else mask for name, mask in given.items()}
        for name, mask in masks.items():
            check_mask(mask, graph.num_nodes, f"{name} mask")
        if bool((torch.stack(list(masks.values())).sum(dim=0) > 1).any()):
            raise InputError("the train, val and test masks overlap; a node belongs to one of them")
        if not bool(masks["train"].any()):
            raise InputError("a task without training nodes cannot be learned; set its train mask")
        if graph.labels is None:
            raise InputError("a task's graph needs labels for its training nodes")
        if classes is None:
            classes = [c for c in graph.labels[masks["train"]].unique().tolist() if c >= 0]
        known = (graph.labels[masks[name]] for name in ("train", "val"))
        _check_classes(tuple(classes), *known)
        for name, value in {"graph": graph, **masks, "classes": tuple(classes)}.items():
            object.__setattr__(self, name, value)

    @property
    def labels(self) -> Tensor:
        """A class id per node, -1 where it is unknown."""
        return self.graph.labelled()

    def to(self, device: torch.device | str) -> Task:
        """The same task on another device; itself when it is there already."""
        graph = self.graph.to(device)
        if graph is self.graph and self.train.device == graph.device:
            return self
        train, val, test = (mask.to(graph.device) for mask in (self.train, self.val, self.test))
        return Task(graph, train, val, test, self.classes)


def isolating(task: Task, nodes: Tensor) -> Task:
    """The task as without these nodes: they keep their numbers, but no edge, label or split."""
    (train, val, test), classes = _splits_without(task, nodes)
    return Task(task.graph.isolated(nodes), train, val, test, classes)


def without(task: Task, nodes: Tensor) -> Task | None:
    """The task as it would have come without these nodes; None if no training node is left."""
    (train, val, test), classes = _splits_without(task, nodes)
    if not classes:
        return None
    kept = torch.ones(task.graph.num_nodes, dtype=torch.bool, device=task.graph.device)
    kept[nodes] = False
    return Task(task.graph.subgraph(kept), train[kept], val[kept], test[kept], classes)


def _splits_without(task: Task, nodes: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], list[int]]:
    """The masks without some nodes, and the classes left; one without training nodes is not."""
    train, val, test = (mask.clone() for mask in (task.train, task.val, task.test))
    for mask in (train, val, test):
        mask[nodes] = False
    labels = task.labels[train].unique()
    val &= torch.isin(task.labels, labels)
    left = labels.tolist()
    return (train, val, test), [c for c in task.classes if c in left]


def joined(known: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    """The known classes, then those of `more` that are new, each once."""
    return tuple(dict.fromkeys((*known, *more)))


def as_task(batch: Any, seed: int, ids: Any = None, *, validation: bool = True) -> Task:
    """A batch (`as_batch`) as a task: a task as it is, a graph with a fifth for validation.

    Whether a node validates is decided by the seed and its id (its number, without `ids`) alone,
    so that no other node's coming or going changes it. A class that would have no training node
    has all its nodes in training, and `validation=False` has every labelled node there.
    """
    from undrift.streams.any_graph import as_batch

    batch = as_batch(batch)
    if isinstance(batch, Task):
        return batch
    labels = batch.labelled()
    known = labels >= 0
    if not bool(known.any()):
        raise InputError(
            "no node of this batch has a label, so there is nothing to learn from it; predict it, "
            "and observe it once some labels are known"
        )
    if not validation:
        return Task(batch, known)
    key, names = str(seed).encode(), range(batch.num_nodes) if ids is None else np.asarray(ids)
    words = (blake2b(str(name).encode(), digest_size=8, key=key).digest() for name in names)
    drawn = np.fromiter((int.from_bytes(word, "big") / 2**64 for word in words), np.float64)
    val = known & torch.from_numpy(drawn < _VALIDATION).to(labels.device)
    for c in labels[val].unique().tolist():
        if not bool((~val & (labels == c)).any()):
            val &= labels != c
    return Task(batch, known & ~val, val)


def check_mask(mask: Tensor, n: int, what: str) -> None:
    """Reject a mask that is not a boolean per node; `what` names it in the error."""
    if mask.dtype != torch.bool or mask.shape != (n,):
        raise InputError(
            f"the {what} must be {n} booleans, one per node, not {tuple(mask.shape)} of "
            f"{mask.dtype}"
        )


def _check_classes(classes: tuple[int, ...], train: Tensor, val: Tensor) -> None:
    if not classes or len(set(classes)) != len(classes) or min(classes) < 0:
        raise InputError(f"a task needs one or more different class ids from 0, not {classes}")
    known = torch.cat([train, val])
    strange = known[~torch.isin(known, torch.tensor(classes, device=known.device))]
    if strange.numel():
        raise InputError(
            f"label {int(strange[0])} is outside the task's classes {classes}; add the class to "
            "the task or take its nodes out of train and val"
        )
    missing = [c for c in classes if not bool((train == c).any())]
    if missing:
        raise InputError(
            f"class {missing[0]} of the task has no training node; leave the class out or move "
            "some of its nodes to train"
        )
