"""Membership in a Gram matrix that is kept as it was seen through a few directions only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.learners.kept import SeenThrough
from undrift.privacy.attacks.fitted import fitted_products
from undrift.privacy.attacks.membership import Metric

_RIDGE = 1e-3  # of the mean diagonal
_FLOOR = 1e-6  # of the mean: what a column that was seen whole still varies


@dataclass(frozen=True, eq=False)
class Seen:
    """`Y = R omega` and the diagonal of R, for directions omega `[d, k]` that the attacker knows.

    With `w = omega^T z`, `Y = sum z w^T`: as many equations as it has numbers, d k of them, like a
    Gram matrix of sqrt(d k) columns. `omega^T Y = sum w w^T` is a Gram matrix of k columns itself.
    """

    seen: Tensor
    directions: Tensor
    diagonal: Tensor

    @classmethod
    def of(cls, kept: SeenThrough) -> Seen:
        """What a learner keeps."""
        return cls(kept.seen.cpu(), kept.directions.cpu(), kept.diagonal.cpu())

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

        S is the Nystroem matrix of what was seen, with the true diagonal. A regression fits the
        rows that it was made of better than others, by as much as each weighs in it, and here in d
        columns at once: a leverage tells the same of one. Cost: 2 d k^2, and 4 d k per row.

        >>> rows = torch.randn(90, 60, generator=torch.Generator().manual_seed(0)).double()
        >>> gram, omega = rows[:60].T @ rows[:60], rows[60:80].T
        >>> found = Seen(gram @ omega, omega, gram.diagonal()).unexplained(rows)
        >>> bool(found[:60].median() > found[80:].median())
        True
        """
        z = rows.double()
        w = z @ self.directions
        ridge = _RIDGE * self.core.diagonal().mean() * torch.eye(w.shape[1], dtype=torch.float64)
        left = z - torch.linalg.solve(self.core + ridge, w.T).T @ self.seen.T
        inverse = self._inverse()
        return -inverse(left) / inverse(z)

    def _inverse(self) -> _Quadratic:
        core = self.core
        lift = 1e-9 * core.diagonal().mean() * torch.eye(core.shape[0], dtype=torch.float64)
        lower = torch.linalg.cholesky(core + lift)
        factor = torch.linalg.solve_triangular(lower, self.seen.T, upper=False).T
        rest = (self.diagonal - factor.square().sum(dim=1)).clamp(min=0)
        floor = _FLOOR * self.diagonal.mean().clamp(min=torch.finfo(torch.float64).tiny)
        return _Quadratic.of(rest + floor, factor)

    def fitted(self, rows: Tensor, count: int) -> Tensor:
        """Which of all candidates add up to Y: see `fitted`."""
        core, z = Metric(self.core), rows.double()
        scale = self.diagonal.clamp(min=_RIDGE * float(self.diagonal.mean())).rsqrt()
        w = core.whitened(z @ self.directions, _RIDGE)
        total = core.whitened(self.seen * scale.unsqueeze(1), _RIDGE)
        return fitted_products(z * scale, w, total, count, ridge=0.01)


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """`x^T (diag(d) + F F^T)^-1 x` of rows x, by the identity of Woodbury."""

    root: Tensor
    turned: Tensor

    @classmethod
    def of(cls, diagonal: Tensor, factor: Tensor) -> _Quadratic:
        root = diagonal.rsqrt()
        leaning = root.unsqueeze(1) * factor
        inner = leaning.T @ leaning + torch.eye(factor.shape[1], dtype=torch.float64)
        lower = torch.linalg.cholesky(inner)
        return cls(root, torch.linalg.solve_triangular(lower, leaning.T, upper=False))

    def __call__(self, rows: Tensor) -> Tensor:
        scaled = rows * self.root
        return scaled.square().sum(dim=1) - (scaled @ self.turned.T).square().sum(dim=1)
