"""How well a statistic tells members from others: ROC curve, AUC, true positives at few false."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_CONFIDENCE = 1.959964  # deviations of a normal distribution: 95 % within
_HALVINGS = 40


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


def auc_interval(area: float, members: int, others: int) -> tuple[float, float]:
    """Where the AUC lies with 95 % confidence, if it was `area` among so many of each.

    The values t with `|t - area| <= 1.96 sqrt(V(t))`, for Hanley and McNeil's variance of equal
    groups, `V(t) = t (1 - t) (1 + N (1 - t) / (2 - t) + N t / (1 + t)) / (m n)`,
    `N = (m + n) / 2 - 1` (Newcombe, Statistics in Medicine 25, 2006, method 5). Unlike `area` plus
    or minus an error it has a width at 1, too. Nodes count as drawn one by one.

    >>> [round(x, 2) for x in auc_interval(1.0, 50, 5)]
    [0.79, 1.0]
    """
    both = (members + others) / 2 - 1

    def apart(t: float) -> bool:
        spread = t * (1 - t) * (1 + both * (1 - t) / (2 - t) + both * t / (1 + t))
        return (t - area) ** 2 > _CONFIDENCE**2 * spread / (members * others)

    return _edge(apart, area, 0.0), _edge(apart, area, 1.0)


def _edge(apart: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where values begin to be apart, by bisection from one that is not."""
    if not apart(outside):
        return outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if apart(middle) else (middle, outside)
    return outside


def found_at(statistic: Tensor, members: Tensor, false_rate: float) -> float:
    """The share of members found where at most this share of the others is taken for one.

    >>> found_at(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([True, False, True]), 0.01)
    0.5
    """
    false, true = roc(statistic, members)
    return float(true[false <= false_rate + 1e-12].max())
