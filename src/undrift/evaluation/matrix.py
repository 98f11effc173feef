"""The accuracy matrix M of a run, and the paper's metrics of it (eqs. 12 and 13).

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

__all__ = ["AccuracyMatrix", "class_accuracy", "node_accuracy"]


@dataclass(frozen=True)
class AccuracyMatrix:
    """`rows[t][i]` is the accuracy on task i after learning task t, in percent; i <= t.

    A matrix of a run that is still going has the rows so far, and N is their number.

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

    @property
    def a_avg(self) -> float:
        """A_avg = sum_t A_t / N: average incremental accuracy (eq. 12)."""
        return fmean(self._graded().a_t)

    @property
    def a_f(self) -> float:
        """A_f = sum_t M[N-1,t] / N: final accuracy (eq. 12)."""
        return self._graded().a_t[-1]

    @property
    def a_l(self) -> float:
        """A_l = sum_t M[t,t] / N: learning accuracy, each task just after it was learned (13)."""
        return fmean(row[-1] for row in self._graded().rows)

    @property
    def forgetting(self) -> float:
        """Mean over i < N-1 of M[i,i] - M[N-1,i], in points; negative where tasks got better.

        Zero for a single task, which leaves nothing to forget.
        """
        rows = self._graded().rows
        if len(rows) == 1:
            return 0.0
        return fmean(rows[i][i] - rows[-1][i] for i in range(len(rows) - 1))

    def _graded(self) -> AccuracyMatrix:
        if not self.rows:
            raise InputError("an accuracy matrix without rows has no metrics; grade a task first")
        return self


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
