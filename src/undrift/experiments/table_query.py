"""Questions to a table of results: filters such as `a_f>=80`, an order, and SQL."""

from __future__ import annotations

import operator
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatchcase
from statistics import stdev
from typing import Any

from undrift.errors import InputError, unknown_name
from undrift.experiments.table import ResultTable, Row, Value

__all__ = ["ask", "column_of", "filtered", "ordered"]

_FILTER = re.compile(r"\s*([\w.]+)\s*(>=|<=|!=|==|=|>|<)\s*(.*?)\s*", re.DOTALL)
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def filtered(table: ResultTable, filters: Iterable[str]) -> ResultTable:
    """The rows that pass every filter: `name=value` or with `!=`, `<`, `<=`, `>`, `>=`.

    Text is compared with a pattern (`*`, `?`, `[ab]`), only by `=` and `!=`. `name=` alone finds
    the rows without a value, which pass no comparison but `!=`. A hyperparameter may go by its
    own name: `gamma=0.1` for `param_gamma=0.1`.
    """
    rows = table.rows
    for text in filters:
        passes = _test(table, text)
        rows = [row for row in rows if passes(row)]
    return replace(table, rows=rows)


def ordered(table: ResultTable, column: str, *, reverse: bool = False) -> ResultTable:
    """The rows in order of a column: numbers from the highest, text from A; empty ones last."""
    name = column_of(table, column)
    there = [row for row in table.rows if row[name] is not None]
    numbers = _kind(table, name) is not str
    there.sort(key=lambda row: row[name], reverse=numbers != reverse)  # type: ignore[arg-type, return-value]
    return replace(table, rows=there + [row for row in table.rows if row[name] is None])


def ask(table: ResultTable, query: str) -> tuple[tuple[str, ...], list[tuple[Value, ...]]]:
    """The names and rows that one SQL query finds in the table `results` (SQLite's SQL).

    The table is a copy in memory, and nothing but reading is allowed. `stdev` is there beside
    SQLite's own `avg`.
    """
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            _fill(connection, table)
            connection.create_aggregate("stdev", 1, _Stdev)  # type: ignore[arg-type]
            connection.set_authorizer(_only_read)
            cursor = connection.execute(query)
            found = cursor.fetchall()
            names = tuple(column[0] for column in cursor.description or ())
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        raise InputError(
            f"the query failed ({error}); it must be one SELECT, and its table is results, with "
            f"the columns {', '.join(table.columns)}"
        ) from error
    if not names:
        raise InputError("the query is empty; write for example SELECT id, a_f FROM results")
    return names, found


def column_of(table: ResultTable, name: str) -> str:
    """The column that a user means by a name; an unknown one is an `InputError` with the list."""
    plain = name.strip().lower().replace(".", "_")
    for candidate in (plain, f"param_{plain}"):
        if candidate in table.columns:
            return candidate
    raise unknown_name("column", name, table.columns)


def _test(table: ResultTable, text: str) -> Callable[[Row], bool]:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise InputError(
            f"--filter takes a column, one of = != < <= > >= and a value, for example "
            f"--filter 'a_f>=80', not {text!r}"
        )
    name, sign, wanted = column_of(table, match[1]), match[2].replace("==", "="), match[3]
    if wanted == "":
        if sign not in ("=", "!="):
            raise InputError(f"--filter {text!r} has no value; write one after the {sign}")
        return lambda row: (row[name] is None) == (sign == "=")
    kind = _kind(table, name)
    if kind is None:
        return lambda row: sign == "!="
    if kind is str:
        return _text_test(name, sign, wanted)
    compare, value = _ORDER[sign], _literal(name, kind, wanted)
    return lambda row: sign == "!=" if row[name] is None else compare(row[name], value)


def _text_test(name: str, sign: str, wanted: str) -> Callable[[Row], bool]:
    if sign not in ("=", "!="):
        raise InputError(
            f"column {name} holds text, which {sign} cannot compare; use {name}={wanted} or "
            f"{name}!={wanted}, where * stands for anything"
        )
    plain = wanted[1:-1] if len(wanted) > 1 and wanted[0] == wanted[-1] == "'" else wanted
    return lambda row: (
        (row[name] is not None and (str(row[name]) == plain or fnmatchcase(str(row[name]), plain)))
        == (sign == "=")
    )


def _literal(name: str, kind: type, text: str) -> float | bool:
    try:
        return _WORDS[text.lower()] if kind is bool else float(text)
    except (KeyError, ValueError):
        holds = "true or false" if kind is bool else "numbers"
        raise InputError(f"column {name} holds {holds}, and {text!r} is none of them") from None


def _kind(table: ResultTable, name: str) -> type | None:
    """What a column holds: bool, float (any number) or str; None where it is empty."""
    for row in table.rows:
        value = row[name]
        if value is not None:
            return bool if isinstance(value, bool) else str if isinstance(value, str) else float
    return None


def _fill(connection: sqlite3.Connection, table: ResultTable) -> None:
    names = ", ".join(f'"{name}"' for name in table.columns)
    marks = ", ".join("?" for _ in table.columns)
    connection.execute(f"CREATE TABLE results ({names})")
    values: Iterable[Sequence[Value]] = (tuple(row.values()) for row in table.rows)
    connection.executemany(f"INSERT INTO results VALUES ({marks})", values)  # noqa: S608
    connection.commit()


class _Stdev:
    """The sample deviation of the numbers of a group; nothing with fewer than two."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: Value) -> None:
        if isinstance(value, int | float):
            self._values.append(value)

    def finalize(self) -> float | None:
        return stdev(self._values) if len(self._values) > 1 else None


def _only_read(action: int, *_: Any) -> int:
    # a query could otherwise open, and so make, a file by ATTACH
    reading = (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY
