"""How far a node's neighbours can be believed: measured on the labelled edges of a task."""

from __future__ import annotations

import torch

from undrift.streams.task import Task

__all__ = ["trust_in_neighbours"]

_PRIOR_EDGES = 20.0  # a few labelled edges prove nothing: belief starts at 1 and weighs this much
_FULL_FROM = 0.25  # adjusted homophily from which neighbours are believed fully


def trust_in_neighbours(task: Task) -> float:
    """From 0 (neighbours say nothing about a node's class) to 1 (believe them).

    Over the m edges between training nodes, h is the share that joins one class and h0 what
    chance would give with the same degrees per class. The adjusted homophily
    `a = (h - h0) / (1 - h0)` is pulled toward 1 by 20 edges of belief; trust is `a / 0.25`, cut
    to 0..1. A task graph that is purer than the whole graph does not raise it, because chance
    within the task is what it is measured against. A task of one class says nothing: 1.
    """
    labels = task.graph.labels
    assert labels is not None  # noqa: S101  # a task has labels
    known = task.train.to(labels.device)
    edges = task.graph.adjacency
    receivers = torch.repeat_interleave(
        torch.arange(edges.shape[0], device=edges.device), edges.indptr.diff().long()
    )
    senders = edges.indices.long()
    both = known[receivers] & known[senders]
    ours, theirs = labels[receivers[both]], labels[senders[both]]
    m = int(both.sum()) / 2  # an edge stands there in both directions
    if len(task.classes) < 2 or m == 0:
        return 1.0
    classes = torch.tensor(task.classes, device=labels.device)
    shares = (ours.unsqueeze(1) == classes).double().mean(dim=0)
    chance = float(shares.square().sum())
    if chance > 1 - 1e-9:
        return 1.0
    adjusted = (float((ours == theirs).double().mean()) - chance) / (1 - chance)
    believed = (m * adjusted + _PRIOR_EDGES) / (m + _PRIOR_EDGES)
    return min(max(believed / _FULL_FROM, 0.0), 1.0)
