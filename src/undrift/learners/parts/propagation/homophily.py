"""How far the classes of neighbours agree, measured on labelled edges."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.streams.task import Task

PRIOR_EDGES = 20.0
"""Weight of the prior in both measures: a few labelled edges prove nothing."""

_FULL_FROM = 0.25  # adjusted homophily from which the homophily weight is 1


def homophily_weight(task: Task) -> float:
    """How far neighbours resemble a node, 0 to 1: the adjusted homophily of a task, over 0.25.

    Over the m edges between training nodes, h is the share within a class and h0 that share by
    chance at the same degrees. `a = (h - h0) / (1 - h0)` (Platonov et al., "Characterizing graph
    datasets for node classification", NeurIPS 2023) is shrunk towards 1 with the weight of 20
    edges, divided by 0.25 and cut to 0..1. A task of one class gives 1.
    """
    ours, theirs = labelled_edges(task)
    m = ours.numel() / 2  # an edge stands there in both directions
    if len(task.classes) < 2 or m == 0:
        return 1.0
    classes = torch.tensor(task.classes, device=ours.device)
    shares = (ours.unsqueeze(1) == classes).double().mean(dim=0)
    chance = float(shares.square().sum())
    if chance > 1 - 1e-9:
        return 1.0
    adjusted = (float((ours == theirs).double().mean()) - chance) / (1 - chance)
    shrunk = (m * adjusted + PRIOR_EDGES) / (m + PRIOR_EDGES)
    return min(max(shrunk / _FULL_FROM, 0.0), 1.0)


def label_association(task: Task, least_classes: int = 3) -> float:
    """How much a neighbour's class tells of a node's, 0 to 1, whether or not the two agree.

    Cramer's V squared over the m edges between training nodes: with P_ab the share of edges that
    join classes a and b, and p its marginal, `(sum_ab P_ab^2 / (p_a p_b) - 1) / (C - 1)`, less its
    expectation under independence, `C / 2m`, and shrunk towards 0 with the weight of 20 edges.
    Classes that link only to the next one give 1, classes that link to all others alike
    `1 / (C - 1)^2`. Two classes cannot tell the two cases apart: 0 under `least_classes`.
    """
    ours, theirs = labelled_edges(task)
    m = ours.numel() / 2
    classes = torch.tensor(task.classes, device=ours.device)
    table = one_of(ours, classes).T @ one_of(theirs, classes) / max(2 * m, 1)
    share = table.sum(dim=1)
    table, share = table[share > 0][:, share > 0], share[share > 0]
    count = share.numel()
    if count < max(least_classes, 2):
        return 0.0
    above = float((table.square() / torch.outer(share, share)).sum()) - 1
    measured = (above - count * (count - 1) / (2 * m)) / (count - 1)
    return min(max(measured, 0.0) * m / (m + PRIOR_EDGES), 1.0)


def labelled_edges(task: Task) -> tuple[Tensor, Tensor]:
    """The classes at both ends of every edge between training nodes, in both directions."""
    labels, known, edges = task.labels, task.train, task.graph.adjacency
    receivers, senders = edges.row_of_entry(), edges.indices.long()
    both = known[receivers] & known[senders]
    return labels[receivers[both]], labels[senders[both]]


def one_of(labels: Tensor, classes: Tensor) -> Tensor:
    """A one in the column of each label's class."""
    return (labels.unsqueeze(1) == classes).double()
