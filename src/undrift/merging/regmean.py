"""RegMean: each linear map as the regression on all of them (Jin et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from undrift.analytic.solve import factorise, solve_with
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError
from undrift.merging.merger import Adapted, Rule, check_layers, nothing_added
from undrift.typing import Rows

OFF_DIAGONAL = 0.9
"""What off-diagonal entries of a Gram matrix are multiplied with; the authors' constant."""

# Added to the diagonal of every G_i, times its mean: the row of an input that no task used is
# then a mean of the models' rows; without it the system would be singular.
_FLOOR = 1e-9


def _floor(diagonal: Tensor) -> Tensor:
    mean = diagonal.mean()
    return _FLOOR * torch.where(mean > 0, mean, 1.0)


def _solved(sums: RidgeStatistics) -> Tensor:
    return solve_with(factorise(sums.gram, 0.0), sums)


@dataclass(frozen=True, eq=False)
class RegMean(Rule):
    """`W = (sum_i G_i)^-1 sum_i G_i W_i` per layer, each G_i a mean over the task's nodes, shrunk.

    G_i is the mean of `x x^T` over inputs x, its off-diagonal entries times `off_diagonal`.
    HAM keeps sums over nodes where this keeps means, so here every task has the same say.
    """

    name: ClassVar[str] = "regmean"
    display: ClassVar[str] = "RegMean"

    layers: tuple[RidgeStatistics, ...] = ()
    off_diagonal: float = OFF_DIAGONAL

    def __post_init__(self) -> None:
        if not 0 <= self.off_diagonal <= 1:
            raise InputError(
                f"off_diagonal of RegMean must be from 0 to 1, not {self.off_diagonal}"
            )

    def add(self, trace: Sequence[Rows], weights: Sequence[Tensor]) -> RegMean:
        """The memory after a task: `trace` is H_hat_k of its encoder, `weights` its W_k."""
        layers = self.layers or tuple(
            RidgeStatistics.zero(w.shape[0], w.shape[1], str(w.device)) for w in weights
        )
        check_layers([s.moment for s in layers], weights)
        added = (
            _plus_task(sums, rows.to(dtype=torch.float64), weight.detach().double(), self)
            for sums, rows, weight in zip(layers, trace, weights, strict=True)
        )
        return RegMean(tuple(added), self.off_diagonal)

    @property
    def grams(self) -> tuple[RidgeStatistics, ...]:
        """The sums over the inputs of each layer, as they are shrunk."""
        return self.layers

    def observe(self, adapted: Adapted) -> RegMean:
        """The memory after the encoder of a task."""
        return self.add(adapted.trace(), adapted.encoder.weights)

    def merge(self) -> tuple[Tensor, ...]:
        """W of every layer, in float64."""
        if not self.layers:
            raise nothing_added(self.display)
        return tuple(_solved(sums) for sums in self.layers)


def _plus_task(
    sums: RidgeStatistics, rows: Rows, weight: Tensor, memory: RegMean
) -> RidgeStatistics:
    """Adds `a G + (1 - a) diag(G) + floor I` of these rows, and its product with W."""
    n = rows.shape[0]
    share = torch.full((n,), memory.off_diagonal / n, dtype=torch.float64, device=rows.device)
    added = sums.add(rows, rows @ weight, share)
    mean_squares = rows.square().sum(dim=0) / n  # the diagonal of rows^T rows
    diagonal = (1 - memory.off_diagonal) * mean_squares + _floor(mean_squares)
    added.gram.diagonal().add_(diagonal)  # `add` made this tensor; nobody else has it
    return replace(added, moment=added.moment + diagonal.unsqueeze(1) * weight)
