"""Is the best row better than another, or luck of the seeds? A paired t-test, Holm-corrected.

Rows share seeds, so splits: differences by seed drop what a lucky split gives to all rows, most
of a cell's deviation. An exact sign-flip (or Wilcoxon) test of n seeds has no two-sided p-value
under 2 / 2^n, 0.0625 for the usual 5: it could show nothing at 0.05. The price of the t-test is
the assumption that differences are about normal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TypeVar

Key = TypeVar("Key")

# differences of accuracies in percent that are closer than this differ by rounding alone
_ROUNDING = 1e-9


def paired_t_test(differences: Sequence[float]) -> float | None:
    """The two-sided p-value of the hypothesis that the mean of these differences is 0.

    t = d / (s / sqrt(n)) with n - 1 degrees of freedom, d the mean and s the sample deviation.
    All 0 gives 1. None under two differences, and where all are the same but not 0: a deviation
    of 0 says nothing about how far the next seed would fall.

    >>> round(paired_t_test([1.0, 2.0, 3.0]), 4), paired_t_test([0.0, 0.0]), paired_t_test([5.0])
    (0.0742, 1.0, None)
    """
    n = len(differences)
    if n < 2:
        return None
    if max(map(abs, differences)) < _ROUNDING:
        return 1.0
    spread = stdev(differences)
    if spread < _ROUNDING:
        return None
    from scipy.special import stdtr  # here: scipy takes its time to import

    t = fmean(differences) / (spread / n**0.5)
    return min(1.0, 2.0 * float(stdtr(n - 1, -abs(t))))


def holm(values: Mapping[Key, float]) -> dict[Key, float]:
    """p-values of several tests, corrected so that one false alarm among all has its level.

    Holm 1979: with p_1 <= ... <= p_m, the corrected p_i is the largest of (m - j + 1) p_j over
    j <= i, and at most 1. It assumes nothing about how the tests depend on each other.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    corrected: dict[Key, float] = {}
    largest = 0.0
    for place, key in enumerate(sorted(values, key=lambda key: values[key])):
        largest = max(largest, min(1.0, (len(values) - place) * values[key]))
        corrected[key] = largest
    return {key: corrected[key] for key in values}
