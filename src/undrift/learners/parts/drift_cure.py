"""What can be done about encoders that move after a classifier's sums were made."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics

__all__ = ["drift_map", "mapped", "through"]


def drift_map(
    before: Tensor, after: Tensor, gamma: float, *, still: RidgeStatistics | None = None
) -> Tensor:
    """P that carries embeddings of the last encoder to those of this one, fitted on a task.

    `P = I + (B^T B + gamma I)^-1 B^T (A - B)` for embeddings B `before` and A `after`: ridge
    regression that is pulled to the identity, so directions without a row do not move. gamma is
    relative to the mean diagonal. With `still`, the Gram matrix R of old rows is added to
    B^T B: the rows of old tasks then count as rows that did not move, which is what HAM aims
    at. Cost: d^3.
    """
    moved = RidgeStatistics.of(before, after - before)
    if still is not None:
        moved = replace(moved, gram=moved.gram + still.gram)
    eye = torch.eye(moved.width, dtype=torch.float64, device=moved.gram.device)
    return eye + solve(moved, gamma, relative=True)


def mapped(bank: RidgeBank, by: Tensor) -> RidgeBank:
    """The bank of the rows x P: `R <- P^T R P`, `Q <- P^T Q`; exact for a linear map."""
    return RidgeBank(through(bank.statistics, by), bank.gamma, bank.relative, bank.solver)


def through(statistics: RidgeStatistics, weight: Tensor) -> RidgeStatistics:
    """The sums over the rows x W from the sums over the rows x, whatever W is.

    With S and T of what enters the last layer of an encoder that ends linear, `W^T S W` and
    `W^T T` are the classifier's R and Q under any later last layer: it cannot make them stale.
    """
    w = weight.to(statistics.gram)
    return replace(statistics, gram=w.T @ statistics.gram @ w, moment=w.T @ statistics.moment)
