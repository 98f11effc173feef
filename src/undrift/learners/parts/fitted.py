"""`Fitted`: one bank of fixed rows, its two sums, the gamma they chose and the weights."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from undrift.analytic.selection import (
    FIRST_GAMMA,
    Chosen,
    choose_by_leave_one_out,
    choose_by_validation,
)
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.learners.parts.fixed_rows import FixedRows, Sample

__all__ = ["Fitted", "Samples", "fitted_further"]

Samples = tuple[Sample, Sample]
"""The training and the validation nodes of a task."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Two sums over the same rows, the gamma they chose, and the weights that follow.

    `hits`: the accuracy on the validation nodes of each class in the task that brought it, among
    all classes known by then, summed over the classes (`Probe`); zero where nobody asked.
    """

    gamma: float
    statistics: RidgeStatistics
    validation: RidgeStatistics | None
    weights: Tensor
    hits: float = 0.0


def fitted_further(
    before: Fitted | None, fixed: FixedRows, width: int, samples: Samples, gamma: float | None
) -> Fitted:
    """The bank with the rows of one more task, `width` columns each; a number fixes gamma."""
    train, val = samples
    empty = RidgeStatistics.zero(width, device=str(train.targets.device))
    statistics = _added(before.statistics if before else empty, train, fixed)
    if gamma is not None:
        return Fitted(gamma, statistics, None, solve(statistics, gamma, relative=True))
    seen = before.validation if before and before.validation is not None else empty
    validation = _added(seen, val, fixed)
    start = before.gamma if before else FIRST_GAMMA
    if validation.count == 0:
        rows = fixed.expanded(train.rows)
        chosen = choose_by_leave_one_out(statistics, rows, train.targets, train.weights, start)
    elif len(val) == 0:
        chosen = Chosen(start, solve(statistics, start, relative=True))
    else:
        chosen = choose_by_validation(statistics, validation, start)
    return Fitted(chosen.gamma, statistics, validation, chosen.weights)


def _added(statistics: RidgeStatistics, sample: Sample, fixed: FixedRows) -> RidgeStatistics:
    """The sum with these rows; Fourier features exist for some rows at a time only."""
    if len(sample) == 0:
        return statistics.grow(sample.targets.shape[1])
    for where, part in fixed.pieces(sample.rows):
        weights = None if sample.weights is None else sample.weights[where]
        statistics = statistics.add(part, sample.targets[where], weights)
    return statistics
