"""`ThinSums`: class sums that see the Gram through a few random directions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from undrift.analytic.additive import Rounded
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import drawn, level, likely, of_rows, profile
from undrift.analytic.solve import Thin, ThinStatistics
from undrift.analytic.statistics import BUDGET_MB, add_product_, pieces
from undrift.typing import Rows

_ON_CPU_MB = 16  # larger arrays are handed out by the system anew each time, page by page
_ROUNDING = 1e-12  # of all squares: what is left within classes if nothing is
_SHIFT = 1e-9  # of the mean diagonal: keeps directions that no row has from being divided by zero


@dataclass(frozen=True, eq=False)
class ThinSums(Rounded):
    """`seen = G omega` for the Gram matrix G and `rank` random directions, in place of G.

    Beside it the diagonal of G, and per class: `moment = sum z`, `lengths = sum |z|^2`, `counts`.
    omega is drawn from `seed`. A commutative group like `ClassSums`, with 8 d (rank + C + 1) bytes
    in place of 4 d^2. When solving, the covariance within classes is the Nystroem matrix `Y
    (omega^T Y)^-1 Y^T` of what was seen of it (Y), with its true diagonal (Tropp, Yurtsever, Udell
    and Cevher, NeurIPS 2017). The means of the classes are exact.

    >>> rows = torch.eye(4, dtype=torch.float64)
    >>> tuple(ThinSums.of(rows, torch.ones(4, 1), rank=2).seen.shape)
    (4, 2)
    """

    per_class: ClassVar[tuple[str, ...]] = ("moment", "lengths", "counts")
    agreed: ClassVar[tuple[str, ...]] = ("seed",)
    added_later: ClassVar[tuple[str, ...]] = ("rounding",)

    seen: Tensor
    diagonal: Tensor
    moment: Tensor
    lengths: Tensor
    counts: Tensor
    seed: int
    rounding: float = 0.0

    @classmethod
    def zero(
        cls, width: int, classes: int = 0, device: str = "cpu", *, rank: int, seed: int = 0
    ) -> ThinSums:
        """The sum of no rows."""
        zeros = partial(torch.zeros, dtype=torch.float64, device=device)
        per_class = zeros(width, classes), zeros(classes), zeros(classes)
        return cls(zeros(width, rank), zeros(width), *per_class, seed)

    @classmethod
    def of(cls, rows: Rows, targets: Tensor, *, rank: int, seed: int = 0) -> ThinSums:
        """The sum over these rows, whose class is a one in `targets` (`one_hot`)."""
        none = cls.zero(rows.shape[1], device=str(rows.device), rank=rank, seed=seed)
        return none.add(rows, targets)

    def add(self, rows: Rows, targets: Tensor) -> ThinSums:
        """The sum with these rows, and perhaps more classes. Cost: 4 nnz rank operations."""
        return self.add_pieces([(rows, targets)], targets.shape[1])

    def add_pieces(self, each: Iterable[tuple[Rows, Tensor]], classes: int) -> ThinSums:
        """The same with rows and targets piece by piece. Memory: `at_once_mb` three times."""
        wide, omega = self.grow(classes), self.directions()
        before = wide.seen, wide.diagonal, wide.moment, wide.lengths, wide.counts
        seen, diagonal, moment, lengths, counts = (table.clone() for table in before)
        few = ((x, y[where]) for rows, y in each for where, x in pieces(rows, self.at_once_mb))
        for rows, targets in few:
            x, y = rows.double(), targets.double()
            add_product_(seen, x, x @ omega)
            add_product_(moment, x, y)
            square = x.square()
            diagonal += square.sum(dim=0)
            lengths += square.sum(dim=1) @ y
            counts += y.sum(dim=0)
        more = int(counts.sum()) - self.count, float(diagonal.sum())
        rounding = math.hypot(self.rounding, of_rows(*more))
        return ThinSums(seen, diagonal, moment, lengths, counts, self.seed, rounding)

    def directions(self) -> Tensor:
        """omega: standard normal, drawn on the CPU, so that every device uses the same."""
        return _directions(self.seed, self.width, self.rank).to(self.seen.device)

    scatter = Rounded.squares_around  # of all columns together: no more is kept

    @property
    def products_around(self) -> Tensor:
        """The products around the class means, through the directions."""
        return self.seen - self.moment @ (self.means.T @ self.directions())

    def squares_along(self, directions: Tensor) -> Tensor:
        """`sum (z^T w)^2` over all rows z, for every column w, as far as the Gram was seen."""
        return (directions * replace(self).products().times(directions)).sum(dim=0)

    def shaken(self, noise: torch.Generator) -> ThinSums:
        """The same sums with noise that is larger than their rounding (`level`)."""
        size, share = level(self), profile(self.diagonal)
        column = size * share.sqrt().unsqueeze(1)
        return replace(
            self,
            seen=self.seen + drawn(column.expand_as(self.seen), noise),
            diagonal=self.diagonal + drawn(size * share, noise),
            moment=self.moment + drawn((self.row_length * column).expand_as(self.moment), noise),
            lengths=self.lengths + drawn(torch.full_like(self.lengths, size), noise),
        )

    @property
    def at_once_mb(self) -> float:
        """Megabytes of dense rows that are added at a time."""
        return _ON_CPU_MB if self.seen.device.type == "cpu" else BUDGET_MB

    @property
    def rank(self) -> int:
        """Directions through which the Gram is seen."""
        return int(self.seen.shape[1])

    @cached_property
    def within(self) -> Thin:
        """The sum of squares and products around the class means, as far as it was seen.

        What rounding or a large batch that was subtracted left is not divided by.
        """
        y = self.products_around
        core = self.directions().T @ y
        core = (core + core.T) / 2
        scale = float(core.diagonal().mean())
        diagonal = (self.diagonal - (self.moment * self.means).sum(dim=1)).clamp(min=0)
        noise = likely(self) * math.sqrt(self.rank) / 4  # of the core: its largest eigenvalue
        if scale <= max(_ROUNDING * self.trace, noise):  # every row is its class's mean
            return Thin(diagonal, y.new_zeros(self.width, 0))
        lower = _root(core, max(_SHIFT * scale, noise, 1e-300))
        factor = torch.linalg.solve_triangular(lower, y.T, upper=False).T
        return Thin((diagonal - factor.square().sum(dim=1)).clamp(min=0), factor)

    def plain(self) -> ThinStatistics:
        """R and Q in which every row weighs the same."""
        sizes, total = self.counts.clamp(min=1).sqrt(), float(self.counts.sum())
        columns = self.moment / sizes
        return ThinStatistics.of_classes(self.within, columns, sizes, self.count, total)

    def balanced(self) -> ThinStatistics:
        """R and Q in which every class with rows weighs one, as in `ClassSums.balanced`.

        No squares are kept per class, as they would tell who is among a few rows. So a column's
        variance in a class is taken to go with the class's mean in it, as counts have it. With
        `m_j = sum_c n_c |mu_jc| / n`, R is `E S E + sum_c mu_c mu_c^T`,
        `E_jj^2 = sum_c |mu_jc| / m_j`; C where classes are of one size.
        """
        means, even = self.means, torch.ones_like(self.counts)
        usual = (means.abs() @ self.counts) / self.total
        ratio = means.abs().sum(dim=1) / usual
        root = torch.where(usual > 0, ratio, self.present).div(self.total).sqrt()
        within = self.within.stretched(root)
        return ThinStatistics.of_classes(within, means, even, self.count, self.present)

    @property
    def gram(self) -> Tensor:
        """All d^2 numbers of the Gram as far as it was seen, for an audit."""
        return self.products().to_dense()

    def products(self) -> Thin:
        """The Gram of all rows, as far as it was seen."""
        return self.within.plus(self.moment / self.counts.clamp(min=1).sqrt())

    def at_mean_weight(self) -> Thin:
        """The Gram of all rows at their mean weight in `balanced`: C / n each."""
        every, by = self.products(), self.present / self.total
        return Thin(every.diagonal * by, every.factor * by**0.5)

    def score_covariance(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """`W^T S W`, the pooled covariance of scores, and each class's variance over the pooled."""
        own = self.scatter.clamp(min=0)  # of all columns together
        pooled = float(own.sum()) / self.total
        relative = own / self.counts.clamp(min=1) / pooled if pooled > 0 else torch.ones_like(own)
        return weights.T @ self.within.times(weights) / self.total, self.shrunk(relative)


AnySums = ClassSums | ThinSums
"""With a whole Gram, or with one that is seen through a few directions."""


@lru_cache(maxsize=1)  # without it drawing takes a third of the time in which a node is erased
def _directions(seed: int, width: int, rank: int) -> Tensor:
    rng = np.random.default_rng([seed, width, rank, 1])
    return torch.from_numpy(rng.standard_normal((width, rank)))


def _root(core: Tensor, shift: float) -> Tensor:
    """The Cholesky factor of a core with this on its diagonal, or as much as rounding asks for."""
    lower: Tensor
    while True:
        core.diagonal().add_(shift)
        lower, failed = torch.linalg.cholesky_ex(core)
        if not bool(failed) or not math.isfinite(shift):
            return lower
        shift *= 2
