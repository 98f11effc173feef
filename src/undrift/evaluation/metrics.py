"""The metrics of an accuracy matrix, one entry each, read by all that names one; no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from undrift.doors import Door
from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix


@dataclass(frozen=True)
class Metric:
    """One number that an accuracy matrix comes to, in percent or points.

    `key` names it in files, filters and code, `symbol` in tables, `title` in sentences;
    `formula` is its definition as TeX, M[t,i] the accuracy on task i after task t, N tasks.
    """

    key: str
    symbol: str
    title: str
    better: Literal["up", "down"]
    formula: str
    of: Callable[[AccuracyMatrix], float]

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is: `sign * value` is to be made large."""
        return 1.0 if self.better == "up" else -1.0


def _forgetting(matrix: AccuracyMatrix) -> float:
    """Zero for a single task, which leaves nothing to forget."""
    rows, last = matrix.rows[:-1], matrix.rows[-1]
    return fmean(row[-1] - last[i] for i, row in enumerate(rows)) if rows else 0.0


_OWN = (
    Metric(
        key="a_avg",
        symbol="A_avg",
        title="average incremental accuracy",
        better="up",
        formula=r"\frac{1}{N} \sum_t \frac{1}{t+1} \sum_{i \le t} M_{t,i}",
        of=lambda matrix: fmean(matrix.a_t),
    ),
    Metric(
        key="a_f",
        symbol="A_f",
        title="final accuracy",
        better="up",
        formula=r"\frac{1}{N} \sum_i M_{N-1,i}",
        of=lambda matrix: matrix.a_t[-1],
    ),
    Metric(
        key="a_l",
        symbol="A_l",
        title="learning accuracy",
        better="up",
        formula=r"\frac{1}{N} \sum_t M_{t,t}",
        of=lambda matrix: fmean(row[-1] for row in matrix.rows),
    ),
    Metric(
        key="forgetting",
        symbol="forgetting",
        title="forgetting",
        better="down",
        formula=r"\frac{1}{N-1} \sum_{i < N-1} (M_{i,i} - M_{N-1,i})",
        of=_forgetting,
    ),
)


class _Metrics(Mapping[str, Metric]):
    """Our metrics in their order, then those of other packages (`undrift.metrics`)."""

    _door = Door("metric", "undrift.metrics", {metric.key: metric for metric in _OWN})

    def __getitem__(self, key: str) -> Metric:
        if key not in self._door:
            raise KeyError(key)
        found: Any = self._door.own.get(key) or self._door.load(key)
        if not isinstance(found, Metric) or found.key != key:
            raise InputError(
                f"metric {key!r} of the package {self._door.origin(key)} must be a Metric whose "
                f"key is {key!r}, not {found!r}"
            )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._door.names())

    def __len__(self) -> int:
        return len(self._door.names())


METRICS: Mapping[str, Metric] = _Metrics()
"""Every metric by its key. To add one: an entry above, or an entry point `undrift.metrics`."""


def metric_of(matrix: AccuracyMatrix, key: str) -> float:
    """One metric of a matrix with at least one row."""
    if not matrix.rows:
        raise InputError("an accuracy matrix without rows has no metrics; grade a task first")
    try:
        return float(METRICS[key].of(matrix))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # of another package
        raise InputError(
            f"metric {key!r} cannot be computed from a matrix of {len(matrix)} tasks "
            f"({type(error).__name__}: {error}); mend or uninstall the package that brings it"
        ) from error


def metrics_of(matrix: AccuracyMatrix) -> dict[str, float]:
    """Every metric of a matrix with at least one row.

    >>> metrics_of(AccuracyMatrix([[90.0], [70.0, 80.0]]))
    {'a_avg': 82.5, 'a_f': 75.0, 'a_l': 85.0, 'forgetting': 20.0}
    """
    return {key: metric_of(matrix, key) for key in METRICS}
