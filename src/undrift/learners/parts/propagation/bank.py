"""Plain sums over fixed features, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from undrift.analytic.calibration import best_temperature, expected_accuracy, held_out_scores
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.selection import FIRST_GAMMA, choose_by_cross_validation, solution_at
from undrift.analytic.thin_sums import ThinSums, at_once_mb
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample

AnySums = ClassSums | ThinSums
"""What a bank may be: a whole Gram, or one seen through a few directions."""


@dataclass(frozen=True, eq=False)
class Solved:
    """What sums come to: the gamma that they choose, the weights, a temperature.

    `accuracy`: that of unseen rows of each class, as the sums tell it (`expected_accuracy`); None
    for a class without rows. `bank`: the one that scores come from, by itself. `beside`: in
    `hybrid`, the one beside which the encoder is used; None where it is not.
    """

    gamma: float
    weights: Tensor
    temperature: float | None
    accuracy: tuple[float | None, ...]
    bank: str = "mix"
    beside: str | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """What sums come to, while it is not known whether scores will come from them.

    `unseen`: drawn scores of unseen rows (`held_out_scores`), of which a temperature is found.
    """

    gamma: float
    weights: Tensor
    accuracy: tuple[float | None, ...]
    unseen: Mapping[int, Tensor]

    def selected(self, bank: str = "mix", beside: str | None = None) -> Solved:
        """With its temperature."""
        told = best_temperature(self.unseen)
        return Solved(self.gamma, self.weights, told, self.accuracy, bank, beside)


def candidate(sums: AnySums, gamma: float | None, *, balanced: bool) -> Candidate:
    """`W = (R + gamma mean(diag R) I)^-1 Q`, every class weighing the same if `balanced`.

    gamma is chosen by generalised cross-validation; a number fixes it.
    """
    sums = replace(sums)  # what it works out and keeps goes with this copy
    weighed, rows = (sums.balanced(), sums.spread()) if balanced else (sums.plain(), None)
    if gamma is not None or weighed.outputs == 0:
        chosen = solution_at(weighed, FIRST_GAMMA if gamma is None else gamma, rows)
    else:
        chosen = choose_by_cross_validation(weighed, rows)
    w = chosen.weights
    unseen = held_out_scores(w, sums, chosen.freedom)
    told = expected_accuracy(unseen)
    accuracy = tuple(told.get(c) for c in range(w.shape[1]))
    return Candidate(chosen.gamma, w, accuracy, unseen)


def no_rows(features: FeatureMap, width: int, classes: int, device: str = "cpu") -> AnySums:
    """The sum of no rows: thin where the map has a rank, else with a whole Gram."""
    if features.rank:
        return ThinSums.zero(width, classes, device, rank=features.rank, seed=features.seed)
    return ClassSums.zero(width, classes, device)


def summed(features: FeatureMap, width: int, sample: Sample) -> AnySums:
    """The sum of rows, which have `width` columns with their Fourier features.

    Fourier features exist for some rows at a time only.
    """
    targets, classes = sample.targets, sample.targets.shape[1]
    if features.rank or len(sample) == 0:
        none = no_rows(features, width, classes, str(targets.device))
        if isinstance(none, ClassSums):
            return none
        parts = features.pieces(sample.rows, at_once_mb(targets.device))
        return none.add_pieces(((part, targets[where]) for where, part in parts), classes)
    parts = features.pieces(sample.rows)
    where, part = next(parts)
    sums = ClassSums.of(part, targets[where])  # no Gram of zeros is made only to be added to
    for where, part in parts:
        sums = sums.add(part, targets[where])
    return sums
