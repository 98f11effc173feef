"""The metrics of an accuracy matrix, one entry each, read by all that names one; no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import nan
from statistics import fmean
from typing import Any, Literal

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix, Parts
from undrift.plugins import Registry, note_once


@dataclass(frozen=True)
class Metric:
    """One number that an accuracy matrix comes to, in percent or points.

    `key` names it in files, filters and code, `symbol` in tables, `title` in sentences;
    `formula` is its definition as TeX, M[t,i] the accuracy on part i after step t, N steps.
    `parts` says of which matrices it is one: of tasks, or of classes where those come back.
    """

    key: str
    symbol: str
    title: str
    better: Literal["up", "down"]
    formula: str
    of: Callable[[AccuracyMatrix], float]
    parts: tuple[Parts, ...] = ("tasks",)

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is: `sign * value` is to be made large."""
        return 1.0 if self.better == "up" else -1.0


def _forgetting(matrix: AccuracyMatrix) -> float:
    """Zero for a single task, which leaves nothing to forget."""
    rows, last = matrix.rows[:-1], matrix.rows[-1]
    return fmean(row[-1] - last[i] for i, row in enumerate(rows)) if rows else 0.0


def _class_forgetting(matrix: AccuracyMatrix) -> float:
    """Of the classes that were graded before the last step; zero where there is none."""
    rows, last = matrix.rows[:-1], matrix.rows[-1]
    best = [
        max(row[i] for row in rows if i < len(row)) for i in range(len(rows[-1]) if rows else 0)
    ]
    return fmean(high - last[i] for i, high in enumerate(best)) if best else 0.0


_BOTH: tuple[Parts, ...] = ("tasks", "classes")

_OWN = (
    Metric(
        *("a_avg", "A_avg", "average incremental accuracy", "up"),
        r"\frac{1}{N} \sum_t \frac{1}{t+1} \sum_{i \le t} M_{t,i}",
        lambda matrix: fmean(matrix.a_t),
        _BOTH,
    ),
    Metric(
        *("a_f", "A_f", "final accuracy", "up"),
        r"\frac{1}{N} \sum_i M_{N-1,i}",
        lambda matrix: matrix.a_t[-1],
        _BOTH,
    ),
    Metric(
        *("a_l", "A_l", "learning accuracy", "up"),
        r"\frac{1}{N} \sum_t M_{t,t}",
        lambda matrix: fmean(row[-1] for row in matrix.rows),
    ),
    Metric(
        *("forgetting", "forgetting", "forgetting", "down"),
        r"\frac{1}{N-1} \sum_{i < N-1} (M_{i,i} - M_{N-1,i})",
        _forgetting,
    ),
    Metric(
        *("a_auc", "A_auc", "area under the accuracy over the nodes seen", "up"),
        r"\sum_t w_t A_t, \; w_t \text{ the share of training nodes in step } t",
        lambda matrix: fmean(matrix.a_t, matrix.shares),
        ("classes",),
    ),
    Metric(
        *("class_forgetting", "F_class", "forgetting per class", "down"),
        r"\frac{1}{C} \sum_c (\max_{t < N-1} M_{t,c} - M_{N-1,c})",
        _class_forgetting,
        ("classes",),
    ),
)


class _Metrics(Mapping[str, Metric]):
    """Our metrics in their order, then those of other packages (`undrift.metrics`) that load."""

    _door = Registry("metric", "undrift.metrics", {metric.key: metric for metric in _OWN})

    def __getitem__(self, key: str) -> Metric:
        return _BY_KEY[key] if key in _BY_KEY else self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def origin(self, key: str) -> str:
        """The distribution that brings a metric; `undrift` for our own."""
        return self._door.origin(key)

    def _all(self) -> dict[str, Metric]:
        return dict(self._door.usable(self._checked))

    def _checked(self, key: str, found: Any) -> Metric:
        if not isinstance(found, Metric) or found.key != key:
            raise InputError(
                f"metric {key!r} of the package {self.origin(key)} must be a Metric whose key is "
                f"{key!r}, not {found!r}"
            )
        return found


_BY_KEY = {metric.key: metric for metric in _OWN}
METRICS = _Metrics()
"""Every metric by its key. To add one: an entry above, or an entry point `undrift.metrics`."""


def metric_of(matrix: AccuracyMatrix, key: str) -> float:
    """One metric of a matrix with at least one row; not a number where it is of other parts."""
    if not matrix.rows:
        raise InputError("an accuracy matrix without rows has no metrics; grade a task first")
    metric = METRICS[key]
    if matrix.parts not in metric.parts:
        return nan
    try:
        return float(metric.of(matrix))
    except Exception as error:  # another package's code may fail in any way
        theirs = f"mend or uninstall the package {METRICS.origin(key)}"
        raise InputError(
            f"metric {key!r} cannot be computed from a matrix of {len(matrix)} tasks "
            f"({type(error).__name__}: {error}); {'check it' if key in _BY_KEY else theirs}"
        ) from error


def own_metrics_of(matrix: AccuracyMatrix) -> dict[str, float]:
    """Every metric of our own that a matrix with at least one row has."""
    return {k: metric_of(matrix, k) for k, own in _BY_KEY.items() if matrix.parts in own.parts}


def metrics_of(matrix: AccuracyMatrix) -> dict[str, float]:
    """Every metric that a matrix with at least one row has.

    One of another package that cannot be computed is left out, and noted once.
    """
    found = own_metrics_of(matrix)
    for key, metric in METRICS.items():
        if key in _BY_KEY or matrix.parts not in metric.parts:
            continue
        try:
            found[key] = metric_of(matrix, key)
        except InputError as error:
            note_once(f"metric {key}", f"{error}; until then it is left out")
    return found
