"""Ridge regression without a square matrix: `diag + F F^T` in place of R."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.analytic.solve import factorise


@dataclass(frozen=True, eq=False)
class Thin:
    """`diag(diagonal) + factor factor^T`, for d columns and k directions."""

    diagonal: Tensor
    factor: Tensor

    @property
    def diag(self) -> Tensor:
        """The diagonal of the matrix itself."""
        return self.diagonal + self.factor.square().sum(dim=1)

    def times(self, right: Tensor) -> Tensor:
        """The product with a matrix; cost 4 d k columns operations."""
        return self.diagonal.unsqueeze(1) * right + self.factor @ (self.factor.T @ right)

    def scaled(self, by: float) -> Thin:
        """The matrix times a number that is not negative."""
        return Thin(self.diagonal * by, self.factor * by**0.5)

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
class ThinInverse:
    """`(M + ridge I)^-1` of a `Thin` M, as `E (I - turned^T turned) E`, `E = diag(root)`.

    The identity of Sherman, Morrison and Woodbury, by a Cholesky factor L of k columns. Cost:
    2 d k^2 + k^3 / 3 operations.
    """

    root: Tensor
    turned: Tensor
    lower: Tensor

    @classmethod
    def of(cls, matrix: Thin, ridge: float) -> ThinInverse:
        """The inverse at a ridge greater than zero."""
        root = (matrix.diagonal + ridge).rsqrt()
        leaning = root.unsqueeze(1) * matrix.factor
        lower = factorise(leaning.T @ leaning, 1.0).lower
        return cls(root, torch.linalg.solve_triangular(lower, leaning.T, upper=False), lower)

    def times_factor(self, mix: Tensor) -> Tensor:
        """`(M + ridge I)^-1 F mix` for the factor F of M, as `E turned^T L^-1 mix`.

        Nothing cancels in this form. The identity as it is written lost up to seven digits.
        """
        half: Tensor = torch.linalg.solve_triangular(self.lower, mix, upper=False)
        return self.root.unsqueeze(1) * (self.turned.T @ half)

    def trace_with(self, matrix: Thin) -> float:
        """The trace of the inverse times another `Thin`."""
        own = self.root.square() * (1 - self.turned.square().sum(dim=0))
        leaning = self.root.unsqueeze(1) * matrix.factor
        rest = leaning.square().sum() - (self.turned @ leaning).square().sum()
        return float((own * matrix.diagonal).sum() + rest)


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

    @property
    def outputs(self) -> int:
        """Columns of a target: C."""
        return int(self.mix.shape[1])

    @property
    def moment(self) -> Tensor:
        """Q."""
        return self.matrix.factor @ self.mix

    @property
    def mean_diagonal(self) -> float:
        """The mean of R's diagonal: what a relative gamma is relative to."""
        return float(self.matrix.diag.mean())

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
        """W, and the degrees of freedom it uses: `tr (R + g I)^-1 rows`, or with R itself."""
        inverse = ThinInverse.of(self.matrix, ridge)
        return inverse.times_factor(self.mix), inverse.trace_with(rows or self.matrix)
