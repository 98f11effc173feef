"""`ClassSums`: plain sums over labelled rows, balanced between classes when they are solved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from undrift.analytic.additive import Rounded
from undrift.analytic.rounding import drawn, level, of_rows, profile
from undrift.analytic.statistics import RidgeStatistics, add_product_, pieces
from undrift.typing import Rows

_NO_VARIANCE = 1e-12  # of the mean square: a column that does not vary within classes


@dataclass(frozen=True, eq=False)
class ClassSums(Rounded):
    """`gram = sum z z^T`, and per class c: `moment = sum z`, `squares = sum z o z`, `counts`.

    No row has a weight, so the sum depends only on which rows are in it. A commutative group, in
    float64. Memory: 8 (d^2 + 2 d C) bytes. `rounding`: how far rounding may have moved the Gram,
    which grows with every row that was ever added or subtracted.

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
        return cls.zero(rows.shape[1], device=str(rows.device)).add(rows, targets)

    def add(self, rows: Rows, targets: Tensor) -> ClassSums:
        """The sum with these rows; `targets` may have more columns than were seen."""
        y = targets.double()
        wide = self.grow(y.shape[1])
        plain, squares = wide.plain().add(rows, y), wide.squares.clone()
        for where, part in pieces(rows):
            add_product_(squares, part.double().square(), y[where])
        rounding = math.hypot(self.rounding, of_rows(rows.shape[0], float(plain.gram.trace())))
        return ClassSums(plain.gram, plain.moment, squares, wide.counts + y.sum(dim=0), rounding)

    @property
    def diagonal(self) -> Tensor:
        """That of the Gram."""
        return self.gram.diagonal()

    @property
    def lengths(self) -> Tensor:
        """`sum |z|^2` of each class."""
        return self.squares.sum(dim=0)

    @property
    def scatter(self) -> Tensor:
        """`[d, C]`: the squares around each class's mean."""
        return self.squares - self.moment.square() / self.counts.clamp(min=1)

    def squares_along(self, directions: Tensor) -> Tensor:
        """`sum (z^T w)^2` over all rows z, for every column w."""
        return (directions * (self.gram @ directions)).sum(dim=0)

    def shaken(self, noise: torch.Generator) -> ClassSums:
        """The same sums with noise that is larger than their rounding (`level`)."""
        size, root = level(self), profile(self.diagonal).sqrt().unsqueeze(1)
        column = (self.row_length * size * root).expand_as(self.moment)
        half = drawn(size * (root @ root.T), noise).tril()
        return replace(
            self,
            gram=self.gram + half + half.tril(-1).T,
            moment=self.moment + drawn(column, noise),
            squares=self.squares + drawn((size * root.square()).expand_as(self.squares), noise),
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
        pooled, means = self.products_around.div_(self.total), self.means
        ratio = self.variance_ratios(pooled.diagonal()).sqrt() * (self.counts > 0.5)
        gram = pooled.mul_(ratio @ ratio.T).addmm_(means, means.T)
        return RidgeStatistics(gram, means, self.count, self.present)

    @property
    def products_around(self) -> Tensor:
        """The products around the class means: n times S, the covariance within classes."""
        return torch.addmm(self.gram, self.moment, self.means.T, alpha=-1)

    def at_mean_weight(self) -> Tensor:
        """The Gram of all rows at their mean weight in `balanced`: C / n each."""
        return self.gram * (self.present / self.total)

    def score_covariance(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """`W^T S W`, the pooled covariance of scores, and each class's variance of them over it."""
        pooled = self.products_around.div_(self.total)
        diagonal = self.without_rounding(pooled.diagonal())
        centre = weights.mean(dim=1, keepdim=True) if weights.shape[1] > 1 else 0.0
        look = (weights - centre).square().sum(dim=1) * diagonal
        width = (look @ self.variance_ratios(diagonal)) / look.sum().clamp(min=1e-300)
        return weights.T @ (pooled @ weights), width

    def variance_ratios(self, pooled: Tensor) -> Tensor:
        """`[d, C]`: each class's shrunk variances over the pooled ones."""
        own = (self.squares / self.counts.clamp(min=1) - self.means.square()).clamp(min=0)
        varies = self.without_rounding(pooled) > 0
        relative = own / pooled.unsqueeze(1)
        return torch.where(varies.unsqueeze(1), self.shrunk(relative), 1.0)

    def without_rounding(self, pooled: Tensor) -> Tensor:
        """Pooled variances, zero where they are what rounding leaves of a column's squares."""
        least = (_NO_VARIANCE * self.diagonal / self.total).clamp(min=0)
        return torch.where(pooled > least, pooled, 0.0)
