"""The accuracy matrix M of a run; what it comes to is in `metrics` (eqs. 12 and 13).

Importing this module does not import torch, so that tables of results are quick to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from undrift.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class AccuracyMatrix:
    """`rows[t][i]` is the accuracy on task i after learning task t, in percent; i <= t.

    A matrix of a run that is still going has the rows so far, and N is their number. Every
    metric of `undrift.evaluation.metrics` is an attribute.

    >>> m = AccuracyMatrix([[90.0], [70.0, 80.0]])
    >>> m.a_t, m.a_avg, m.a_f, m.a_l, m.forgetting
    ((90.0, 75.0), 82.5, 75.0, 85.0, 20.0)
    """

    rows: Sequence[Sequence[float]] = ()

    def __post_init__(self) -> None:
        for t, row in enumerate(self.rows):
            if len(row) != t + 1:
                raise InputError(
                    f"row {t} of an accuracy matrix needs {t + 1} entries, one per task seen, "
                    f"not {len(row)}"
                )
            for accuracy in row:
                if not 0.0 <= accuracy <= 100.0:
                    raise InputError(
                        f"row {t} of an accuracy matrix holds {accuracy}; accuracies are in "
                        "percent, 0 to 100"
                    )
        # tuples, so that what is frozen cannot be changed through a list that was passed in
        object.__setattr__(self, "rows", tuple(tuple(float(a) for a in row) for row in self.rows))

    def __len__(self) -> int:
        return len(self.rows)

    def then(self, row: Sequence[float]) -> AccuracyMatrix:
        """The matrix with the accuracies after one more task."""
        return AccuracyMatrix((*self.rows, row))

    @property
    def a_t(self) -> tuple[float, ...]:
        """A_t = sum_{i<=t} M[t,i] / (t+1): the mean over the tasks seen, after each task."""
        return tuple(fmean(row) for row in self.rows)

    def __getattr__(self, key: str) -> float:
        from undrift.evaluation.metrics import METRICS, metric_of

        if key.startswith("_") or key not in METRICS:
            raise AttributeError(f"{type(self).__name__!r} has no metric {key!r}")
        return metric_of(self, key)


def class_accuracy(predicted: Tensor, truth: Tensor, classes: Sequence[int]) -> float:
    """Mean over the classes of each class's accuracy, in percent: every class counts the same.

    A class without a node in `truth` is left out; without any node the accuracy is NaN.

    >>> import torch
    >>> truth, predicted = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1])
    >>> round(class_accuracy(predicted, truth, [0, 1]), 2)
    83.33
    """
    _check_shapes(predicted, truth)
    members = [truth == c for c in classes]
    parts = [node_accuracy(predicted[of], truth[of]) for of in members if bool(of.any())]
    return fmean(parts) if parts else float("nan")


def node_accuracy(predicted: Tensor, truth: Tensor) -> float:
    """Share of nodes predicted right, in percent: every node counts the same.

    >>> import torch
    >>> node_accuracy(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 0, 1]))
    75.0
    """
    _check_shapes(predicted, truth)
    if truth.numel() == 0:
        return float("nan")
    return 100.0 * int((predicted == truth).sum()) / truth.numel()


def _check_shapes(predicted: Tensor, truth: Tensor) -> None:
    if predicted.shape != truth.shape:
        raise InputError(
            f"predictions of shape {tuple(predicted.shape)} cannot be graded against labels of "
            f"shape {tuple(truth.shape)}; predict one class per node"
        )
