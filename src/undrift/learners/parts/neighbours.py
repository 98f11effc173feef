"""How far a node's neighbours can be believed: measured on the labelled edges of a task."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.streams.task import Task

__all__ = ["TELLING_FROM", "pattern_of_neighbours", "trust_in_neighbours"]

_PRIOR_EDGES = 20.0  # a few labelled edges prove nothing: belief starts at 1 and weighs this much
_FULL_FROM = 0.25  # adjusted homophily from which neighbours are believed fully

TELLING_FROM = 0.3
"""The pattern from which neighbours tell a node's class although they are of another: more than
the 0.25 that three classes have when neighbours are merely never of a node's own."""


def trust_in_neighbours(task: Task) -> float:
    """From 0 (neighbours say nothing about a node's class) to 1 (believe them).

    Over the m edges between training nodes, h is the share that joins one class and h0 what
    chance would give with the same degrees per class. The adjusted homophily
    `a = (h - h0) / (1 - h0)` is pulled toward 1 by 20 edges of belief; trust is `a / 0.25`, cut
    to 0..1. A task graph that is purer than the whole graph does not raise it, because chance
    within the task is what it is measured against. A task of one class says nothing: 1.
    """
    ours, theirs = _labelled_ends(task)
    m = ours.numel() / 2  # an edge stands there in both directions
    if len(task.classes) < 2 or m == 0:
        return 1.0
    classes = torch.tensor(task.classes, device=ours.device)
    shares = (ours.unsqueeze(1) == classes).double().mean(dim=0)
    chance = float(shares.square().sum())
    if chance > 1 - 1e-9:
        return 1.0
    adjusted = (float((ours == theirs).double().mean()) - chance) / (1 - chance)
    believed = (m * adjusted + _PRIOR_EDGES) / (m + _PRIOR_EDGES)
    return min(max(believed / _FULL_FROM, 0.0), 1.0)


def pattern_of_neighbours(task: Task, least_classes: int = 3) -> float:
    """From 0 (a neighbour's class says nothing) to 1 (it gives a node's own class away).

    Cramer's V squared of the two ends of the m edges between training nodes: with P the share
    of edges that join classes a and b, and p its sums, `sum P_ab^2 / (p_a p_b) - 1` over
    (C - 1), less what m edges give by chance, `C (C - 1) / 2m`, and pulled toward 0 by 20 edges.
    It does not ask whether the ends agree: classes that link only to the next one have a
    pattern, classes that link to all others alike have almost none, `1 / (C - 1)^2`. With two
    classes the two cannot be told apart, so it is 0 under `least_classes`.
    """
    ours, theirs = _labelled_ends(task)
    m = ours.numel() / 2
    classes = torch.tensor(task.classes, device=ours.device)
    table = _one_hot(ours, classes).T @ _one_hot(theirs, classes) / max(2 * m, 1)
    share = table.sum(dim=1)
    table, share = table[share > 0][:, share > 0], share[share > 0]
    count = share.numel()
    if count < max(least_classes, 2):
        return 0.0
    above = float((table.square() / torch.outer(share, share)).sum()) - 1
    measured = (above - count * (count - 1) / (2 * m)) / (count - 1)
    return min(max(measured, 0.0) * m / (m + _PRIOR_EDGES), 1.0)


def _labelled_ends(task: Task) -> tuple[Tensor, Tensor]:
    """The classes at both ends of every edge between training nodes, in both directions."""
    labels = task.graph.labels
    assert labels is not None  # noqa: S101  # a task has labels
    known = task.train.to(labels.device)
    edges = task.graph.adjacency
    receivers = torch.repeat_interleave(
        torch.arange(edges.shape[0], device=edges.device), edges.indptr.diff().long()
    )
    senders = edges.indices.long()
    both = known[receivers] & known[senders]
    return labels[receivers[both]], labels[senders[both]]


def _one_hot(labels: Tensor, classes: Tensor) -> Tensor:
    return (labels.unsqueeze(1) == classes).double()
