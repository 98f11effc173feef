"""A bank of plain sums over fixed features, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from undrift.analytic.calibration import best_temperature, expected_accuracy
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.selection import (
    FIRST_GAMMA,
    Chosen,
    choose_by_cross_validation,
    choose_by_validation,
)
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample


@dataclass(frozen=True, eq=False)
class Bank:
    """Plain sums of training and of validation rows over one feature map.

    Memory: 16 D^2 + 32 D C bytes for D columns and C classes.
    """

    train: ClassSums
    val: ClassSums

    @classmethod
    def of(cls, features: FeatureMap, width: int, samples: tuple[Sample, Sample]) -> Bank:
        """The sums over these rows, which have `width` columns with their Fourier features."""
        train, val = (_summed(features, width, sample) for sample in samples)
        return cls(train, val)

    def __add__(self, other: Bank) -> Bank:
        return Bank(self.train + other.train, self.val + other.val)

    def __sub__(self, other: Bank) -> Bank:
        return Bank(self.train - other.train, self.val - other.val)

    def select(self, columns: Sequence[int]) -> Bank:
        """The same sums with these classes in this order; -1 is a class without rows."""
        return Bank(self.train.select(columns).cleared(), self.val.select(columns).cleared())

    def below_zero(self, before: Bank) -> bool:
        """Whether more was subtracted from `before` than it held, as far as sums can tell."""
        return self.train.below_zero(before.train) or self.val.below_zero(before.val)


@dataclass(frozen=True, eq=False)
class Solved:
    """What a bank comes to: the gamma that its sums choose, the weights, a temperature.

    `accuracy`: that of each class's validation rows, as the sums tell it (`expected_accuracy`);
    None for a class without any.
    """

    gamma: float
    weights: Tensor
    temperature: float | None
    accuracy: tuple[float | None, ...]


def solved(bank: Bank, gamma: float | None, *, balanced: bool) -> Solved:
    """`W = (R + gamma mean(diag R) I)^-1 Q`, every class weighing the same if `balanced`.

    gamma is chosen by the validation sums, without any by generalised cross-validation; a number
    fixes it. The columns of classes that have validation rows alone are those of the solution for
    all rows; where every row is for validation, they are learned from.
    """
    rows, rest = (bank.train, bank.val) if bank.train.count else (bank.val, bank.train)
    tells = bool((rest.counts[rows.counts > 0.5] > 0.5).any())
    val = weighed(rest, balanced) if tells else None
    chosen = fitted(weighed(rows, balanced), val, gamma)
    w = chosen.weights
    lone = ((rows.counts < 0.5) & (rest.counts > 0.5)).nonzero().flatten()
    if lone.numel():
        every = solve(weighed(rows + rest, balanced), chosen.gamma, relative=True)
        w = w.index_copy(1, lone, every[:, lone])
    told = expected_accuracy(w, bank.val)
    accuracy = tuple(told.get(c) for c in range(w.shape[1]))
    return Solved(chosen.gamma, w, best_temperature(w, bank.val), accuracy)


def fitted(
    train: RidgeStatistics, val: RidgeStatistics | None, gamma: float | None = None
) -> Chosen:
    """Gamma and weights of these sums; a number fixes gamma."""
    if gamma is not None or train.outputs == 0:
        fixed = FIRST_GAMMA if gamma is None else gamma
        return Chosen(fixed, solve(train, fixed, relative=True))
    if val is None:
        return choose_by_cross_validation(train)
    return choose_by_validation(train, val)


def weighed(sums: ClassSums, balanced: bool) -> RidgeStatistics:
    """R and Q, every class weighing the same if `balanced`, else every row."""
    return sums.balanced() if balanced else sums.plain()


def _summed(features: FeatureMap, width: int, sample: Sample) -> ClassSums:
    """The sum of rows; Fourier features exist for some rows at a time only."""
    if len(sample) == 0:
        return ClassSums.zero(width, sample.targets.shape[1], str(sample.targets.device))
    parts = ((part, sample.targets[where]) for where, part in features.pieces(sample.rows))
    sums = ClassSums.of(*next(parts))
    for part, targets in parts:
        sums = sums.add(part, targets)
    return sums
