"""Plain sums over fixed features, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from undrift.analytic.calibration import best_temperature, expected_accuracy, held_out_scores
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.selection import FIRST_GAMMA, choose_by_cross_validation, solution_at
from undrift.analytic.thin_sums import ThinSums
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample

AnySums = ClassSums | ThinSums
"""What a bank may be: a whole Gram, or one seen through a few directions."""


@dataclass(frozen=True, eq=False)
class Solved:
    """What sums come to: the gamma that they choose, the weights, a temperature.

    `accuracy`: that of unseen rows of each class, as the sums tell it (`expected_accuracy`); None
    for a class without rows.
    """

    gamma: float
    weights: Tensor
    temperature: float | None
    accuracy: tuple[float | None, ...]


def solved(sums: AnySums, gamma: float | None, *, balanced: bool) -> Solved:
    """`W = (R + gamma mean(diag R) I)^-1 Q`, every class weighing the same if `balanced`.

    gamma is chosen by generalised cross-validation; a number fixes it.
    """
    weighed, rows = (sums.balanced(), sums.spread()) if balanced else (sums.plain(), None)
    if gamma is not None or weighed.outputs == 0:
        chosen = solution_at(weighed, FIRST_GAMMA if gamma is None else gamma, rows)
    else:
        chosen = choose_by_cross_validation(weighed, rows)
    w = chosen.weights
    unseen = held_out_scores(w, sums, chosen.freedom)
    told = expected_accuracy(unseen)
    accuracy = tuple(told.get(c) for c in range(w.shape[1]))
    return Solved(chosen.gamma, w, best_temperature(unseen), accuracy)


def summed(
    features: FeatureMap, width: int, sample: Sample, rank: int = 0, seed: int = 0
) -> AnySums:
    """The sum of rows, which have `width` columns with their Fourier features.

    Fourier features exist for some rows at a time only. `rank`: see `Size`.
    """
    classes, device = sample.targets.shape[1], str(sample.targets.device)
    sums: AnySums | None = None
    if rank:
        sums = ThinSums.zero(width, classes, device, rank=rank, seed=seed)
    elif not len(sample):
        sums = ClassSums.zero(width, classes, device)
    if len(sample):
        for where, part in features.pieces(sample.rows):
            targets = sample.targets[where]
            sums = ClassSums.of(part, targets) if sums is None else sums.add(part, targets)
    assert sums is not None  # noqa: S101  # there are rows, or it was made above
    return sums
