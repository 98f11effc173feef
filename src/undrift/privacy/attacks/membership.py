"""Membership: which rows are in a Gram matrix R, or in what is seen of it through directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, sqrt

import torch
from torch import Tensor

from undrift.learners.base import Learner
from undrift.learners.kept import SeenThrough
from undrift.streams.task import Task

_TINY = torch.finfo(torch.float64).tiny
_SMALL, _SMOOTH, _FITTED = 1e-8, 0.1, 1e-3  # ridges, relative to the mean diagonal
_OUTSIDE = 1e-7  # the share of a row from which it is outside the span, and not rounding
_FLOOR = 1e-6  # of the mean diagonal: the least variance of a column
_EXPLICIT = 5000  # candidates up to which the kernel is formed, 8 N^2 bytes
_STEPS = 100  # of conjugate gradients, at most
_ENOUGH = 1e-4  # of the right side, that they may leave


# one row at a time -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Distance:
    """`(R + g I)^-1` of a Gram matrix R, for the few ridges g that attacks use.

    Ridges are relative to the mean diagonal. A ridge that is too small for the rounding or noise
    in R is raised until there is a Cholesky factor. Cost: d^3 / 3 for each, then d^2 per row.

    >>> metric = Distance(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    >>> metric.outside(torch.eye(2)).gt(0.5).tolist()
    [False, True]
    """

    gram: Tensor
    _made: dict[float, tuple[Tensor, float]] = field(default_factory=dict, init=False, repr=False)

    def factor(self, ridge: float) -> tuple[Tensor, float]:
        """The lower factor of `R + g I`, and g."""
        if ridge not in self._made:
            gram = self.gram.double().cpu()
            eye = torch.eye(gram.shape[0], dtype=torch.float64)
            level = ridge * float(gram.diagonal().mean().abs().clamp(min=_TINY))
            lower, failed = torch.linalg.cholesky_ex(gram + level * eye)
            while int(failed):
                level *= 10
                lower, failed = torch.linalg.cholesky_ex(gram + level * eye)
            self._made[ridge] = lower, level
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
        """`|z - P z|^2 / |z|^2`, the share of a row outside the span of R: 0 for a member.

        The limit of `g z^T (R + g I)^-1 z`, taken at a small g.
        """
        _, level = self.factor(_SMALL)
        return level * self.leverage(rows) / rows.double().square().sum(dim=1).clamp(min=_TINY)


def from_one_row(metric: Distance, rows: Tensor, count: int) -> dict[str, Tensor]:
    """Four statistics of each row alone, by name; larger means member.

    - `span`: minus the share outside the span. It tells members where there are fewer rows than
      columns.
    - `leverage`: minus the leverage. A member with `u = z^T (R - z z^T)^-1 z` has `u / (1 + u)`.
    - `normalised leverage`: see `normalised_leverage`.
    - `likelihood`: see `_likelihood`. `count`: the rows in R.
    """
    outside = metric.outside(rows)
    return {
        "span": -torch.where(outside < _OUTSIDE, 0.0, outside),  # rounding is no evidence
        "leverage": -metric.leverage(rows),
        "normalised leverage": normalised_leverage(metric, rows),
        "likelihood": _likelihood(metric, rows, count),
    }


def normalised_leverage(metric: Distance, rows: Tensor) -> Tensor:
    """Minus the leverage over the leverage under a ridge of a tenth of the mean diagonal.

    Rows differ more in how unusual they are than by membership. The ridge hides the directions
    that a row has made itself, so the divisor is how unusual the row is.
    """
    return -metric.leverage(rows) / metric.leverage(rows, _SMOOTH).clamp(min=_TINY)


def _likelihood(metric: Distance, rows: Tensor, count: int) -> Tensor:
    """The log-likelihood ratio of R with and without each row, up to a constant.

        (n - d - 2) / 2 log(1 - z^T R^-1 z) + z^T S^-1 z / 2

    for R of n Gaussian rows of covariance S (`R - z z^T` is Wishart of n - 1 rows if z is in it).
    S is R under the ridge of `normalised_leverage`, scaled so that the median row cancels. With
    more columns than rows it is the leverage.
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

    `sums`: Q, a column per class. `columns`: the class of each row. Cost: another metric.
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


# all candidates at once ------------------------------------------------------------------


def fitted(
    metric: Distance, count: int, rows: Tensor, *, ridge: float = 0.01, explicit: bool | None = None
) -> Tensor:
    """`[N]`: by how much more than on average each candidate is in a Gram matrix.

        min_m |R - sum_i m_i z_i z_i^T|^2 + lambda |m - n / N|^2

    in the metric in which R is nearly the identity. R has d (d + 1) / 2 different numbers and m
    has N. So N known candidates can be told apart in sqrt(2 N) columns, and no useful width is
    safe. Rows that the attacker does not hold count as noise.

    >>> rows = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    >>> found = fitted(Distance(rows[:20].T @ rows[:20]), 20, rows)
    >>> bool(found[:20].min() > found[20:].max())
    True
    """
    z = metric.whitened(rows, _FITTED)
    whitened = metric.whitened(metric.whitened(metric.gram.cpu(), _FITTED).T, _FITTED)
    return _fitted_products(z, z, whitened, count, ridge=ridge, explicit=explicit)


def _fitted_products(
    left: Tensor,
    right: Tensor,
    total: Tensor,
    count: int,
    *,
    ridge: float,
    explicit: bool | None = None,
) -> Tensor:
    """The m of `total = sum_i m_i l_i r_i^T`, less its mean n / N, by ridge regression.

    In the kernel `K_ij = (l_i . l_j) (r_i . r_j)` it is `(K + lambda I) (m - n / N) = b`, solved by
    conjugate gradients. `ridge`: lambda over the mean of K's diagonal. Cost: N^2 d + steps N^2; for
    many candidates 4 steps N k^2 with `k = min(d, 2 sqrt(2 N))` random combinations of the columns,
    which are as good.
    """
    number = left.shape[0]
    small = number <= _EXPLICIT if explicit is None else explicit
    if not small:
        columns = ceil(2 * sqrt(2 * number))
        a, b = _combined(left.shape[1], columns), _combined(right.shape[1], columns)
        left, right, total = left @ a, right @ b, a.T @ total @ b
    rest = total - count / max(number, 1) * (left.T @ right)  # beside the mean candidate
    diagonal = left.square().sum(dim=1) * right.square().sum(dim=1)
    kernel = (left @ left.T).mul_(right @ right.T) if small else None

    def against(matrix: Tensor) -> Tensor:
        return ((left @ matrix) * right).sum(dim=1)

    def times(m: Tensor) -> Tensor:
        product: Tensor = (
            against((left * m.unsqueeze(1)).T @ right) if kernel is None else kernel @ m
        )
        return product + ridge * diagonal.mean() * m

    return _conjugate_gradients(times, against(rest))


def _combined(width: int, columns: int) -> Tensor:
    """`[d, k]`: so many random combinations of the columns; the columns where they are fewer."""
    if columns >= width:
        return torch.eye(width, dtype=torch.float64)
    generator = torch.Generator().manual_seed(width)
    return torch.randn(width, columns, dtype=torch.float64, generator=generator)


def _conjugate_gradients(times: Callable[[Tensor], Tensor], right: Tensor) -> Tensor:
    """The solution of a positive definite system, or the result of `_STEPS` steps."""
    x = torch.zeros_like(right)
    left, way = right.clone(), right.clone()
    before = first = float(left @ left)
    for _ in range(_STEPS):
        if before <= _ENOUGH**2 * first:
            break
        product = times(way)
        step = before / float(way @ product)
        x += step * way
        left -= step * product
        now = float(left @ left)
        way = left + now / before * way
        before = now
    return x


# through directions ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Seen:
    """`Y = R omega` and the diagonal of R, for directions omega `[d, k]` that the attacker knows.

    With `w = omega^T z`, `Y = sum z w^T` has d k equations, like a Gram matrix of sqrt(d k)
    columns. `omega^T Y = sum w w^T` is a Gram matrix of k columns itself.
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
        rows that it was made of better than others, here in d columns at once. Cost: 2 d k^2, and
        4 d k per row.

        >>> rows = torch.randn(90, 60, generator=torch.Generator().manual_seed(0)).double()
        >>> gram, omega = rows[:60].T @ rows[:60], rows[60:80].T
        >>> found = Seen(gram @ omega, omega, gram.diagonal()).unexplained(rows)
        >>> bool(found[:60].median() > found[80:].median())
        True
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


# the baseline ----------------------------------------------------------------------------


def confidence(learner: Learner, task: Task, nodes: Tensor, labels: Tensor) -> Tensor:
    """The margin of each node's class: its score less the best other's; larger means member.

    A model tends to be surer of what it was trained on (Yeom et al., "Privacy risk in machine
    learning", CSF 2018). It needs the class of every node, and works on any state. Cost: one
    prediction.

    >>> from undrift.propagation.learner import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> task = tiny_stream().task(0)
    >>> margin = confidence(Propagation().observe(task), task, task.train, task.labels[task.train])
    >>> bool(margin.median() > 0)
    True
    """
    scores = learner.scores(task.graph, nodes).double()
    places = {c: i for i, c in enumerate(learner.classes_)}
    columns = torch.tensor([places[int(c)] for c in labels.tolist()])
    own = scores.gather(1, columns.unsqueeze(1)).squeeze(1)
    if scores.shape[1] == 1:
        return own
    scores.scatter_(1, columns.unsqueeze(1), -torch.inf)
    return own - scores.amax(dim=1)
