"""Columns of a table file, CSV or Parquet, read a piece at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from undrift.datasets.cells import as_text
from undrift.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]
CELLS = 1_000_000
"""Cells held as Python objects at a time: it bounds memory, whatever the file's size."""

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_DAMAGE = (ValueError, OSError, NotImplementedError)  # all that pyarrow raises is one of these


@dataclass(frozen=True)
class Piece:
    """Some rows of a table; `first` is the number of the first, from 1 below the header."""

    path: Path
    first: int
    columns: Mapping[str, Sequence[Any] | Array]


def column_names(path: str | Path) -> list[str]:
    """The names of a table's columns, in the file's order."""
    path = Path(path)
    names = _parquet(path).schema_arrow.names if _is_parquet(path) else _csv_header(path)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has two columns {twice[0]!r}; give every column its own name")
    return list(names)


def read_pieces(path: str | Path, names: Sequence[str]) -> Iterator[Piece]:
    """These columns of a `.csv`, `.tsv` or `.parquet` file, in pieces of bounded size.

    CSV cells are text, as the file has them; Parquet columns of numbers are arrays, all others
    Python values. Cost: that of Python's csv module, and memory for `CELLS` cells.
    """
    path = Path(path)
    yield from (_parquet_pieces if _is_parquet(path) else _csv_pieces)(path, names)


# cells -----------------------------------------------------------------------------------


def values(piece: Piece, name: str) -> list[Any]:
    """A column as Python values."""
    column = piece.columns[name]
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def texts(piece: Piece, name: str) -> list[str]:
    """A column as text without blanks around it; a missing value is the empty text."""
    return [as_text(value) for value in values(piece, name)]


def floats(piece: Piece, name: str) -> Array:
    """A column of finite numbers as float32; a list in each row makes a matrix `[rows, width]`."""
    column = piece.columns[name]
    try:
        if not isinstance(column, np.ndarray):
            column = np.fromiter(map(float, column), np.float64, len(column))
        with np.errstate(over="ignore"):  # too large for float32: reported as not finite
            array: Array = column.astype(np.float32)
    except (TypeError, ValueError):
        raise _not_numbers(piece, name) from None
    if not np.isfinite(array).all():
        raise _not_numbers(piece, name)
    return array


def _not_numbers(piece: Piece, name: str) -> InputError:
    """The error for the first cell of a column that is not a finite number."""
    cells = values(piece, name)
    width = len(cells[0]) if isinstance(cells[0], list) else None
    for row, value in enumerate(cells, start=piece.first):
        parts = value if isinstance(value, list) else [value]
        if not all(map(_is_finite, parts)) or (width is not None and len(parts) != width):
            return InputError(
                f"column {name!r} of {piece.path} must hold numbers, but row {row} has "
                f"{_show(value)}; correct the cell, or leave the column out of the features"
            )
    raise AssertionError("a column was refused, but every cell of it is a number")


def _is_finite(value: Any) -> bool:
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.float32(float(value))))
    except (TypeError, ValueError):
        return False


def _show(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = as_text(value)
    return repr(text[:40]) if text else "nothing"


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


def _parquet(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path")
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(
            f"reading {path} needs pyarrow; install it with: pip install 'undrift[tables]'"
        ) from error
    try:
        return parquet.ParquetFile(path)
    except _DAMAGE as error:
        raise InputError(
            f"{path} is damaged, empty or not a Parquet file; write it again"
        ) from error


def _parquet_pieces(path: Path, names: Sequence[str]) -> Iterator[Piece]:
    file, first = _parquet(path), 1
    # a cell may be a list: fewer rows than of CSV
    rows = max(1, min(CELLS // len(names), 65_536))
    try:
        for batch in file.iter_batches(batch_size=rows, columns=list(names)):
            columns = {name: _parquet_values(batch.column(name)) for name in names}
            yield Piece(path, first, columns)
            first += batch.num_rows
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged (after row {first - 1}); write it again") from error


def _parquet_values(column: Any) -> list[Any] | Array:
    arrow = import_module("pyarrow")
    types, kind = arrow.types, column.type
    if types.is_floating(kind) or (types.is_integer(kind) and not column.null_count):
        array: Array = column.to_numpy(zero_copy_only=False)
        return array
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        width, rest = divmod(len(column.flatten()), len(column))
        same = not rest and all(n == width for n in column.value_lengths().to_pylist())
        inner = kind.value_type
        if same and width and (types.is_floating(inner) or types.is_integer(inner)):
            flat: Array = column.flatten().to_numpy(zero_copy_only=False)
            return flat.reshape(len(column), width)
    if types.is_timestamp(kind):  # Python's datetime knows no nanoseconds
        column = column.cast(arrow.timestamp("us", tz=kind.tz), safe=False)
    return list(column.to_pylist())
