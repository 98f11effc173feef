"""What sums come to: gamma, weights, a temperature, and how good the scores will be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from torch import Tensor

from undrift.analytic.calibration import best_temperature, expected_accuracy, held_out_scores
from undrift.analytic.selection import FIRST_GAMMA, choose_by_cross_validation, solution_at
from undrift.analytic.thin_sums import AnySums
from undrift.propagation.plan import MARGIN
from undrift.typing import Rows


@dataclass(frozen=True, eq=False)
class Solved:
    """What sums come to: the gamma that they choose, the weights, a temperature.

    `accuracy`: that of unseen rows of each class, as the sums tell it (`expected_accuracy`); None
    for a class without rows. `variant`: the feature variant that scores come from, by itself.
    `beside`: in `hybrid`, the one beside which the encoder is used; None where it is not.
    """

    gamma: float
    weights: Tensor
    temperature: float | None
    accuracy: tuple[float | None, ...]
    variant: str = "mix"
    beside: str | None = None

    def scores(self, rows: Rows) -> Tensor:
        """Of whole rows."""
        found: Tensor = rows @ self.weights
        return found


def candidate(sums: AnySums, gamma: float | None, *, balanced: bool) -> Solved:
    """`W = (R + gamma mean(diag R) I)^-1 Q`, every class weighing the same if `balanced`.

    gamma is chosen by generalised cross-validation; a number fixes it.
    """
    sums = replace(sums)  # what it works out and keeps goes with this copy
    weighed, rows = (sums.balanced(), sums.at_mean_weight()) if balanced else (sums.plain(), None)
    if gamma is not None or sums.classes == 0:
        chosen = solution_at(weighed, FIRST_GAMMA if gamma is None else gamma, rows)
    else:
        chosen = choose_by_cross_validation(weighed, rows)
    unseen = held_out_scores(chosen.weights, sums, chosen.freedom)
    by_class = expected_accuracy(unseen)
    accuracy = tuple(by_class.get(c) for c in range(sums.classes))
    return Solved(chosen.gamma, chosen.weights, best_temperature(unseen), accuracy)


def selected_variant(accuracies: Mapping[str, Sequence[float | None]]) -> str:
    """The feature variant that scores come from, by what each one's sums tell of every class."""
    means = {name: mean_accuracy(each) for name, each in accuracies.items()}
    best = max(means, key=lambda name: means[name])
    return best if means[best] > means["mix"] + MARGIN else "mix"


def mean_accuracy(accuracies: Sequence[float | None]) -> float:
    """Over the classes that have one; 0 without any."""
    known = [value for value in accuracies if value is not None]
    return fmean(known) if known else 0.0
