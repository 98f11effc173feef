"""Which classes arrive in which task: in an order, or in the period of their first node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from torch import Tensor

from undrift.checks import checked
from undrift.errors import InputError
from undrift.graphs.inputs import as_numbers

Array = np.ndarray[Any, np.dtype[Any]]
Order = Literal["label", "random"] | Sequence[int]


def ordered_classes(classes: list[int], order: Order, seed: int) -> list[int]:
    """The classes in the order in which they arrive.

    >>> ordered_classes([0, 1, 2], [2, 0, 1], seed=0)
    [2, 0, 1]
    """
    order = checked("order", Order, order)
    if order == "label":
        return classes
    if order == "random":
        # another sequence than any class's split, which is drawn from [seed, class]
        generator = np.random.default_rng([seed, 0, len(classes)])
        return [int(c) for c in generator.permutation(classes)]
    wanted: list[int] = list(order)
    if sorted(wanted) != classes:
        missing = sorted(set(classes) - set(wanted))
        extra = sorted(set(wanted) - set(classes))
        repeated = sorted({c for c in wanted if wanted.count(c) > 1})
        raise InputError(
            f"order must name each of the {len(classes)} classes once (missing {missing}, "
            f"unknown {extra}, repeated {repeated}); give a permutation of {classes}"
        )
    return wanted


def check_sizes(base: int, increment: int, classes: int) -> None:
    """Reject tasks of no class, and a base of more than there are."""
    base, increment = checked("base", int, base), checked("increment", int, increment)
    if not 1 <= base <= classes:
        raise InputError(
            f"base must be between 1 and the {classes} classes of the graph, not {base}"
        )
    if increment < 1:
        raise InputError(f"increment must be 1 class or more per task, not {increment}")


@dataclass(frozen=True, eq=False)
class Times:
    """A time per node (not a number where it is unknown), and when periods start, if given."""

    values: Array
    starts: tuple[float, ...] | None = None

    @classmethod
    def of(cls, time: Any, starts: tuple[float, ...] | None = None) -> Times:
        """From anything that holds a number per node."""
        return cls(as_numbers(time, "time").astype(np.float64), starts)


@dataclass(frozen=True)
class Periods:
    """Where each period starts, and the classes that first appear in it (none is possible)."""

    starts: tuple[float, ...]
    classes: tuple[tuple[int, ...], ...]
    dates: bool = False  # whether times are days since 1970-01-01

    @property
    def tasks(self) -> tuple[tuple[int, ...], ...]:
        """The classes of every period that brings some: those are the tasks."""
        return tuple(classes for classes in self.classes if classes)

    def __str__(self) -> str:
        """A sentence for a report: the periods, and those that made no task."""
        starts = [moment(start, self.dates) for start in self.starts]
        empty = [start for start, new in zip(starts, self.classes, strict=True) if not new]
        text = f"{len(starts)} periods, starting at {', '.join(starts)}"
        if not empty:
            return text
        which = ", ".join(empty)
        return f"{text}; no new class in {len(empty)} of them, which make no task: {which}"


def moment(time: float, dates: bool) -> str:
    """A time as it was given: a number, or the date of a number of days since 1970-01-01.

    >>> moment(2021.5, dates=False), moment(20454.0, dates=True), moment(20482.5, dates=True)
    ('2021.5', '2026-01-01', '2026-01-29 12:00')
    """
    if not dates:
        return f"{time:.10g}"
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=time)
    return f"{day:%Y-%m-%d}" if float(time).is_integer() else f"{day:%Y-%m-%d %H:%M}"


def classes_by_period(
    labels: Tensor, time: Any, periods: int | Sequence[float], *, dates: bool = False
) -> Periods:
    """Give every class to the period in which its first node appears (see `TaskStream.by_time`).

    Unlabelled nodes (-1) do not count, and their time may be unknown. Cost: one pass over them.

    >>> import torch
    >>> labels = torch.tensor([0, 0, 1, 2])
    >>> found = classes_by_period(labels, [2001, 2010, 2004, 2009], [2003, 2006])
    >>> found.starts, found.classes
    ((2001.0, 2003.0, 2006.0), ((0,), (1,), (2,)))
    """
    known = labels.cpu().numpy()
    times = _times(time, known)
    starts = starts_of(times[known >= 0], periods, dates=dates)
    classes, place = np.unique(known[known >= 0], return_inverse=True)
    first = np.full(classes.size, np.inf)
    np.minimum.at(first, place, times[known >= 0])
    period = np.searchsorted(starts[1:], first, side="right")
    return Periods(
        tuple(starts.tolist()),
        tuple(tuple(classes[period == p].tolist()) for p in range(starts.size)),
        dates,
    )


def _times(time: Any, labels: Array) -> Array:
    times: Array = as_numbers(time, "time").astype(np.float64)
    if times.shape != labels.shape:
        raise InputError(
            f"time must be {labels.size} numbers, one per node, not of shape {times.shape}"
        )
    unknown = np.flatnonzero(~np.isfinite(times) & (labels >= 0))
    if unknown.size:
        raise InputError(
            f"the time of {unknown.size} labelled nodes is not a finite number, first of node "
            f"{unknown[0]}; give them a time or label them -1"
        )
    return times


def starts_of(times: Array, periods: int | Sequence[float], *, dates: bool = False) -> Array:
    """When each period starts: so many of equal length, or the first time and those given."""
    if not times.size:
        raise InputError("a stream by time needs nodes with a class label; there is none")
    low, high = times.min(), times.max()
    if isinstance(periods, int | np.integer) and not isinstance(periods, bool):
        if periods < 1:
            raise InputError(f"periods must be 1 or more, not {periods}")
        equal: Array = low + (high - low) * np.arange(periods) / periods
        return equal
    bounds = as_numbers(periods, "periods").astype(np.float64)
    increasing = bounds.ndim == 1 and all(a < b for a, b in pairwise(bounds.tolist()))
    if not bounds.size or not increasing or not np.isfinite(bounds).all():
        raise InputError(
            "periods must be a whole number, or the times at which new periods start in "
            f"increasing order, not {periods!r}"
        )
    outside = bounds[(bounds <= low) | (bounds > high)]
    if outside.size:
        raise InputError(
            f"a period cannot start at {moment(outside[0], dates)}, as the times of the labelled "
            f"nodes reach from {moment(low, dates)} to {moment(high, dates)}; give starts after "
            "the first time and up to the last"
        )
    return np.concatenate([[low], bounds])
