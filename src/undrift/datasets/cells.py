"""What people write into the cells of a table: texts, classes (numbers or names), times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from undrift.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]
LARGEST = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = 86_400
_SHOWN, _TYPED = 6, 40  # columns that a sentence tells of, and that it has to be typed


def as_text(value: Any) -> str:
    """One value as text: whole floats as integers, none and NaN as nothing.

    >>> as_text(" a "), as_text(3.0), as_text(None), as_text(float("nan"))
    ('a', '3', '', '')
    """
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else str(int(value) if value.is_integer() else value)
    return str(value)


class Trouble(NamedTuple):
    """A cell that cannot be a feature: its column, its row from 1, and what it holds."""

    column: str
    row: int
    value: Any

    @property
    def shown(self) -> str:
        """What it holds, in words.

        >>> Trouble("x", 1, None).shown, Trouble("x", 1, "2021-03-31").shown
        ('nothing', "the date '2021-03-31'")
        """
        if isinstance(self.value, list):
            return f"a list of {len(self.value)}"
        text = as_text(self.value)
        return f"{'the date ' * _is_date(self.value)}{text[:40]!r}" if text else "nothing"


def unusable(path: object, troubles: Sequence[Trouble]) -> str:
    """One sentence about all columns that cannot be features, with what to type.

    >>> told = unusable("nodes.csv", [Trouble("price", 3, ""), Trouble("day", 1, "2021-03-31")])
    >>> print(told.split("; ")[0])
    column 'price' of nodes.csv must hold numbers, but row 3 has nothing (also column 'day': row 1 \
    has the date '2021-03-31')
    """
    first, *more = troubles
    others = [f"column {each.column!r}: row {each.row} has {each.shown}" for each in more[:_SHOWN]]
    others += [f"{len(more) - _SHOWN} more columns"] * (len(more) > _SHOWN)
    also = f" (also {', '.join(others)})" if more else ""
    return (
        f"column {first.column!r} of {path} must hold numbers, but row {first.row} has "
        f"{first.shown}{also}; correct the cells, or leave columns out with "
        f"{ignoring([each.column for each in troubles])} (in Python and in a stream.toml, name the "
        "others as features)"
    )


def ignoring(columns: Sequence[str]) -> str:
    """What to type to go on without these columns.

    >>> ignoring(["day", "first name"])
    "--ignore day --ignore 'first name'"
    """
    more = f" and {len(columns) - _TYPED:,} more" if len(columns) > _TYPED else ""
    return " ".join(f"--ignore {quote(name)}" for name in columns[:_TYPED]) + more


def as_class_ids(labels: Sequence[str], what: str) -> tuple[Array, dict[int, str]]:
    """A class id per label, and the name of each id.

    Where every label is a whole number, it is the class id: gaps stay. Otherwise the ids number
    the different labels from 0 in sorted order. An empty label, and -1 among numbers, is
    unlabelled (-1). `what` names the labels in an error. Cost: two passes over the labels.

    >>> as_class_ids(["db", "ai", "", "db"], "labels")
    (array([ 1,  0, -1,  1]), {0: 'ai', 1: 'db'})
    >>> as_class_ids(["7", "3.0", "-1"], "labels")
    (array([ 7,  3, -1]), {3: '3', 7: '7'})
    """
    known = sorted(set(labels) - {""})
    ids = {name: c for c, name in enumerate(known)}
    names = dict(enumerate(known))
    if all(map(_is_number, known)):
        for label in known:
            if not float(label).is_integer() or not -1 <= float(label) < LARGEST:
                raise InputError(
                    f"{what} holds {label!r}; write classes as whole numbers from 0 or as names, "
                    "and leave the cell of an unlabelled node empty"
                )
        ids = {label: int(float(label)) for label in known}
        names = {c: str(c) for c in sorted(ids.values()) if c >= 0}
    ids[""] = -1
    return np.fromiter(map(ids.__getitem__, labels), np.int64, len(labels)), names


def as_times(values: Sequence[Any], what: str) -> Array:
    """Numbers as they are, or ISO dates as days since 1970-01-01: all of one kind, none missing.

    `what` names the values in the error, which gives the first bad row (counted from 1).

    >>> as_times(["2019", "2021.5"], "column 'year'"), as_times(["1970-01-03"], "column 'day'")
    (array([2019. , 2021.5]), array([2.]))
    """
    read = days if are_dates(values) else float
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


def are_dates(values: Sequence[Any]) -> bool:
    """Whether `as_times` reads these as dates: the first is no number."""
    return not (values and _is_number(values[0]))


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


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, date) or (isinstance(value, str) and days(value) is not None)
    except ValueError:
        return False


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
