"""Cells of tables in memory: columns of any library as Python values, and what a cell means."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from undrift.errors import InputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", "NULL", "<NA>", "#N/A")
"""What a missing cell is written as, beside None and NaN."""

_FLOATS = float | np.floating
_NUMBERS = _FLOATS | np.datetime64 | np.timedelta64
_WHOLE = re.compile(r"(-?\d+)\.0+")
LARGEST = 2**53  # whole numbers below this are exact as floats

_MISSING = ("NAType", "NaTType")  # of pandas: a cell with nothing in it


class Table(dict[str, list[Any]]):
    """The cells of every column of a dict, or of a table of pandas, Polars or PyArrow.

    An index of pandas that has a name is a column too.
    """

    def __init__(self, table: Any, name: str) -> None:
        super().__init__()
        self.name = name
        if not is_table(table):
            kind = type(table).__name__
            must = "a dict of columns, a table in memory or the path of one"
            raise InputError(f"{name} must be {must}, not a {kind}")
        if hasattr(table, "collect"):  # a lazy frame of Polars
            table = table.collect()
        names = table if isinstance(table, Mapping) else getattr(table, "column_names", None)
        index: Any = getattr(table, "index", None)
        named = [each for each in getattr(index, "names", None) or () if each is not None]
        columns = [(each, table[each]) for each in (table.columns if names is None else names)]
        for column, cells in [(each, index.get_level_values(each)) for each in named] + columns:
            if str(column) in self:
                problem = f"has two columns {str(column)!r}; give every column its own name"
                raise InputError(f"{name} {problem}")
            dates = isinstance(cells, np.ndarray) and cells.dtype.kind in "mM"  # of ns: numbers
            plain = cells.astype(f"{cells.dtype.kind}8[us]") if dates else cells
            if (values := as_list(plain)) is None:
                problem = f"must be a list, a cell per row, not {cells!r}"
                raise InputError(f"column {str(column)!r} of {name} {problem}")
            self[str(column)] = [None if type(v).__name__ in _MISSING else v for v in values]
        lengths = {len(cells): column for column, cells in self.items()}
        if len(lengths) > 1:
            problem = " and ".join(
                f"{n:,} in {column!r}" for n, column in list(lengths.items())[:2]
            )
            raise InputError(f"the columns of {name} have {problem} rows; give all the same number")

    def __str__(self) -> str:
        return self.name


def is_table(x: Any) -> bool:
    """Whether this is a table in memory; a dict with an `edge_index` holds a graph."""
    if isinstance(x, Mapping):
        return "edge_index" not in x
    # a lazy frame is asked first if it is one: it would warn if asked for its columns
    named = any(hasattr(x, name) for name in ("lazy", "column_names", "columns"))
    return named and hasattr(x, "__getitem__")


def as_list(x: Any) -> list[Any] | None:
    """The values of a list, an array, a tensor or a column, as plain ones; None of a single one."""
    # NumPy, pandas and torch, Polars, PyArrow
    ways = (getattr(x, way, None) for way in ("tolist", "to_list", "to_pylist"))
    way = next((way for way in ways if way is not None), None)
    values = x if way is None else way()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return None
    return list(values)


def as_texts(cells: Iterable[Any], what: str) -> list[str]:
    """Cells as text; a float that cannot tell its last digit is an error, as ids would be mixed."""
    cells = list(cells)
    for cell in cells:
        if isinstance(cell, _FLOATS) and abs(float(cell)) >= LARGEST:
            problem = f"holds {float(cell):.17g} as a float, which has lost the last digits"
            way = "read the column as text, as a table turns numbers into floats if one is missing"
            raise InputError(f"{what} {problem}; {way}")
    return [as_text(cell) for cell in cells]


def as_text(value: Any) -> str:
    """One value as text: whole floats as integers, none, NaN and NaT as nothing."""
    kind = type(value).__name__
    if value is None or kind in _MISSING or (isinstance(value, _NUMBERS) and np.isnan(value)):
        return ""
    if isinstance(value, _FLOATS) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def as_category(text: str) -> str:
    """A name without blanks around it and, of a whole number, without a point: 2 for 2.0."""
    whole = _WHOLE.fullmatch(text := text.strip())
    return whole[1] if whole else text


def days(moment: date | str) -> float:
    """Days since 1970-01-01 of a date, with or without a time; without a time zone it is UTC."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment.strip())
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH).total_seconds() / 86_400


def fits(read: Any, value: Any) -> bool:
    """Whether this function reads the value."""
    try:
        read(value)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return False
    return True
