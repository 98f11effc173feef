"""`ClassSums`: plain sums over labelled rows, balanced between classes when they are solved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.additive import PRIOR_ROWS, PerClass
from undrift.analytic.gram import add_product_, pieces
from undrift.analytic.rounding import combined, drawn, level, of_rows, profile
from undrift.analytic.statistics import RidgeStatistics
from undrift.typing import Rows

_NO_VARIANCE = 1e-12  # of the mean square: a column that does not vary within classes


@dataclass(frozen=True, eq=False)
class ClassSums(PerClass):
    """`gram = sum z z^T`, and per class c: `moment = sum z`, `squares = sum z o z`, `counts`.

    No row has a weight, so the sum depends only on which rows are in it. A commutative group: `a +
    b`, `a - b`, `zero`. All in float64. Memory: 8 (d^2 + 2 d C) bytes. `rounding`: how far
    rounding may have moved the Gram, which grows with every row that was ever added or subtracted.

    >>> one, two = torch.tensor([[1.0], [0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> (ClassSums.of(one, two) + ClassSums.of(one, two)).counts.tolist()
    [2.0, 2.0]
    """

    per_class: ClassVar[tuple[str, ...]] = ("moment", "squares", "counts")
    stored_as_half: ClassVar[tuple[str, ...]] = ("gram",)
    added_later: ClassVar[tuple[str, ...]] = ("rounding",)

    gram: Tensor
    moment: Tensor
    squares: Tensor
    counts: Tensor
    rounding: float = 0.0

    @classmethod
    def zero(cls, width: int, classes: int = 0, device: str = "cpu") -> ClassSums:
        """The sum of no rows."""
        plain = RidgeStatistics.zero(width, classes, device)
        counts = torch.zeros(classes, dtype=torch.float64, device=device)
        return cls(plain.gram, plain.moment, torch.zeros_like(plain.moment), counts)

    @classmethod
    def of(cls, rows: Rows, targets: Tensor) -> ClassSums:
        """The sum over these rows, whose class is a one in `targets` (`one_hot`)."""
        y = targets.double()
        plain = RidgeStatistics.of(rows, y)
        squares = _add_squares(torch.zeros_like(plain.moment), rows, y)
        rounding = of_rows(plain.count, float(plain.gram.trace()))
        return cls(plain.gram, plain.moment, squares, y.sum(dim=0), rounding)

    def add(self, rows: Rows, targets: Tensor) -> ClassSums:
        """The sum with these rows; `targets` may have more columns than were seen."""
        y = targets.double()
        wide = self.grow(y.shape[1])
        plain = wide.plain().add(rows, y)
        squares = _add_squares(wide.squares.clone(), rows, y)
        rounding = math.hypot(self.rounding, of_rows(rows.shape[0], float(plain.gram.trace())))
        counts = wide.counts + y.sum(dim=0)
        return ClassSums(plain.gram, plain.moment, squares, counts, rounding)

    def _beside(self, other: ClassSums, sign: int) -> dict[str, Any]:
        return {"rounding": combined(self, other, sign)}

    # what it is --------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Columns of a row: d."""
        return int(self.gram.shape[0])

    @property
    def trace(self) -> float:
        """`sum |z|^2`."""
        return float(self.gram.trace())

    def squares_along(self, directions: Tensor) -> Tensor:
        """`sum (z^T w)^2` over all rows z, for every column w."""
        return (directions * (self.gram @ directions)).sum(dim=0)

    def shaken(self, noise: torch.Generator) -> ClassSums:
        """The same sums with noise that is larger than their rounding (`level`)."""
        size, share = level(self), profile(self.gram.diagonal())
        root, rows = share.sqrt().unsqueeze(1), 0.0
        if self.trace > 0:
            rows = math.sqrt(self.count / self.trace)
        half = drawn(size * (root @ root.T), noise).tril()
        return replace(
            self,
            gram=self.gram + half + half.tril(-1).T,
            moment=self.moment + drawn((rows * size * root).expand_as(self.moment), noise),
            squares=self.squares + drawn((size * root.square()).expand_as(self.squares), noise),
        )

    def below_zero(self, before: ClassSums) -> bool:
        """Whether more was subtracted from `before` than it held, as far as a sum can tell.

        Squares and variances are never negative, but for a trifle of rounding.
        """
        held = before.grow(self.classes).squares + self.squares.abs()
        least = -1e-9 * held.sum(dim=0)
        spread = self.squares - self.moment.square() / self.counts.clamp(min=1)
        diagonal = before.gram.diagonal()
        return (
            bool((self.counts < -0.5).any())
            or bool((spread < least).any())
            or bool((self.gram.diagonal() < -1e-9 * diagonal.abs().max()).any())
        )

    def plain(self) -> RidgeStatistics:
        """R and Q in which every row weighs the same."""
        return RidgeStatistics(self.gram, self.moment, self.count, float(self.counts.sum()))

    def balanced(self) -> RidgeStatistics:
        """R and Q in which every class with rows weighs one, whatever its size.

            R = S o (sum_c r_c r_c^T) + sum_c mu_c mu_c^T,    Q = [mu_c]

        with class means mu_c, the pooled covariance S within classes, and `r_c^2` the variances
        of class c over those of S, shrunk towards 1 as by 20 rows. Cost: 2 d^2 C operations.
        """
        there = self.counts > 0.5
        sizes = self.counts.clamp(min=1)
        means = self.moment / sizes
        total = max(float(self.counts.sum()), 1.0)
        pooled = torch.addmm(self.gram, self.moment, means.T, alpha=-1).div_(total)
        ratio = self.variance_ratios(pooled.diagonal()).sqrt() * there
        gram = pooled.mul_(ratio @ ratio.T).addmm_(means, means.T)
        return RidgeStatistics(gram, means, self.count, float(there.sum()))

    def spread(self) -> Tensor:
        """The Gram of all rows at their mean weight in `balanced`: C / n each."""
        there = float((self.counts > 0.5).sum())
        return self.gram * (there / max(float(self.counts.sum()), 1.0))

    def score_spread(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """`W^T S W`, the pooled covariance of scores, and each class's variance of them over it."""
        means = self.moment / self.counts.clamp(min=1)
        pooled = torch.addmm(self.gram, self.moment, means.T, alpha=-1)
        pooled.div_(max(float(self.counts.sum()), 1.0))
        diagonal = self.without_rounding(pooled.diagonal())
        look = (weights - weights.mean(dim=1, keepdim=True)).square().sum(dim=1) * diagonal
        width = (look @ self.variance_ratios(diagonal)) / look.sum().clamp(min=1e-300)
        return weights.T @ (pooled @ weights), width

    def variance_ratios(self, pooled: Tensor) -> Tensor:
        """`[d, C]`: each class's shrunk variances over the pooled ones."""
        sizes = self.counts.clamp(min=1)
        own = (self.squares / sizes - (self.moment / sizes).square()).clamp(min=0)
        share = self.counts / (self.counts + PRIOR_ROWS)
        varies = self.without_rounding(pooled) > 0
        relative = own / torch.where(varies, pooled, 1.0).unsqueeze(1)
        mixed = share * relative + (1 - share)
        return torch.where(varies.unsqueeze(1), mixed, torch.ones_like(mixed))

    def without_rounding(self, pooled: Tensor) -> Tensor:
        """Pooled variances, zero where they are what rounding leaves of a column's squares."""
        least = _NO_VARIANCE * self.gram.diagonal() / max(float(self.counts.sum()), 1.0)
        return torch.where((pooled > least) & (pooled > 0), pooled, 0.0)


def _add_squares(squares: Tensor, rows: Rows, targets: Tensor) -> Tensor:
    """`squares += (rows o rows)^T targets`, in place."""
    for where, part in pieces(rows):
        add_product_(squares, part.double().square(), targets[where])
    return squares
