"""The accuracy matrix M of a run; what it comes to is in `metrics`. Does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from undrift.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


Parts = Literal["tasks", "classes"]


@dataclass(frozen=True)
class AccuracyMatrix:
    """`rows[t][i]` is the accuracy on part i after step t, in percent.

    Where no class comes back, a part is a task, a step is a task, and i <= t. Where classes come
    back, a part is a class, in order of arrival, a step is a batch after which was graded, and a
    row is as long as there are classes seen; `shares` is then the share of the training nodes
    that arrived in each step. `weights` are those of the parts in a mean; all are equal without.
    Every metric of `undrift.evaluation.metrics` is an attribute, NaN where it is of other parts.

    >>> m = AccuracyMatrix([[90.0], [70.0, 80.0]])
    >>> m.a_t, m.a_avg, m.a_f, m.a_l, m.forgetting
    ((90.0, 75.0), 82.5, 75.0, 85.0, 20.0)
    >>> m = AccuracyMatrix([[90.0], [70.0, 80.0]], "classes", shares=(0.2, 0.8))
    >>> m.a_auc, m.class_forgetting, m.a_l
    (78.0, 20.0, nan)
    """

    rows: Sequence[Sequence[float]] = ()
    parts: Parts = "tasks"
    weights: Sequence[float] | None = None
    shares: Sequence[float] = ()

    def __repr__(self) -> str:
        return f"AccuracyMatrix({[[round(x, 1) for x in row] for row in self.rows]})"

    def __post_init__(self) -> None:
        # tuples, so that what is frozen cannot be changed through a list that was passed in
        object.__setattr__(self, "rows", tuple(tuple(map(float, row)) for row in self.rows))
        object.__setattr__(self, "shares", tuple(self.shares))
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(self.weights))
        lengths = [len(row) for row in self.rows]
        for t, length in enumerate(lengths):
            if self.parts == "tasks" and length != t + 1:
                raise InputError(
                    f"row {t} of an accuracy matrix needs {t + 1} entries, one per task seen, not "
                    f"{length}"
                )
        if self.parts == "classes" and (
            lengths != sorted(lengths) or 0 in lengths or len(self.shares) != len(lengths)
        ):
            raise InputError(
                "an accuracy matrix of classes needs rows that do not get shorter, and a share "
                f"for each, not {lengths} entries with {len(self.shares)} shares"
            )
        if self.weights is not None and len(self.weights) < max(lengths, default=0):
            raise InputError(
                f"an accuracy matrix of {max(lengths)} parts needs a weight for each, not "
                f"{len(self.weights)}"
            )
        for t, row in enumerate(self.rows):
            if wrong := [accuracy for accuracy in row if not 0.0 <= accuracy <= 100.0]:
                raise InputError(
                    f"row {t} of an accuracy matrix holds {wrong[0]}; accuracies are in percent, "
                    "0 to 100"
                )

    def __len__(self) -> int:
        return len(self.rows)

    def then(self, row: Sequence[float], share: float | None = None) -> AccuracyMatrix:
        """The matrix with the accuracies after one more step; of classes also its share."""
        shares = self.shares if share is None else (*self.shares, share)
        return replace(self, rows=(*self.rows, row), shares=shares)

    @property
    def a_t(self) -> tuple[float, ...]:
        """A_t, the mean over the parts seen, after each step: sum_{i<=t} M[t,i] / (t+1)."""
        if self.weights is None:
            return tuple(fmean(row) for row in self.rows)
        return tuple(fmean(row, self.weights[: len(row)]) for row in self.rows)

    def __getattr__(self, key: str) -> float:
        from undrift.evaluation.metrics import METRICS, metric_of

        if key.startswith("_") or key not in METRICS:
            raise AttributeError(f"{type(self).__name__!r} has no metric {key!r}")
        return metric_of(self, key)


def class_accuracy(predicted: Tensor, truth: Tensor, classes: Sequence[int]) -> float:
    """Mean of the accuracy of each class that has a node, in percent; NaN without any node."""
    right = _right(predicted, truth)
    members = [truth == c for c in classes]
    parts = [100.0 * int(right[of].sum()) / int(of.sum()) for of in members if bool(of.any())]
    return fmean(parts) if parts else nan


def node_accuracy(predicted: Tensor, truth: Tensor) -> float:
    """Share of nodes predicted right, in percent: every node counts the same."""
    right = _right(predicted, truth)
    return 100.0 * int(right.sum()) / right.numel() if right.numel() else nan


def _right(predicted: Tensor, truth: Tensor) -> Tensor:
    if predicted.shape != truth.shape:
        raise InputError(
            f"predictions of shape {tuple(predicted.shape)} cannot be graded against labels of "
            f"shape {tuple(truth.shape)}; predict one class per node"
        )
    return predicted == truth
