"""`Finding`: what one attack achieved on one sum; and the AUC with its interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Measure = Literal["cosine", "auc", "rows", "share"]
"""`cosine`: of a row that was read and the true one. `auc`: of members against others. `rows`: how
many rows were read. `share`: of unknown words that were named."""

LEAST: dict[str, float] = {"cosine": 0.9, "auc": 0.6, "rows": 1.0, "share": 0.5}
"""The figure from which a measure counts as leaking."""

GUESSING = 0.5
"""The AUC of a guess. An attack is better than that where its interval lies above."""

_CONFIDENCE = 1.959964  # deviations of a normal distribution: 95 % within


@dataclass(frozen=True)
class Finding:
    """What an attack found.

    `where`: the sum. `tried`: what was done, in words. `figure`: the result in terms of `measure`;
    None where the attack could not be tried, and `tried` says why. `rows`: how many rows are in
    the number that was attacked. `measured`: False where the figure is predicted from counts.
    `interval`: where the figure lies with 95 % confidence (`auc_interval`).

    >>> few = Finding("span", "mix", "20 rows against 8", "auc", 0.66, interval=(0.42, 0.83))
    >>> few.leaks, few.open, few.text
    (False, True, 'auc 0.66 (0.42 to 0.83)')
    """

    attack: str
    where: str
    tried: str
    measure: Measure
    figure: float | None
    rows: int | None = None
    measured: bool = True
    interval: tuple[float, float] | None = None

    @property
    def high(self) -> bool:
        """Whether the figure reaches `LEAST`, by chance or not."""
        return self.figure is not None and self.figure >= LEAST[self.measure]

    @property
    def leaks(self) -> bool:
        """Whether the figure is high and better than a guess."""
        return self.high and (self.interval is None or self.interval[0] > GUESSING)

    @property
    def open(self) -> bool:
        """Whether the figure is high and may be chance: too few nodes were compared."""
        return self.high and not self.leaks

    @property
    def text(self) -> str:
        """The figure, with its interval."""
        if self.figure is None:
            return "not tried"
        low = "" if self.interval is None else " ({:.2f} to {:.2f})".format(*self.interval)
        return f"{self.measure} {self.figure:.2f}{low}"


def roc(statistic: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """False and true positive rates `[k]` at every threshold, from none to all.

    Larger means member. Equal values share a threshold, so their order does not count.
    """
    values, order = statistic.double().sort(descending=True)
    hits = members[order].double()
    last = torch.cat([values[1:] != values[:-1], torch.ones(1, dtype=torch.bool)])
    found, wrong = hits.cumsum(0)[last], (1 - hits).cumsum(0)[last]
    start = torch.zeros(1, dtype=torch.float64)
    false = torch.cat([start, wrong / (1 - hits).sum().clamp(min=1)])
    return false, torch.cat([start, found / hits.sum().clamp(min=1)])


def auc(statistic: Tensor, members: Tensor) -> float:
    """The chance that a member has a larger value than another node; ties count as half.

    >>> auc(torch.tensor([1.0, 1.0]), torch.tensor([True, False]))
    0.5
    """
    false, true = roc(statistic, members)
    return float(torch.trapezoid(true, false))


def auc_interval(area: float, members: int, others: int) -> tuple[float, float]:
    """Where the AUC lies with 95 % confidence, if it was `area` among so many of each.

    The values t with `|t - area| <= 1.96 sqrt(V(t))`, for Hanley and McNeil's variance of equal
    groups, `V(t) = t (1 - t) (1 + N (1 - t) / (2 - t) + N t / (1 + t)) / (m n)`,
    `N = (m + n) / 2 - 1` (Newcombe, Statistics in Medicine 25, 2006, method 5). It has a width at
    1, too. Nodes count as drawn one by one.
    """
    both = (members + others) / 2 - 1

    def apart(t: float) -> bool:
        variance = t * (1 - t) * (1 + both * (1 - t) / (2 - t) + both * t / (1 + t))
        return (t - area) ** 2 > _CONFIDENCE**2 * variance / (members * others)

    return _edge(apart, area, 0.0), _edge(apart, area, 1.0)


def _edge(apart: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where values begin to be apart, by bisection from one that is not."""
    if not apart(outside):
        return outside
    for _ in range(40):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if apart(middle) else (middle, outside)
    return outside
