"""`Task`: all that a learner may see at one step of a stream, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.graphs.fingerprint import Fingerprint
from undrift.graphs.inputs import Array, check_mask
from undrift.sparse import Csr, as_scipy

Masks = tuple[Tensor, Tensor]
_SUMS = "sums:"  # how a digest begins since version 0.2.0
_VALIDATION = 0.2  # the share of labelled nodes that gamma and the like are chosen by


@dataclass(frozen=True, init=False)
class Task:
    """A task T_t = {G_t, Y_t} of the stream.

    `graph` holds this task's nodes only; edges to other tasks are not in it. `train`, `val` and
    `test` are disjoint boolean masks over its nodes; without `val` or `test`, no node is in it.
    Without any, those of the graph count. `classes` arrive with the task: those of the training
    nodes if not given. Labels of test nodes are not in it (-1), so no learner can look at them.

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

    def training(self, within: Tensor | None = None) -> Tensor:
        """The training nodes, or those of them in a mask, by their numbers."""
        mask = self.train if within is None else self.train & within
        return mask.nonzero().flatten()

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

    The seed and a node's id (its number, without `ids`) alone decide whether it validates. A class
    that would have no training node, or any with `validation=False`, has all its nodes there.
    """
    from undrift.streams.any_graph import as_batch

    batch = as_batch(batch)
    if isinstance(batch, Task):
        return batch
    labels = batch.labelled()
    known = labels >= 0
    if not bool(known.any()):
        what = "no node of this batch has a label (y, label), so there is nothing to learn from it"
        raise InputError(f"{what}; predict it, and observe it once some labels are known")
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


def _check_classes(classes: tuple[int, ...], train: Tensor, val: Tensor) -> None:
    if not classes or len(set(classes)) != len(classes) or min(classes) < 0:
        raise InputError(f"a task needs one or more different class ids from 0, not {classes}")
    known = torch.cat([train, val])
    strange = known[~torch.isin(known, torch.tensor(classes, device=known.device))]
    if strange.numel():
        problem = f"label {int(strange[0])} is outside the task's classes {classes}"
        raise InputError(f"{problem}; add the class or take its nodes out of train and val")
    missing = [c for c in classes if not bool((train == c).any())]
    if missing:
        raise InputError(f"class {missing[0]} of the task has no training node; leave it out")


def digest_of_rows(task: Task) -> str:
    """The digest of a table without neighbours, which has the same rows; empty for a graph."""
    if task.graph.nearest is None:
        return ""
    alone = task.graph.isolated(torch.arange(task.graph.num_nodes))
    return batch_digest(Task(alone, task.train, task.val, task.test, task.classes))


def batch_digest(task: Task) -> str:
    """A digest of all that a learner sees of a batch, dense or sparse, on any device."""
    graph, seen = task.graph, task.train | task.val
    marks = Fingerprint.of_places(graph.num_nodes, graph.device)
    splits = task.train.long() + 2 * task.val.long()
    parts = (
        graph.num_nodes,
        graph.num_features,
        marks.features(graph.features),
        marks.edges(graph.adjacency),
        marks.labels(4 * task.labels.masked_fill(~seen, -1) + splits),
    )
    return f"{_SUMS}{sha256(repr(parts).encode()).hexdigest()[:32]}"


def is_digest_of(digest: str, task: Task) -> bool:
    """Whether a digest that was kept is that of this batch."""
    if not digest.startswith(_SUMS):
        what = "the batch of this encoder was noted before version 0.2.0, in a way no longer read"
        raise InputError(f"{what}; learn anew, or use propagation, which trains no encoder")
    return digest == batch_digest(task)


def changed_nodes(before: Task, after: Task, ids: tuple[Any, Any] | None) -> Masks:
    """Masks over the nodes of both: those that differ in features, edges, label or split.

    A node that the other side lacks counts, and its neighbours. Without `ids`, node i is node i.
    """
    n, m = before.graph.num_nodes, after.graph.num_nodes
    here = there = np.arange(min(n, m))
    if ids is not None:
        names = [np.asarray(each).astype(str) for each in ids]
        for each, nodes, which in zip(names, (n, m), ("before", "after"), strict=True):
            if each.shape != (nodes,) or np.unique(each).size != nodes:
                raise InputError(f"the ids of the batch {which} must be {nodes} different names")
        _, here, there = np.intersect1d(names[0], names[1], return_indices=True)
    differ = torch.from_numpy(_differ(before, after, here, there))
    masks = []
    for task, common in ((before, here), (after, there)):
        links = task.graph.adjacency.to("cpu")
        lacking = torch.ones(links.shape[0], dtype=torch.bool)
        lacking[common] = False
        around = torch.zeros_like(lacking)
        for neighbours in (links, links.t()):
            around[neighbours.columns_of(lacking.nonzero().flatten())] = True
        differ |= around[common]
        masks.append(lacking)
    masks[0][here], masks[1][there] = differ, differ
    return masks[0].to(before.graph.device), masks[1].to(after.graph.device)


def changed_by_isolating(before: Task, after: Task, nodes: Tensor) -> Masks:
    """`changed_nodes` where these were isolated: they and their neighbours. Cost: their edges."""
    if before.graph.nearest is not None:  # then other nodes have other edges too
        return changed_nodes(before, after, None)
    links, mask = before.graph.adjacency, torch.zeros_like(before.train)
    mask[nodes] = True
    for neighbours in (links, links.t()):
        mask[neighbours.columns_of(nodes)] = True
    return mask, mask


def _differ(before: Task, after: Task, here: Array, there: Array) -> Array:
    """Of the nodes that are in both: whether something of the node itself is different."""
    a, b = ((task.train.long() + 2 * task.val.long()).cpu().numpy() for task in (before, after))
    differ: Array = a[here] != b[there]
    known = (a[here] > 0) | (b[there] > 0)
    a, b = (task.labels.cpu().numpy() for task in (before, after))
    differ |= (a[here] != b[there]) & known
    rows = [task.graph.features for task in (before, after)]
    if rows[0].shape[1] != rows[1].shape[1]:
        widths = f"{rows[0].shape[1]} features before and {rows[1].shape[1]} after"
        raise InputError(f"the batch has {widths}; give both the same columns")
    if any(isinstance(each, Csr) for each in rows):
        a, b = map(as_scipy, rows)
        differ |= np.diff((a[here] != b[there]).tocsr().indptr) > 0
    else:
        a, b = (each.to_dense().cpu().numpy() for each in rows)
        differ |= (a[here] != b[there]).any(axis=1)
    a, b = (as_scipy(task.graph.adjacency) for task in (before, after))
    unequal = (a[here][:, here] != b[there][:, there]).tocoo()
    differ[unequal.row] = differ[unequal.col] = True
    return differ
