"""Times as people write them, numbers or dates, as numbers on one line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from undrift.errors import InputError

__all__ = ["as_times", "days"]

Array = np.ndarray[Any, np.dtype[Any]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = 86_400


def as_times(values: Sequence[Any], what: str) -> Array:
    """Numbers as they are, or ISO dates as days since 1970-01-01: all of one kind, none missing.

    `what` names the values in the error, which gives the first bad row (counted from 1).

    >>> as_times(["2019", "2021.5"], "column 'year'"), as_times(["1970-01-03"], "column 'day'")
    (array([2019. , 2021.5]), array([2.]))
    """
    read = float if values and _is_number(values[0]) else days
    times = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            times[row] = read(value)
        except (TypeError, ValueError, AttributeError):
            times[row] = np.nan
        if not np.isfinite(times[row]):
            shown = "nothing" if value is None or value in ("", b"") else repr(value)
            kind = "number" if read is float else "date like 2021-03-31"
            raise InputError(
                f"{what} must hold a {kind} in every row, as in the first, but row {row + 1} has "
                f"{shown}; correct it, or leave out the nodes whose time is not known"
            )
    return times


def days(moment: date | str) -> float:
    """Days since 1970-01-01 of a date, with or without a time; without a time zone it is UTC.

    >>> days("1970-01-02T12:00"), days(date(1970, 1, 3))
    (1.5, 2.0)
    """
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment.strip())
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH).total_seconds() / _SECONDS


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
