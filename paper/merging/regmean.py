"""RegMean: each linear map as the regression on all of them (Jin et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from paper.merging.rule import Rule, check_layers
from undrift.analytic.solve import factorise
from undrift.analytic.statistics import RidgeStatistics
from undrift.merging.merger import Adapted, nothing_added
from undrift.typing import Rows

OFF_DIAGONAL = 0.9  # times the off-diagonal entries of a Gram; the authors' constant
_FLOOR = 1e-9  # of the mean of G_i, added to its diagonal: no system is singular


@dataclass(frozen=True, eq=False)
class RegMean(Rule):
    """`W = (sum_i G_i)^-1 sum_i G_i W_i` per layer, each G_i a mean over the task's nodes, shrunk.

    G_i is the mean of `x x^T` over inputs x, its off-diagonal entries times 0.9.
    HAM keeps sums over nodes where this keeps means, so here every task has the same say.
    """

    name: ClassVar[str] = "regmean"
    display: ClassVar[str] = "RegMean"

    layers: tuple[RidgeStatistics, ...] = ()

    def add(self, trace: Sequence[Rows], weights: Sequence[Tensor]) -> RegMean:
        """The memory after a task: `trace` is H_hat_k of its encoder, `weights` its W_k."""
        layers = self.layers or [
            RidgeStatistics.zero(w.shape[0], w.shape[1], str(w.device)) for w in weights
        ]
        check_layers([s.moment for s in layers], weights)
        parts = zip(layers, trace, weights, strict=True)
        return RegMean(tuple(_plus_task(*part) for part in parts))

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
        solved = (factorise(sums.gram, 0.0).solve(sums.moment) for sums in self.layers)
        return tuple(weights.contiguous() for weights in solved)


def _plus_task(sums: RidgeStatistics, rows: Rows, weight: Tensor) -> RidgeStatistics:
    """Adds `a G + (1 - a) diag(G) + floor I` of these rows, and its product with W."""
    rows, weight, n = rows.double(), weight.detach().double(), rows.shape[0]
    share = torch.full((n,), OFF_DIAGONAL / n, dtype=torch.float64, device=rows.device)
    added = sums.add(rows, rows @ weight, share)
    mean_squares = rows.square().sum(dim=0) / n  # the diagonal of rows^T rows
    mean = mean_squares.mean()
    diagonal = (1 - OFF_DIAGONAL) * mean_squares + _FLOOR * torch.where(mean > 0, mean, 1.0)
    added.gram.diagonal().add_(diagonal)  # `add` made this tensor; nobody else has it
    return replace(added, moment=added.moment + diagonal.unsqueeze(1) * weight)
