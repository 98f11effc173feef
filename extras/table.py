"""Questions to the results of a folder, in DuckDB: filters such as `a_f>=80`, an order, SQL."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np

from extras.flat import Row, Value, flat, ordered
from undrift.errors import InputError, unknown_name
from undrift.experiments.store import read_each, read_run, run_files
from undrift.storage.files import write_atomically
from undrift.typing import Progress, silent

_FILTER = re.compile(r"\s*([\w.]+)\s*(>=|<=|!=|==|=|>|<)\s*(.*?)\s*", re.DOTALL)
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_LARGEST = 2**63
_ORDER = ("stream", "method", "params", "seed", "id")
# the kind of a column without a value: a number unless it stands here
_TEXT = {"id", "stream", "arrive", "method", "protocol", "device", "params"}
_TEXT |= {"data_sha256", "split_sha256"}
_FLAGS = {"stand_in", "keeps_examples"}
_SQL = {str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}


def load_table(folder: str | Path, *, progress: Progress = silent) -> ResultTable:
    """The table of a folder. Damaged results are left out and named in `damaged`.

    Cost: about 0.2 ms for a result.
    """
    results, damaged = read_each([(path, read_run) for path in run_files(folder)], progress)
    return ResultTable([flat(result, p.parent.name) for p, result in results.items()], damaged)


class ResultTable:
    """The runs of a folder as the table `results` of a database in memory.

    Every row has every column, None where it has no value, and a column holds values of one
    kind: booleans, numbers or text. `damaged` says which results were left out and why.
    """

    def __init__(self, rows: Sequence[Row], damaged: Sequence[str] = ()) -> None:
        self.damaged = list(damaged)
        self.columns = ordered(rows)
        arrays, typed = {}, []
        self._kinds: dict[str, type | None] = {}  # float for any number, None where it is empty
        for name in self.columns:
            kind, arrays[name] = _array(name, [row.get(name) for row in rows])
            there = any(row.get(name) is not None for row in rows)
            self._kinds[name] = None if not there else float if kind is int else kind
            typed.append(f'CAST("{name}" AS {_SQL[kind]}) AS "{name}"')
        self._open = True
        self._base = duckdb.connect(":memory:")
        self._base.register("given", arrays)
        self._base.execute(f"CREATE TABLE results AS SELECT {', '.join(typed)} FROM given")  # noqa: S608
        self._base.unregister("given")
        self._base.execute("CREATE MACRO stdev(x) AS stddev_samp(x)")

    def __len__(self) -> int:
        return len(self._base.execute("SELECT id FROM results").fetchall())

    def keep(self, filters: Iterable[str]) -> None:
        """Keep only the rows that pass every filter: `name=value`, or `!=`, `<`, `<=`, `>`, `>=`.

        Text is compared with a pattern (`*`, `?`, `[ab]`), only by `=` and `!=`. `name=` alone
        finds the rows without a value, which pass no comparison but `!=`. A hyperparameter may
        go by its own name: `gamma=0.1` for `param_gamma=0.1`.
        """
        for text in filters:
            condition, values = self._condition(text)
            self._base.execute(
                f"DELETE FROM results WHERE NOT coalesce({condition}, false)",  # noqa: S608
                values,
            )

    def rows(
        self, columns: Sequence[str], sort: str | None = None, *, reverse: bool = False
    ) -> list[tuple[Value, ...]]:
        """These columns of every row, by stream, method, params and seed, or in order of a column.

        Numbers go from the highest, text from A; rows without a value come last.
        """
        order = [f'"{name}"' for name in _ORDER]
        if sort is not None:
            name = self.column(sort)
            down = (self._kinds[name] is not str) != reverse
            order.insert(0, f'"{name}" {"DESC" if down else "ASC"} NULLS LAST')
        names = ", ".join(f'"{self.column(name)}"' for name in columns)
        query = f"SELECT {names} FROM results ORDER BY {', '.join(order)}"  # noqa: S608
        return self._base.execute(query).fetchall()

    def ask(self, query: str) -> tuple[tuple[str, ...], list[tuple[Value, ...]]]:
        """The names and rows that one SQL query finds in the table `results` (DuckDB's SQL).

        Only reading is allowed, and only this table: no file, no network, no other setting.
        """
        try:
            statements = self._base.extract_statements(query)
            if not statements:
                raise InputError(
                    "the query is empty; write for example SELECT id, a_f FROM results"
                )
            if len(statements) > 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise duckdb.Error("it is not one SELECT")
            self._lock()
            cursor = self._base.execute(statements[0])
            names = tuple(str(column[0]) for column in cursor.description or ())
            return names, [tuple(map(_plain, row)) for row in cursor.fetchall()]
        except (duckdb.Error, RuntimeError, UnicodeError) as error:
            why = str(error).strip().split("\n", 1)[0]
            raise InputError(
                f"the query failed ({why}); it must be one SELECT, and its table is results, with "
                f"the columns {', '.join(self.columns)}"
            ) from error

    def parquet(self, path: str | Path) -> None:
        """Write every row and column as a Parquet file, whole or not at all."""
        with TemporaryDirectory() as folder:
            made = Path(folder) / "results.parquet"
            order = ", ".join(_ORDER)
            self._base.execute(f"COPY (FROM results ORDER BY {order}) TO '{made}' (FORMAT parquet)")
            write_atomically(path, made.read_bytes())

    def has_values(self, name: str) -> bool:
        """Whether some row has a value in a column."""
        return self._kinds.get(name) is not None

    def column(self, name: str) -> str:
        """The column that a user means by a name; an unknown one is an `InputError`."""
        plain = name.strip().lower().replace(".", "_")
        for candidate in (plain, f"param_{plain}"):
            if candidate in self._kinds:
                return candidate
        raise unknown_name("column", name, self.columns)

    def _lock(self) -> None:
        """From here on no statement reaches a file, the network or a variable of this process."""
        if self._open:
            for setting in ("enable_external_access", "python_enable_replacements"):
                self._base.execute(f"SET {setting} = false")
            self._base.execute("SET lock_configuration = true")
            self._open = False

    def _condition(self, text: str) -> tuple[str, list[Value]]:
        """The SQL of a filter, and the values in it."""
        match = _FILTER.fullmatch(text)
        if match is None:
            raise InputError(
                f"--filter takes a column, one of = != < <= > >= and a value, for example "
                f"--filter 'a_f>=80', not {text!r}"
            )
        name, sign, wanted = self.column(match[1]), match[2].replace("==", "="), match[3]
        if wanted == "":
            if sign not in ("=", "!="):
                raise InputError(f"--filter {text!r} has no value; write one after the {sign}")
            return f'"{name}" IS {"" if sign == "=" else "NOT "}NULL', []
        kind = self._kinds[name]
        if kind is None:
            return str(sign == "!="), []
        if kind is str:
            return _text_condition(name, sign, wanted)
        value = _literal(name, kind, wanted)
        if math.isnan(value):  # equal to nothing, above and under nothing
            return str(sign == "!="), []
        return f'"{name}" {"IS DISTINCT FROM" if sign == "!=" else sign} ?', [value]


def _text_condition(name: str, sign: str, wanted: str) -> tuple[str, list[Value]]:
    if sign not in ("=", "!="):
        raise InputError(
            f"column {name} holds text, which {sign} cannot compare; use {name}={wanted} or "
            f"{name}!={wanted}, where * stands for anything"
        )
    plain = wanted[1:-1] if len(wanted) > 1 and wanted[0] == wanted[-1] == "'" else wanted
    same = f'coalesce("{name}" = ? OR "{name}" GLOB ?, false)'
    return same if sign == "=" else f"NOT {same}", [plain, plain]


def _literal(name: str, kind: type, text: str) -> float | bool:
    try:
        return _WORDS[text.lower()] if kind is bool else float(text)
    except (KeyError, ValueError):
        holds = "true or false" if kind is bool else "numbers"
        raise InputError(f"column {name} holds {holds}, and {text!r} is none of them") from None


def _array(name: str, values: list[Value]) -> tuple[type, Any]:
    """The values of a column and their kind: as they are, or a mixture of kinds all as text."""
    kinds = {type(value) for value in values if value is not None}
    fits = all(-_LARGEST <= value < _LARGEST for value in values if type(value) is int)
    if not fits or not (len(kinds) < 2 or kinds == {int, float}):
        values = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
        kinds = {str}
    empty = str if name in _TEXT or name.startswith("version_") else float
    kind = (kinds - {int} or kinds or {bool if name in _FLAGS else empty}).pop()
    if kind is str:
        return kind, np.array(values, dtype=object)
    absent = [value is None for value in values]
    filled = np.array([kind() if value is None else value for value in values], dtype=kind)
    return kind, np.ma.masked_array(filled, mask=absent)


def _plain(value: Any) -> Value:
    """A value of an answer; what is not a finite number is None, as in the table."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)
