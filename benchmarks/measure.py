"""Measuring: medians of interleaved repeats, and ratios with a budget."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Ratio:
    """One line of the table: a ratio of two times measured in the same run.

    `budget` is what the project promises: at most that much, or at least that much with
    `at_least`. None: only reported.
    """

    name: str
    value: float
    detail: str
    budget: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        if self.budget is None:
            return True
        return self.value >= self.budget if self.at_least else self.value <= self.budget


def interleaved(
    candidates: Mapping[str, Callable[[], object]], repeats: int, warm_up: int = 2
) -> dict[str, float]:
    """Median seconds of each candidate; they take turns, so a slow moment hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(warm_up + repeats):
        for name, call in candidates.items():
            start = time.perf_counter()
            call()
            if turn >= warm_up:
                times[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in times.items()}


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    return timed_result(call)[0]


def timed_result(call: Callable[[], T]) -> tuple[float, T]:
    """Seconds of one call, and what it gave."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
