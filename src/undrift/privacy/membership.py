"""Membership: which rows are in a Gram matrix R, or in what is seen of it through directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, cg
from torch import Tensor

from undrift.analytic.thin_sums import ThinSums

_TINY = torch.finfo(torch.float64).tiny
_SMALL, _SMOOTH, _FITTED = 1e-8, 0.1, 1e-3  # ridges, relative to the mean diagonal
_OUTSIDE = 1e-7  # the share of a row from which it is outside the span, and not rounding
_FLOOR = 1e-6  # of the mean diagonal: the least variance of a column
_EXPLICIT = 5000  # candidates up to which the kernel is formed, 8 N^2 bytes
_STEPS = 100  # of conjugate gradients, at most
_ENOUGH = 1e-4  # of the right side, that they may leave


@dataclass(frozen=True, eq=False)
class Distance:
    """`(R + g I)^-1` of a Gram matrix R; g is relative to the mean diagonal.

    A ridge too small for the rounding in R is raised. Cost: d^3 / 3 for each, then d^2 per row.
    """

    gram: Tensor
    _made: dict[float, tuple[Tensor, float]] = field(default_factory=dict, init=False, repr=False)

    def factor(self, ridge: float) -> tuple[Tensor, float]:
        """The lower factor of `R + g I`, and g."""
        if ridge not in self._made:
            gram = self.gram.double().cpu()
            eye = torch.eye(gram.shape[0], dtype=torch.float64)
            level = ridge * float(gram.diagonal().mean().abs().clamp(min=_TINY))
            while int((found := torch.linalg.cholesky_ex(gram + level * eye)).info):
                level *= 10
            self._made[ridge] = found.L, level
        return self._made[ridge]

    def whitened(self, rows: Tensor, ridge: float) -> Tensor:
        """`L^-1 z` of every row: their products are those in the metric."""
        lower, _ = self.factor(ridge)
        solved: Tensor = torch.linalg.solve_triangular(lower, rows.double().T, upper=False).T
        return solved

    def leverage(self, rows: Tensor, ridge: float = _SMALL) -> Tensor:
        """`z^T (R + g I)^-1 z`: under 1 for a member."""
        return self.whitened(rows, ridge).square().sum(dim=1)

    def outside(self, rows: Tensor) -> Tensor:
        """The share of a row outside the span of R, 0 for a member: `g z^T (R + g I)^-1 z`."""
        _, level = self.factor(_SMALL)
        return level * self.leverage(rows) / rows.double().square().sum(dim=1).clamp(min=_TINY)


def from_one_row(metric: Distance, rows: Tensor, count: int) -> dict[str, Tensor]:
    """Four statistics of each row alone, by name; larger means member. `count`: the rows in R."""
    outside = metric.outside(rows)
    return {
        "span": -torch.where(outside < _OUTSIDE, 0.0, outside),  # rounding is no evidence
        "leverage": -metric.leverage(rows),
        "normalised leverage": normalised_leverage(metric, rows),
        "likelihood": _likelihood(metric, rows, count),
    }


def normalised_leverage(metric: Distance, rows: Tensor) -> Tensor:
    """Minus the leverage over that under a large ridge, which tells how unusual the row is."""
    return -metric.leverage(rows) / metric.leverage(rows, _SMOOTH).clamp(min=_TINY)


def _likelihood(metric: Distance, rows: Tensor, count: int) -> Tensor:
    """The log-likelihood ratio of R with and without each row, up to a constant.

        (n - d - 2) / 2 log(1 - z^T R^-1 z) + z^T S^-1 z / 2

    for R of n Gaussian rows of covariance S, scaled so that the median row cancels.
    """
    exact, smooth = metric.leverage(rows), metric.leverage(rows, _SMOOTH)
    freedom = count - metric.gram.shape[0] - 2
    if freedom <= 0:
        return -exact
    without = freedom / 2 * torch.log1p(-exact.clamp(max=1 - 1e-9))
    scale = -without.median() / smooth.median().clamp(min=_TINY)
    return without + scale * smooth


def own_class(gram: Tensor, sums: Tensor, counts: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The normalised leverage of each row around the mean of its class, for known classes.

        S = R - sum_c n_c mu_c mu_c^T,    -(z - mu_c)^T S^+ (z - mu_c) / smooth

    `sums`: Q, a column per class. `columns`: the class of each row.
    """
    means = (sums / counts.clamp(min=1)).double().cpu()
    around = gram.double().cpu() - means @ (means * counts.cpu()).T
    return normalised_leverage(Distance(around), rows.double() - means.T[columns])


def in_class_gram(class_grams: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The normalised leverage of each row in the Gram matrix of its class. Cost: a metric each."""
    found = torch.zeros(rows.shape[0], dtype=torch.float64)
    for column in columns.unique().tolist():
        own = columns == column
        found[own] = normalised_leverage(Distance(class_grams[column]), rows[own])
    return found


def fitted(metric: Distance, count: int, rows: Tensor, *, ridge: float = 0.01) -> Tensor:
    """`[N]`: by how much more than on average each candidate is in a Gram matrix.

        min_m |R - sum_i m_i z_i z_i^T|^2 + lambda |m - n / N|^2

    in the metric in which R is nearly the identity: N known candidates can be told apart in
    sqrt(2 N) columns. Rows that the attacker does not hold count as noise.
    """
    z = metric.whitened(rows, _FITTED)
    whitened = metric.whitened(metric.whitened(metric.gram.cpu(), _FITTED).T, _FITTED)
    return _fitted_products(z, z, whitened, count, ridge=ridge)


def _fitted_products(
    left: Tensor, right: Tensor, total: Tensor, count: int, *, ridge: float
) -> Tensor:
    """The m of `total = sum_i m_i l_i r_i^T`, less its mean n / N, by ridge regression.

    In the kernel `K_ij = (l_i . l_j) (r_i . r_j)` it is `(K + lambda I) (m - n / N) = b`, solved by
    conjugate gradients. Cost: N^2 d + steps N^2; for many candidates 4 steps N k^2 with
    `k = min(d, 2 sqrt(2 N))` random combinations of the columns, which are as good.
    """
    number = left.shape[0]
    small = number <= _EXPLICIT
    if not small:
        columns = ceil(2 * sqrt(2 * number))
        a, b = _combined(left.shape[1], columns), _combined(right.shape[1], columns)
        left, right, total = left @ a, right @ b, a.T @ total @ b
    rest = total - count / max(number, 1) * (left.T @ right)  # beside the mean candidate
    diagonal = left.square().sum(dim=1) * right.square().sum(dim=1)
    kernel = (left @ left.T).mul_(right @ right.T) if small else None

    def against(matrix: Tensor) -> Tensor:
        return ((left @ matrix) * right).sum(dim=1)

    def times(values: Any) -> Any:
        m = torch.from_numpy(values)
        product = against((left * m.unsqueeze(1)).T @ right) if kernel is None else kernel @ m
        return (product + ridge * diagonal.mean() * m).numpy()

    operator = LinearOperator((number, number), matvec=times, dtype=np.float64)
    found, _ = cg(operator, against(rest).numpy(), rtol=_ENOUGH, maxiter=_STEPS)
    return torch.from_numpy(found)


def _combined(width: int, columns: int) -> Tensor:
    if columns >= width:
        return torch.eye(width, dtype=torch.float64)
    generator = torch.Generator().manual_seed(width)
    return torch.randn(width, columns, dtype=torch.float64, generator=generator)


@dataclass(frozen=True, eq=False)
class Seen:
    """`Y = R omega` and the diagonal of R, for known directions omega `[d, k]`; `w = omega^T z`."""

    seen: Tensor
    directions: Tensor
    diagonal: Tensor

    @classmethod
    def of(cls, kept: ThinSums) -> Seen:
        """What a learner keeps."""
        return cls(kept.seen.cpu(), kept.directions().cpu(), kept.diagonal.cpu())

    @property
    def core(self) -> Tensor:
        """`sum w w^T`, `[k, k]`."""
        inner = self.directions.T @ self.seen
        return (inner + inner.T) / 2

    def around(self, sums: Tensor, counts: Tensor) -> Seen:
        """The same around class means: of `R - sum_c n_c mu_c mu_c^T`, for Q and the counts."""
        q = sums.double().cpu()
        means = q / counts.clamp(min=1).cpu()
        seen = self.seen - q @ (means.T @ self.directions)
        return Seen(seen, self.directions, (self.diagonal - (q * means).sum(dim=1)).clamp(min=0))

    def unexplained(self, rows: Tensor) -> Tensor:
        """Minus the share of each row that a regression of rows on `w` leaves: least for members.

            e = z - Y (sum w w^T + lambda I)^-1 w,    -(e^T S^-1 e) / (z^T S^-1 z)

        S is the Nystroem matrix of what was seen, with the true diagonal. Cost: 2 d k^2, and
        4 d k per row.
        """
        z = rows.double()
        w = z @ self.directions
        ridge = _FITTED * self.core.diagonal().mean() * torch.eye(w.shape[1], dtype=torch.float64)
        left = z - torch.linalg.solve(self.core + ridge, w.T).T @ self.seen.T
        quadratic = self._quadratic()
        return -quadratic(left) / quadratic(z)

    def _quadratic(self) -> Callable[[Tensor], Tensor]:
        """`x^T (diag(d) + F F^T)^-1 x` of rows x, by the identity of Woodbury."""
        core, floor = self.core, _FLOOR * self.diagonal.mean().clamp(min=_TINY)
        eye = torch.eye(core.shape[0], dtype=torch.float64)
        lower = torch.linalg.cholesky(core + 1e-9 * core.diagonal().mean() * eye)
        factor = torch.linalg.solve_triangular(lower, self.seen.T, upper=False).T
        root = ((self.diagonal - factor.square().sum(dim=1)).clamp(min=0) + floor).rsqrt()
        scaled = root.unsqueeze(1) * factor
        lower = torch.linalg.cholesky(scaled.T @ scaled + eye)
        inner = torch.linalg.solve_triangular(lower, scaled.T, upper=False)

        def of(rows: Tensor) -> Tensor:
            x = rows * root
            found: Tensor = x.square().sum(dim=1) - (x @ inner.T).square().sum(dim=1)
            return found

        return of

    def fitted(self, rows: Tensor, count: int) -> Tensor:
        """Which of all candidates add up to Y: see `fitted`."""
        core, z = Distance(self.core), rows.double()
        scale = self.diagonal.clamp(min=_FITTED * float(self.diagonal.mean())).rsqrt()
        w = core.whitened(z @ self.directions, _FITTED)
        total = core.whitened(self.seen * scale.unsqueeze(1), _FITTED)
        return _fitted_products(z * scale, w, total, count, ridge=0.01)
