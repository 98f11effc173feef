"""`RidgeStatistics`: what a learner remembers is a sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from undrift import ranks
from undrift.analytic.additive import Additive
from undrift.analytic.buffers import square
from undrift.analytic.gram import BUDGET_MB, add_gram_, add_product_, pieces, scaled
from undrift.errors import InputError
from undrift.typing import Rows


@dataclass(frozen=True, eq=False)
class RidgeStatistics(Additive):
    """`gram = sum w x x^T`, `moment = sum w x y^T`, `count`, `energy = sum w |y|^2`, in float64.

    The R and Q of eqs. 7, 9 and 11. A commutative group: `a + b`, `a - b`, `zero`. Columns of
    the moment that one side does not have yet count as zero, so classes may grow at any time.
    Sums, not inverses: sums add exactly across tasks, an updated inverse collects rounding.

    Memory: 8 (d^2 + d C) bytes, whatever the number of rows.

    >>> x, y = torch.eye(2), torch.tensor([[1.0], [2.0]])
    >>> both = RidgeStatistics.of(x[:1], y[:1]) + RidgeStatistics.of(x[1:], y[1:])
    >>> both.moment.flatten().tolist(), both.count
    ([1.0, 2.0], 2)
    """

    per_class: ClassVar[tuple[str, ...]] = ("moment",)
    stored_as_half: ClassVar[tuple[str, ...]] = ("gram",)

    gram: Tensor
    moment: Tensor
    count: int
    energy: float

    @classmethod
    def zero(cls, width: int, outputs: int = 0, device: str = "cpu") -> RidgeStatistics:
        """The sum of no rows."""
        return cls(
            torch.zeros(width, width, dtype=torch.float64, device=device),
            torch.zeros(width, outputs, dtype=torch.float64, device=device),
            0,
            0.0,
        )

    @classmethod
    def of(
        cls,
        rows: Rows,
        targets: Tensor,
        weights: Tensor | None = None,
        *,
        budget_mb: float = BUDGET_MB,
    ) -> RidgeStatistics:
        """The sum over these rows."""
        empty = cls.zero(rows.shape[1], device=str(rows.device))
        return empty._plus_rows(empty.gram, rows, targets, weights, budget_mb)

    def add(
        self,
        rows: Rows,
        targets: Tensor,
        weights: Tensor | None = None,
        *,
        budget_mb: float = BUDGET_MB,
    ) -> RidgeStatistics:
        """Add rows to the sum: the same as `self + of(rows, ...)` with one Gram less.

        `targets` may have more columns than were seen: new classes are new columns.
        """
        gram = square(self.width, self.gram).copy_(self.gram)
        return self._plus_rows(gram, rows, targets, weights, budget_mb)

    def _plus_rows(
        self, gram: Tensor, rows: Rows, targets: Tensor, weights: Tensor | None, budget_mb: float
    ) -> RidgeStatistics:
        self._check_rows(rows, targets, weights)
        y = scaled(targets, weights).to_dense()
        moment = torch.zeros(rows.shape[1], y.shape[1], dtype=torch.float64, device=rows.device)
        count, energy = self.count + rows.shape[0], self.energy + float(y.square().sum())
        shared = ranks.world() > 1  # then each rank sums a share of the rows
        more = torch.zeros_like(gram) if shared else gram
        if shared:
            own = ranks.share(rows.shape[0])
            rows, y, weights = rows[own], y[own], None if weights is None else weights[own]
        for where, part in pieces(rows, budget_mb):
            x = scaled(part, None if weights is None else weights[where])
            add_gram_(more, x, budget_mb)
            add_product_(moment, x, y[where])
        if shared:
            ranks.add_(more, moment)
            gram.add_(more)
        return RidgeStatistics(gram, self._moment_with(moment), count, energy)

    def _moment_with(self, more: Tensor) -> Tensor:
        wide = self.grow(more.shape[1]).moment
        return wide + pad(more, (0, wide.shape[1] - more.shape[1]))

    def _check_rows(self, rows: Rows, targets: Tensor, weights: Tensor | None) -> None:
        n, d = rows.shape
        if d != self.width:
            raise InputError(
                f"rows have {d} columns but {self.width} were accumulated before; give the same "
                "columns in the same order"
            )
        if targets.dim() != 2 or targets.shape[0] != n:
            raise InputError(
                f"{n} rows need targets of shape [{n}, outputs], not {tuple(targets.shape)}"
            )
        values = rows if isinstance(rows, Tensor) else rows.values
        if not (_finite(values) and _finite(targets)):
            raise InputError(
                "rows or targets contain NaN or infinity; nothing was added, clean them and try "
                "again"
            )
        if weights is not None and (weights.shape != (n,) or not bool((weights >= 0).all())):
            raise InputError(f"row weights must be {n} numbers that are at least 0")

    # what it is --------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Columns of a row: d."""
        return int(self.gram.shape[0])

    @property
    def outputs(self) -> int:
        """Columns of a target: C."""
        return int(self.moment.shape[1])

    def squared_error(self, weights: Tensor) -> float:
        """`sum w |y - W^T x|^2` of any W over every row ever added, without one of them.

        tr(W^T R W) - 2 tr(W^T Q) + energy; cost d^2 C operations.
        """
        w = weights.to(self.gram)
        quadratic = (w * (self.gram @ w)).sum()
        return float(quadratic - 2 * (w * self.grow(w.shape[1]).moment).sum()) + self.energy


def one_hot(labels: Tensor, classes: tuple[int, ...]) -> Tensor:
    """Y of eq. 8: row i has a one in the column of `labels[i]`; float64.

    >>> one_hot(torch.tensor([7, 3]), (3, 7)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    hits = labels.unsqueeze(1) == torch.tensor(classes, device=labels.device)
    if not bool(hits.any(dim=1).all()):
        strange = int(labels[~hits.any(dim=1)][0])
        raise InputError(f"label {strange} is not one of the classes {list(classes)}")
    return hits.double()


def _finite(values: Tensor) -> bool:
    """Whether no number is NaN or infinite: then their sum is not, unless it overflows."""
    return bool(torch.isfinite(values.sum())) or bool(torch.isfinite(values).all())
