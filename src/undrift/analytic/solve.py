"""From a sum to weights: of a whole R, of a thin one, and of a bank with its ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.analytic.buffers import square
from undrift.analytic.cholesky import cholesky_, cholesky_solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError
from undrift.sharing import once
from undrift.typing import Rows

_WORTH_A_CUT = 1 / 64  # a share of columns never seen, and three times that of the operations
_BLOCK = 128  # rows per step of a copy


def solve(statistics: RidgeStatistics, gamma: float, *, relative: bool = False) -> Tensor:
    """`W = (R + gamma I)^-1 Q` (eqs. 7, 9, 11), in float64, by Cholesky.

    `relative=True` scales gamma by the mean diagonal of R, so that one value means the same
    for 100 rows and for a million. Cost: d^3 / 3 + 2 d^2 C operations, with d the columns that
    were ever seen: the others are a system of their own, which is diagonal.

    >>> s = RidgeStatistics.of(torch.eye(2), torch.eye(2))
    >>> solve(s, gamma=1.0)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    ridge = effective_ridge(statistics, gamma, relative=relative)
    right = statistics.moment
    seen = statistics.gram.diagonal().nonzero().flatten()
    if statistics.width - seen.numel() < _WORTH_A_CUT * statistics.width:
        return factorise(statistics.gram, ridge).solve(right).contiguous()
    right = right.contiguous()
    weights = right / ridge
    weights[seen] = factorise(statistics.gram, ridge, seen).solve(right[seen])
    return weights


def effective_ridge(statistics: RidgeStatistics, gamma: float, *, relative: bool = False) -> float:
    """What is added to the diagonal: gamma (the paper), or gamma times the mean diagonal."""
    if not gamma > 0:
        raise InputError(f"gamma must be greater than 0, not {gamma}")
    if not relative:
        return float(gamma)
    mean = float(statistics.gram.diagonal().mean())
    return float(gamma) * (mean if mean > 0 else 1.0)


@dataclass(frozen=True, eq=False)
class Factor:
    """`L` with `L L^T = gram + (ridge + jitter) I`; only the lower triangle is meaningful."""

    lower: Tensor
    ridge: float
    jitter: float

    def solve(self, right: Tensor) -> Tensor:
        """`(L L^T)^-1 right` by two triangular solves; cost 2 d^2 columns operations."""
        return cholesky_solve(self.lower, right.to(self.lower))


def factorise(gram: Tensor, ridge: float, columns: Tensor | None = None) -> Factor:
    """Cholesky of `gram + ridge I`, with more and more jitter if rounding makes it indefinite.

    With `columns` of those rows and columns alone. The jitter starts at the rounding error of the
    mean diagonal and grows tenfold per try. Cost: d^3 / 3 operations and one copy of the Gram
    matrix.
    """
    d = gram.shape[0] if columns is None else columns.numel()
    scale = float(gram.diagonal().mean()) + ridge if d else 1.0
    for attempt in range(9):
        jitter = 0.0 if attempt == 0 else scale * 1e-15 * 10.0**attempt
        # mT: LAPACK works in column order, and the transpose of a symmetric matrix is itself
        system = _copy(gram, columns).mT
        system.diagonal().add_(ridge + jitter)
        if cholesky_(system):
            return Factor(system, ridge, jitter)
    raise InputError(
        f"the sums of {d} columns cannot be solved; raise gamma, or check that no batch was "
        "forgotten that was never observed"
    )


def _copy(gram: Tensor, columns: Tensor | None) -> Tensor:
    held = square(gram.shape[0], gram)
    if columns is None:
        return held.copy_(gram)
    d = columns.numel()
    copy = held.flatten()[: d * d].view(d, d)
    for start in range(0, d, _BLOCK):
        rows = gram[columns[start : start + _BLOCK]]
        torch.gather(rows, 1, columns.expand(rows.shape[0], d), out=copy[start : start + _BLOCK])
    return copy


@dataclass(frozen=True, eq=False)
class Thin:
    """`diag(diagonal) + factor factor^T` in place of R, for d columns and k directions."""

    diagonal: Tensor
    factor: Tensor

    @property
    def diag(self) -> Tensor:
        """The diagonal of the matrix itself."""
        return self.diagonal + self.factor.square().sum(dim=1)

    def times(self, right: Tensor) -> Tensor:
        """The product with a matrix; cost 4 d k columns operations."""
        return self.diagonal.unsqueeze(1) * right + self.factor @ (self.factor.T @ right)

    def stretched(self, by: Tensor) -> Thin:
        """`E M E` with `E = diag(by)`."""
        return Thin(self.diagonal * by.square(), self.factor * by.unsqueeze(1))

    def plus(self, columns: Tensor) -> Thin:
        """The matrix plus `columns columns^T`."""
        return Thin(self.diagonal, torch.cat([self.factor, columns], dim=1))

    def to_dense(self) -> Tensor:
        """All `d x d` numbers."""
        return torch.diag(self.diagonal) + self.factor @ self.factor.T


@dataclass(frozen=True, eq=False)
class ThinStatistics:
    """As `RidgeStatistics`, with a `Thin` R. Q is `F mix`: class means are among its directions."""

    matrix: Thin
    mix: Tensor
    count: int
    energy: float

    @classmethod
    def of_classes(
        cls, within: Thin, columns: Tensor, sizes: Tensor, count: int, energy: float
    ) -> ThinStatistics:
        """`R = within + columns columns^T`, and each column times its size in Q."""
        directions = within.factor.shape[1]
        mix = torch.cat([columns.new_zeros(directions, sizes.numel()), torch.diag(sizes)])
        return cls(within.plus(columns), mix, count, energy)

    def freedom_of_rows(self, freedom: float) -> float:
        """Degrees of freedom that n rows can have, of those that the diagonal makes of them.

        Directions that were not seen are a diagonal over all d columns, but n rows fill no more
        than `m = n - k` of them. So 1 / f grows by `1 / m - 1 / d`, where m < d.
        """
        d, k = self.matrix.factor.shape
        m = max(self.count - k, 1)
        return freedom if m >= d or freedom <= 0 else 1 / (1 / freedom + 1 / m - 1 / d)

    def squared_error(self, weights: Tensor) -> float:
        """`sum w |y - W^T x|^2` over the rows of the sum, as far as R tells."""
        along = self.matrix.factor.T @ weights
        quadratic = (self.matrix.diagonal @ weights.square()).sum() + along.square().sum()
        return float(quadratic - 2 * (along * self.mix).sum()) + self.energy

    def solution(self, ridge: float, rows: Thin | None) -> tuple[Tensor, float]:
        """W, and the degrees of freedom it uses: `tr (R + g I)^-1 rows`, or with R itself.

        The inverse is `E (I - T^T T) E` with `E = (diag + g I)^-1/2` and `T = L^-1 F^T E`, for L
        the Cholesky factor of `I + F^T E E F` (Sherman, Morrison and Woodbury). `W = E T^T L^-1
        mix` cancels nothing; the identity as it is written lost up to seven digits. Cost: 2 d k^2 +
        k^3 / 3 operations.
        """
        root = (self.matrix.diagonal + ridge).rsqrt()
        leaning = root.unsqueeze(1) * self.matrix.factor
        lower = factorise(leaning.T @ leaning, 1.0).lower
        turned, mix = (
            torch.linalg.solve_triangular(lower, right, upper=False)
            for right in (leaning.T, self.mix)
        )
        asked = rows or self.matrix
        seen = root.unsqueeze(1) * asked.factor
        own = root.square() * (1 - turned.square().sum(dim=0))
        rest = seen.square().sum() - (turned @ seen).square().sum()
        weights: Tensor = root.unsqueeze(1) * (turned.T @ mix)
        return weights, float((own * asked.diagonal).sum() + rest)


@dataclass(frozen=True, eq=False)
class RidgeBank(Additive):
    """A memory bank {R, Q} that grows by tasks and solves after each."""

    agreed: ClassVar[tuple[str, ...]] = ("gamma", "relative")

    statistics: RidgeStatistics
    gamma: float
    relative: bool = False

    @classmethod
    def empty(cls, width: int, gamma: float, device: str = "cpu") -> RidgeBank:
        """A bank that has seen no row."""
        return cls(RidgeStatistics.zero(width, device=device), gamma)

    def add(self, rows: Rows, targets: Tensor, weights: Tensor | None = None) -> RidgeBank:
        """The bank after these rows; this one stays as it is."""
        before = self.statistics
        # banks of several gammas that are given the same rows have the same sum
        inputs = (before if before.count else before.moment.shape, rows, targets, weights)
        statistics = once(lambda: before.add(rows, targets, weights), "sum", *inputs)
        return RidgeBank(statistics, self.gamma, self.relative)

    def solve(self) -> Tensor:
        """The ridge solution of everything added so far."""
        return solve(self.statistics, self.gamma, relative=self.relative)
