"""How well a statistic tells members from others: ROC curve, AUC, true positives at few false."""

from __future__ import annotations

import torch
from torch import Tensor


def roc(statistic: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """False and true positive rates `[k]` at every threshold, from none to all.

    Larger means member. Equal values share a threshold, so a statistic that cannot tell two rows
    apart gets no credit for their order. Cost: n log n.

    >>> roc(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([True, False, True]))[1].tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    values, order = statistic.double().sort(descending=True)
    hits = members[order].double()
    last = torch.cat([values[1:] != values[:-1], torch.ones(1, dtype=torch.bool)])
    found, wrong = hits.cumsum(0)[last], (1 - hits).cumsum(0)[last]
    start = torch.zeros(1, dtype=torch.float64)
    false = torch.cat([start, wrong / (1 - hits).sum().clamp(min=1)])
    return false, torch.cat([start, found / hits.sum().clamp(min=1)])


def auc(statistic: Tensor, members: Tensor) -> float:
    """The chance that a member has a larger value than another, ties counted as half.

    >>> auc(torch.tensor([1.0, 1.0]), torch.tensor([True, False]))
    0.5
    """
    false, true = roc(statistic, members)
    return float(torch.trapezoid(true, false))


def found_at(statistic: Tensor, members: Tensor, false_rate: float) -> float:
    """The share of members found where at most this share of the others is taken for one.

    >>> found_at(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([True, False, True]), 0.01)
    0.5
    """
    false, true = roc(statistic, members)
    return float(true[false <= false_rate + 1e-12].max())
