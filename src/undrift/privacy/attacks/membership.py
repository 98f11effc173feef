"""Membership: whether one row is in a Gram matrix, from that row alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.linalg import eigh
from torch import Tensor

_ZERO = 1e-10  # of the largest eigenvalue: what rounding leaves of the others
_SMALL, _SMOOTH = 1e-8, 0.1  # ridges, relative to the mean diagonal


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvectors of a Gram matrix. Cost to make: 9 d^3, then d^2 per row.

    >>> spectrum = Spectrum.of(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    >>> spectrum.residual(torch.eye(2)).tolist()
    [0.0, 1.0]
    """

    values: Tensor
    vectors: Tensor
    rank: int

    @classmethod
    def of(cls, gram: Tensor) -> Spectrum:
        """The spectrum of R; rounding of its type decides which values are zero."""
        exact = gram.double().cpu()
        try:
            values, vectors = torch.linalg.eigh(exact)
        except RuntimeError:  # seen where most values are zero
            values, vectors = map(torch.from_numpy, eigh(exact.numpy(), driver="evr"))
        least = max(_ZERO, torch.finfo(gram.dtype).eps * gram.shape[0]) * values[-1].clamp(min=0)
        return cls(values.clamp(min=0), vectors, int((values > least).sum()))

    def residual(self, rows: Tensor) -> Tensor:
        """`|z - P z|^2 / |z|^2`, the share of a row outside the span of R: 0 for a member."""
        outside = self.vectors[:, : self.values.numel() - self.rank]
        squares = rows.double().square().sum(dim=1).clamp(min=torch.finfo(torch.float64).tiny)
        return (rows.double() @ outside).square().sum(dim=1) / squares

    def leverage(self, rows: Tensor, ridge: float = _SMALL) -> Tensor:
        """`z^T (R + ridge mean(diag R) I)^-1 z`: under 1 for a member.

        With next to no ridge, a share of a row outside the span weighs 1e8 times as much.
        """
        level = ridge * self.values.mean().clamp(min=torch.finfo(torch.float64).tiny)
        return ((rows.double() @ self.vectors).square() / (self.values + level)).sum(dim=1)


def span(spectrum: Spectrum, rows: Tensor) -> Tensor:
    """Minus the share of each row outside the span: 0 is a member, or looks like one.

    Tells members apart where there are fewer rows than columns; no statistic needs to know less.
    """
    # what rounding leaves is no evidence: rows in the span are all alike
    residual = spectrum.residual(rows)
    return -torch.where(residual < 1e-9, 0.0, residual)


def leverage(spectrum: Spectrum, rows: Tensor) -> Tensor:
    """Minus the leverage: a member with `u = z^T (R - z z^T)^-1 z` has `u / (1 + u)`, not u."""
    return -spectrum.leverage(rows)


def normalised_leverage(spectrum: Spectrum, rows: Tensor) -> Tensor:
    """Minus the leverage over the leverage under a ridge of a tenth of the mean diagonal.

    How unusual a row is differs between rows much more than what membership takes off. The ridge
    hides the directions that the row itself has made, so what is left is how unusual it is.
    """
    return -spectrum.leverage(rows) / spectrum.leverage(rows, _SMOOTH)


def likelihood(spectrum: Spectrum, rows: Tensor, count: int) -> Tensor:
    """The log-likelihood ratio of R with and without each row, up to a constant.

        (n - d - 2) / 2 log(1 - z^T R^-1 z) + z^T S^-1 z / 2

    for R of n Gaussian rows of covariance S (`R - z z^T` is Wishart of n - 1 rows if z is in it).
    S is R shrunk by the same ridge as above, at the scale at which the median row cancels. Under
    more columns than rows it is the leverage.
    """
    exact, smooth = spectrum.leverage(rows), spectrum.leverage(rows, _SMOOTH)
    freedom = count - int(spectrum.values.numel()) - 2
    if freedom <= 0:
        return -exact
    without = freedom / 2 * torch.log1p(-exact.clamp(max=1 - 1e-9))
    scale = -without.median() / smooth.median().clamp(min=torch.finfo(torch.float64).tiny)
    return without + scale * smooth


def own_class(gram: Tensor, sums: Tensor, counts: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The normalised leverage of each row around the mean of its class, for known classes.

        S = R - sum_c n_c mu_c mu_c^T,    -(z - mu_c)^T S^+ (z - mu_c) / smooth

    `sums`: Q, a column per class. `columns`: the class of each row. The mean takes out what a
    class has in common, which is most of a row's length. Cost: another spectrum.
    """
    means = (sums / counts.clamp(min=1)).double().cpu()
    around = gram.double().cpu() - means @ (means * counts.cpu()).T
    return normalised_leverage(Spectrum.of(around), rows.double() - means.T[columns])


def in_class_gram(class_grams: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The normalised leverage of each row in the Gram matrix of its own class.

    A state with a second moment per class has fewer rows behind each than behind their sum. Cost:
    9 C d^3.
    """
    found = torch.zeros(rows.shape[0], dtype=torch.float64)
    for column in columns.unique().tolist():
        own = columns == column
        found[own] = normalised_leverage(Spectrum.of(class_grams[column]), rows[own])
    return found
