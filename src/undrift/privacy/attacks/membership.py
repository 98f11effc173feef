"""Membership: whether one row is in a Gram matrix, from that row alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

_TINY = torch.finfo(torch.float64).tiny
_SMALL, _SMOOTH = 1e-8, 0.1  # ridges, relative to the mean diagonal
_OUTSIDE = 1e-7  # the share of a row from which it is outside the span, and not rounding


@dataclass(frozen=True, eq=False)
class Metric:
    """`(R + g I)^-1` of a Gram matrix R, for the few ridges g that attacks use.

    Ridges are relative to the mean diagonal. Cost: d^3 / 3 for each, then d^2 per row. A ridge that
    is too small for the rounding or noise in R is raised until there is a Cholesky factor.

    >>> metric = Metric(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    >>> metric.outside(torch.eye(2)).gt(0.5).tolist()
    [False, True]
    """

    gram: Tensor
    _made: dict[float, tuple[Tensor, float]] = field(default_factory=dict, init=False, repr=False)

    @property
    def width(self) -> int:
        """Columns of a row."""
        return int(self.gram.shape[0])

    def factor(self, ridge: float) -> tuple[Tensor, float]:
        """The lower factor of `R + g I`, and g."""
        if ridge not in self._made:
            self._made[ridge] = _factor(self.gram.double().cpu(), ridge)
        return self._made[ridge]

    def whitened(self, rows: Tensor, ridge: float) -> Tensor:
        """`L^-1 z` of every row: their products are those in the metric."""
        lower, _ = self.factor(ridge)
        solved: Tensor = torch.linalg.solve_triangular(lower, rows.double().T, upper=False).T
        return solved

    def leverage(self, rows: Tensor, ridge: float = _SMALL) -> Tensor:
        """`z^T (R + g I)^-1 z`: under 1 for a member.

        With next to no ridge, a share of a row outside the span of R weighs 1e8 times as much.
        """
        return self.whitened(rows, ridge).square().sum(dim=1)

    def outside(self, rows: Tensor) -> Tensor:
        """`|z - P z|^2 / |z|^2`, the share of a row outside the span of R: 0 for a member.

        The limit of `g z^T (R + g I)^-1 z`, taken at a small g.
        """
        _, level = self.factor(_SMALL)
        return level * self.leverage(rows) / rows.double().square().sum(dim=1).clamp(min=_TINY)


def _factor(gram: Tensor, ridge: float) -> tuple[Tensor, float]:
    mean = gram.diagonal().mean().abs().clamp(min=_TINY)
    eye = torch.eye(gram.shape[0], dtype=torch.float64)
    level = ridge * float(mean)
    while True:
        lower, failed = torch.linalg.cholesky_ex(gram + level * eye)
        if not int(failed):
            return lower, level
        level *= 10


def span(metric: Metric, rows: Tensor) -> Tensor:
    """Minus the share of each row outside the span: 0 is a member, or looks like one.

    Tells members apart where there are fewer rows than columns.
    """
    outside = metric.outside(rows)
    # what rounding leaves is no evidence: rows in the span are all alike
    return -torch.where(outside < _OUTSIDE, 0.0, outside)


def leverage(metric: Metric, rows: Tensor) -> Tensor:
    """Minus the leverage: a member with `u = z^T (R - z z^T)^-1 z` has `u / (1 + u)`, not u."""
    return -metric.leverage(rows)


def normalised_leverage(metric: Metric, rows: Tensor) -> Tensor:
    """Minus the leverage over the leverage under a ridge of a tenth of the mean diagonal.

    How unusual a row is differs between rows much more than what membership takes off. The ridge
    hides the directions that the row itself has made, so what is left is how unusual it is.
    """
    return -metric.leverage(rows) / metric.leverage(rows, _SMOOTH).clamp(min=_TINY)


def likelihood(metric: Metric, rows: Tensor, count: int) -> Tensor:
    """The log-likelihood ratio of R with and without each row, up to a constant.

        (n - d - 2) / 2 log(1 - z^T R^-1 z) + z^T S^-1 z / 2

    for R of n Gaussian rows of covariance S (`R - z z^T` is Wishart of n - 1 rows if z is in it).
    S is R shrunk by the same ridge as above, at the scale at which the median row cancels. Under
    more columns than rows it is the leverage.
    """
    exact, smooth = metric.leverage(rows), metric.leverage(rows, _SMOOTH)
    freedom = count - metric.width - 2
    if freedom <= 0:
        return -exact
    without = freedom / 2 * torch.log1p(-exact.clamp(max=1 - 1e-9))
    scale = -without.median() / smooth.median().clamp(min=_TINY)
    return without + scale * smooth


def own_class(gram: Tensor, sums: Tensor, counts: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The normalised leverage of each row around the mean of its class, for known classes.

        S = R - sum_c n_c mu_c mu_c^T,    -(z - mu_c)^T S^+ (z - mu_c) / smooth

    `sums`: Q, a column per class. `columns`: the class of each row. The mean takes out what a
    class has in common, which is most of a row's length. Cost: another metric.
    """
    means = (sums / counts.clamp(min=1)).double().cpu()
    around = gram.double().cpu() - means @ (means * counts.cpu()).T
    return normalised_leverage(Metric(around), rows.double() - means.T[columns])


def in_class_gram(class_grams: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The normalised leverage of each row in the Gram matrix of its own class.

    A state with a second moment per class has fewer rows behind each than behind their sum. Cost:
    a metric per class.
    """
    found = torch.zeros(rows.shape[0], dtype=torch.float64)
    for column in columns.unique().tolist():
        own = columns == column
        found[own] = normalised_leverage(Metric(class_grams[column]), rows[own])
    return found
