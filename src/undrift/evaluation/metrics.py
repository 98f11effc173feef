"""The metrics of accuracy matrices and of series, one entry each, read by all that names one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from math import isfinite, nan
from statistics import fmean
from typing import Any, Literal

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix, Parts
from undrift.plugins import Lookup, Registry, note_once


@dataclass(frozen=True)
class Metric:
    """One number that a run comes to, in percent or points.

    `key` names it in files and code, `symbol` in tables, `title` in sentences; `formula` is TeX,
    M[t,i] the accuracy on part i after step t, N steps. With `of` it is a metric of accuracy
    matrices of these `parts`, without one of a series: `formula` is of a step, the run's the mean.
    """

    key: str
    symbol: str
    title: str
    better: Literal["up", "down"]
    formula: str
    of: Callable[[AccuracyMatrix], float] | None = None
    parts: tuple[Parts, ...] = ("tasks",)

    def fits(self, parts: Parts) -> bool:
        """Whether it is a metric of matrices of these parts."""
        return self.of is not None and parts in self.parts

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is: `sign * value` is to be made large."""
        return 1.0 if self.better == "up" else -1.0


def _forgetting(matrix: AccuracyMatrix) -> float:
    rows, last = matrix.rows[:-1], matrix.rows[-1]
    return fmean(row[-1] - last[i] for i, row in enumerate(rows)) if rows else 0.0


def _class_forgetting(matrix: AccuracyMatrix) -> float:
    """Of the classes that were graded before the last step; zero where there is none."""
    rows, last = matrix.rows[:-1], matrix.rows[-1]
    best = [max(row) for row in zip_longest(*rows, fillvalue=0.0)]
    return fmean(high - last[i] for i, high in enumerate(best)) if best else 0.0


# two lines for each, the second is the formula; r is the rank of the next item among all known ones
_WORDS = r"""
a_avg | A_avg | average incremental accuracy | up
    \frac{1}{N} \sum_t \frac{1}{t+1} \sum_{i \le t} M_{t,i}
a_f | A_f | final accuracy | up
    \frac{1}{N} \sum_i M_{N-1,i}
a_l | A_l | learning accuracy | up
    \frac{1}{N} \sum_t M_{t,t}
forgetting | forgetting | forgetting | down
    \frac{1}{N-1} \sum_{i < N-1} (M_{i,i} - M_{N-1,i})
a_auc | A_auc | area under the accuracy over the nodes seen | up
    \sum_t w_t A_t, \; w_t \text{ the share of training nodes in step } t
class_forgetting | F_class | forgetting per class | down
    \frac{1}{C} \sum_c (\max_{t < N-1} M_{t,c} - M_{N-1,c})
anomaly_auroc | AUROC_a | area under the curve of anomalies over false alarms | up
    P(s_a > s_n) + \frac{1}{2} P(s_a = s_n), \; a \text{ anomalous}, n \text{ normal}
anomaly_ap | AP_a | average precision of finding anomalies | up
    \sum_n (R_n - R_{n-1}) P_n
auroc | AUROC | area under the curve of found unknown nodes over false alarms | up
    P(s_u > s_k) + \frac{1}{2} P(s_u = s_k), \; u \text{ unknown}, k \text{ known}
aupr | AUPR | average precision of calling the strangest nodes unknown | up
    \sum_n (R_n - R_{n-1}) P_n
fpr95 | FPR_95 | false alarms where 95 % of the unknown nodes are found | down
    P(s_k \ge \theta), \; \theta \text{ the largest with } P(s_u \ge \theta) \ge 0.95
oscr | OSCR | correct classification over false acceptance, the area | up
    P(\hat{y}_k = y_k, s_u > s_k) + \frac{1}{2} P(\hat{y}_k = y_k, s_u = s_k)
recall_20 | recall@20 | next items among the first 20 | up
    P(r \le 20)
mrr_20 | MRR@20 | mean reciprocal rank, 0 beyond 20 | up
    E[1 / r; r \le 20]
ndcg_20 | NDCG@20 | gain by rank, 0 beyond 20 | up
    E[1 / \log_2(1 + r); r \le 20]
recall_10 | recall@10 | next items among the first 10 | up
    P(r \le 10)
mrr_10 | MRR@10 | mean reciprocal rank, 0 beyond 10 | up
    E[1 / r; r \le 10]
ndcg_10 | NDCG@10 | gain by rank, 0 beyond 10 | up
    E[1 / \log_2(1 + r); r \le 10]
new_recall_20 | new@20 | recall@20 of items of the newest learned period | up
    P(r \le 20 \mid \text{new})
coverage | coverage | known items that were listed at all | up
    \frac{\text{items among some first 20}}{\text{known items}}
popularity | popularity | sessions that have a listed item, on average | down
    E[\text{sessions with the item} / \text{sessions}]
left_out | left out | clicks on items that were not known yet | down
    P(\text{item not known})
"""
# what those of matrices compute, and of which parts
_OF: dict[str, tuple[Callable[[AccuracyMatrix], float], tuple[Parts, ...]]] = {
    "a_avg": (lambda matrix: fmean(matrix.a_t), ("tasks", "classes")),
    "a_f": (lambda matrix: matrix.a_t[-1], ("tasks", "classes")),
    "a_l": (lambda matrix: fmean(row[-1] for row in matrix.rows), ("tasks",)),
    "forgetting": (_forgetting, ("tasks",)),
    "a_auc": (lambda matrix: fmean(matrix.a_t, matrix.shares), ("classes",)),
    "class_forgetting": (_class_forgetting, ("classes",)),
}


def _own() -> Iterator[Metric]:
    lines = [line.strip() for line in _WORDS.strip().splitlines()]
    for head, formula in zip(lines[::2], lines[1::2], strict=True):
        key, symbol, title, better = head.split(" | ")
        up_or_down: Any = better
        yield Metric(key, symbol, title, up_or_down, formula, *_OF.get(key, ()))


_BY_KEY = {metric.key: metric for metric in _own()}
_REGISTRY = Registry("metric", "undrift.metrics", _BY_KEY)


def _checked(key: str, found: Any) -> Metric:
    if not isinstance(found, Metric) or found.key != key:
        raise InputError(
            f"metric {key!r} of the package {_REGISTRY.origin(key)} must be a Metric whose key is "
            f"{key!r}, not {found!r}"
        )
    return found


METRICS: Mapping[str, Metric] = Lookup(lambda: _REGISTRY.usable(_checked))
"""Every metric by its key, ours in their order, then those of other packages that load.

To add one: its words (and for matrices a function) above, or an entry point `undrift.metrics`.
"""


def metric_of(matrix: AccuracyMatrix, key: str) -> float:
    """One metric of a matrix with at least one row; not a number where it is of other parts."""
    if not matrix.rows:
        raise InputError("an accuracy matrix without rows has no metrics; grade a task first")
    metric = METRICS[key]
    if metric.of is None or not metric.fits(matrix.parts):
        return nan
    try:
        return float(metric.of(matrix))
    except Exception as error:  # another package's code may fail in any way
        theirs = f"mend or uninstall the package {_REGISTRY.origin(key)}"
        raise InputError(
            f"metric {key!r} cannot be computed from a matrix of {len(matrix)} tasks "
            f"({type(error).__name__}: {error}); {'check it' if key in _BY_KEY else theirs}"
        ) from error


def mean_of(series: Iterable[float | None]) -> float:
    """The mean over the steps that have a number; not a number where none has.

    >>> mean_of([90.0, None, 80.0])
    85.0
    """
    found = [value for value in series if value is not None and isfinite(value)]
    return fmean(found) if found else nan


def metrics_of(matrix: AccuracyMatrix, *, own: bool = False) -> dict[str, float]:
    """Every metric of a matrix, or of our `own`; one that cannot be computed is noted once."""
    found = {}
    every = (_BY_KEY if own else METRICS).items() if matrix.rows else ()
    for key in (key for key, metric in every if metric.fits(matrix.parts)):
        try:
            found[key] = metric_of(matrix, key)
        except InputError as error:
            if key in _BY_KEY:
                raise
            note_once(f"metric {key}", f"{error}; until then it is left out")
    return found
