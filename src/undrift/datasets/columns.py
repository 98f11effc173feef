"""Columns of a table file, CSV or Parquet, read a piece at a time."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from undrift.datasets.cells import Trouble, as_text
from undrift.errors import InputError
from undrift.memory import need

Array = np.ndarray[Any, np.dtype[Any]]
CELLS = 1_000_000
"""Cells held as Python objects at a time: it bounds memory, whatever the file's size."""

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Piece:
    """Some rows of a table; `first` is the number of the first, from 1 below the header."""

    path: Path
    first: int
    columns: Mapping[str, Sequence[Any]]


def column_names(path: str | Path) -> list[str]:
    """The names of a table's columns, in the file's order."""
    path = Path(path)
    if _is_parquet(path):
        names = [column[0] for column in _parquet(path).description]
        told = _parquet(path, "name", "parquet_schema").fetchall()
        # DuckDB calls the second of two equal names NAME_1
        twice = [name.rpartition("_")[0] for name in names if (name,) not in told]
    else:
        names = _csv_header(path)
        twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has two columns {twice[0]!r}; give every column its own name")
    return names


def read_pieces(path: str | Path, names: Sequence[str]) -> Iterator[Piece]:
    """These columns of a `.csv`, `.tsv` or `.parquet` file, in pieces of bounded size.

    CSV cells are text, as the file has them, those of Parquet Python values. Cost: that of
    Python's csv module, or a Python object per number, and memory for `CELLS` cells.
    """
    path = Path(path)
    yield from (_parquet_pieces if _is_parquet(path) else _csv_pieces)(path, names)


# cells -----------------------------------------------------------------------------------


def texts(piece: Piece, name: str) -> list[str]:
    """A column as text without blanks around it; a missing value is the empty text."""
    cells = piece.columns[name]
    for row, value in enumerate(cells, start=piece.first):
        if isinstance(value, list | dict | bytes):
            raise InputError(
                f"column {name!r} of {piece.path} must hold texts or numbers, but row {row} has a "
                f"{type(value).__name__}; name another column"
            )
    return [as_text(value) for value in cells]


def floats(piece: Piece, name: str) -> Array | Trouble:
    """A column of finite numbers as float32; a list in each row makes a matrix `[rows, width]`.

    A column that is none is told by its first such cell.
    """
    try:
        with np.errstate(over="ignore"):  # too large for float32: reported as not finite
            array: Array = np.array(piece.columns[name], np.float64).astype(np.float32)
    except (TypeError, ValueError):
        return _not_numbers(piece, name)
    if array.ndim > 2 or not np.isfinite(array).all():
        return _not_numbers(piece, name)
    return array


def _not_numbers(piece: Piece, name: str) -> Trouble:
    """The first cell of a column that is not a finite number."""
    cells = piece.columns[name]
    width = len(cells[0]) if isinstance(cells[0], list) else None
    for row, value in enumerate(cells, start=piece.first):
        parts = value if isinstance(value, list) else [value]
        if not all(map(_is_finite, parts)) or (width is not None and len(parts) != width):
            return Trouble(name, row, value)
    raise AssertionError("a column was refused, but every cell of it is a number")


def _is_finite(value: Any) -> bool:
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.float32(float(value))))
    except (TypeError, ValueError):
        return False


# CSV -------------------------------------------------------------------------------------


def _csv_rows(path: Path) -> Iterator[list[str]]:
    """The rows of a CSV file with the header first; blank lines are left out."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path")
    row = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for cells in csv.reader(file, delimiter=_DELIMITERS[path.suffix.lower()]):
                if cells:
                    yield cells
                    row += 1
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (soon after row {row}); save it as UTF-8 and try again"
        ) from error
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file ({error}, after row {row})") from error


def _csv_header(path: Path) -> list[str]:
    for header in _csv_rows(path):
        delimiter = _DELIMITERS[path.suffix.lower()]
        others = [sign for sign in (";", "\t", "|", ",") if sign in header[0] and sign != delimiter]
        if len(header) == 1 and others:
            raise InputError(
                f"the columns of {path} are separated by {others[0]!r}, not by {delimiter!r} as "
                f"its name says; write it with {delimiter!r}, and numbers with a point"
            )
        return [name.strip() for name in header]
    raise InputError(f"{path} is empty; its first line must name the columns")


def _csv_pieces(path: Path, names: Sequence[str]) -> Iterator[Piece]:
    header = _csv_header(path)
    places, width = {name: header.index(name) for name in names}, len(header)
    # one flat list of text: a list per row would double the time, for the garbage collector
    flat: list[str] = []
    first = 1
    for row, cells in enumerate(_csv_rows(path)):
        if len(cells) != width:
            raise InputError(
                f"row {row} of {path} has {len(cells)} cells, but the header names {width} "
                "columns; correct the row"
            )
        flat += cells
        if row == 0:
            flat.clear()  # the header
        elif len(flat) >= CELLS:
            yield Piece(path, first, {name: flat[i::width] for name, i in places.items()})
            flat, first = [], row + 1
    if flat:
        yield Piece(path, first, {name: flat[i::width] for name, i in places.items()})


# Parquet ---------------------------------------------------------------------------------


def _is_parquet(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in _DELIMITERS and suffix not in _PARQUET:
        raise InputError(
            f"{path} is not a table that can be read; give a .csv, .tsv or .parquet file"
        )
    return suffix in _PARQUET


@lru_cache(maxsize=1)
def _database(process: int) -> Any:
    """A database in memory: making one costs 30 ms, more than most queries.

    A forked process must not use that of its parent, whose threads it does not have.
    """
    import duckdb

    return duckdb.connect()


def _parquet(path: Path, columns: str = "*", read: str = "read_parquet", rest: str = "") -> Any:
    """A DuckDB cursor that has run a query for these columns of a file."""
    import duckdb

    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path")
    try:
        query = f"SELECT {columns} FROM {read}(?){rest}"  # noqa: S608
        return _database(os.getpid()).cursor().execute(query, [str(path)])
    except duckdb.Error as error:
        _database.cache_clear()  # an error may have closed it
        raise InputError(
            f"{path} is damaged, empty or not a Parquet file; write it again"
        ) from error


def _check_counts(path: Path, rows: int) -> None:
    """Every plain column must say that it has a value per row: DuckDB does not compare them."""
    asked = "path_in_schema, sum(num_values) AS found"
    counts = _parquet(path, asked, "parquet_metadata", " GROUP BY path_in_schema").fetchall()
    if any(found != rows for name, found in counts if ", " not in name):
        raise InputError(f"{path} is damaged (a column has no value per row); write it again")


def _parquet_pieces(path: Path, names: Sequence[str]) -> Iterator[Piece]:
    import duckdb

    kinds = {name: str(kind) for name, kind, *_ in _parquet(path).description}
    asked = []
    for name in names:
        quoted = '"' + name.replace('"', '""') + '"'
        zoned = (
            kinds[name] == "TIMESTAMP WITH TIME ZONE"
        )  # which Python could not have without pytz
        asked.append(f"make_timestamp(epoch_us({quoted}))" if zoned else quoted)
    rows = _parquet(path, "sum(num_rows)", "parquet_file_metadata").fetchone()[0] or 0
    _check_counts(path, int(rows))
    way = "check where the file is from, or use a machine with more"
    need(4 * int(rows) * len(names), f"{path}, of {int(rows):,} rows,", way)
    found, first = _parquet(path, ", ".join(asked)), 1
    # a cell may be a list: fewer rows than of CSV
    size = max(1, min(CELLS // len(names), 16_384))
    try:
        while rows := found.fetchmany(size):
            yield Piece(path, first, dict(zip(names, zip(*rows, strict=True), strict=True)))
            first += len(rows)
    except duckdb.Error as error:
        raise InputError(f"{path} is damaged (after row {first - 1}); write it again") from error
