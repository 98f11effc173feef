"""Columns of a table, in memory or a file read in pieces, and what their cells mean."""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from undrift.cells import Table, as_text, as_texts, days, fits
from undrift.checks import check_exists
from undrift.datasets.archives import MORE_MEMORY, Array
from undrift.errors import InputError
from undrift.formatting import some_of
from undrift.machine import need

CELLS = 1_000_000  # held as Python objects at a time: it bounds memory
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".arff": ",", ".data": ","}
_PARQUET = (".parquet", ".pq")
_SHOWN, _TYPED = 6, 40  # columns that an error names, and that it has to be typed
Where = Path | Table


def as_table(x: Any, name: str) -> Where:
    """The file at a path, or a table in memory by this name."""
    if isinstance(x, str | Where):
        return x if isinstance(x, Table) else Path(x)
    return Table(x, name)


@dataclass(frozen=True)
class Piece:
    """Some rows of a table; `first` is the number of the first, from 1 below the header."""

    path: Where
    first: int
    columns: Mapping[str, Sequence[Any]]


def column_names(path: str | Where) -> list[str]:
    """The names of a table's columns, in its own order."""
    if isinstance(path, Table):
        return list(path)
    path = Path(path)
    if _is_parquet(path):
        names = [column[0] for column in _parquet(path).description]
        schema = _parquet(path, "name", "parquet_schema").fetchall()
        # DuckDB calls the second of two equal names NAME_1
        twice = [name.rpartition("_")[0] for name in names if (name,) not in schema]
    else:
        names, _ = _csv_table(path)
        twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has two columns {twice[0]!r}; give every column its own name")
    return names


def read_pieces(path: str | Path | Table, names: Sequence[str]) -> Iterator[Piece]:
    """These columns of a file, in pieces of bounded size: of CSV as text, of Parquet as values."""
    if isinstance(path, Table):
        yield Piece(path, 1, {name: path[name] for name in names})
        return
    path = Path(path)
    yield from (_parquet_pieces if _is_parquet(path) else _csv_pieces)(path, names)


def _is_parquet(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in _DELIMITERS and suffix not in _PARQUET:
        raise InputError(f"{path} is no table; give a .csv, .tsv, .arff, .data or .parquet file")
    return suffix in _PARQUET


def _csv_rows(path: Path) -> Iterator[list[str]]:
    """The rows, the header first; a `.data` file may have none: its columns are f1, f2, ..."""
    check_exists(path)
    kind, row = path.suffix.lower(), 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if kind == ".arff":
                yield _attributes(file)
            weka: Any = {"quotechar": "'", "skipinitialspace": True} if kind == ".arff" else {}
            for cells in csv.reader(file, delimiter=_DELIMITERS[kind], **weka):
                if not cells or (kind == ".arff" and cells[0].startswith("%")):
                    continue
                if row == 0 and kind == ".data" and all(fits(float, x) or x == "?" for x in cells):
                    yield [f"f{j}" for j in range(1, len(cells) + 1)]
                yield cells
                row += 1
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text, after row {row}; save it as UTF-8") from error
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file ({error}, after row {row})") from error


def _attributes(lines: Iterable[str]) -> list[str]:
    """The names of an ARFF file's columns, up to its line `@data`."""
    names = []
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if word.lower() == "@data":
            break
        if word.lower() == "@attribute":
            quote = rest.strip()[:1]
            names.append(rest.split(quote)[1] if quote in ("'", '"') else rest.split()[0])
    return names


def _csv_table(path: Path) -> tuple[list[str], Iterator[list[str]]]:
    """The names of the columns, and the rows below them."""
    rows = _csv_rows(path)
    header = next(rows, None)
    if header is None:
        raise InputError(f"{path} is empty; its first line must name the columns")
    delimiter = _DELIMITERS[path.suffix.lower()]
    other = next((sign for sign in ";\t|," if sign in header[0] and sign != delimiter), None)
    if len(header) == 1 and other:
        problem = f"separated by {other!r}, not by {delimiter!r} as its name says"
        raise InputError(
            f"the columns of {path} are {problem}; write it so, and numbers with a point"
        )
    return [name.strip() for name in header], rows


def _csv_pieces(path: Path, names: Sequence[str]) -> Iterator[Piece]:
    header, rows = _csv_table(path)
    places, width = {name: header.index(name) for name in names}, len(header)
    # one flat list of text: a list per row would double the time, for the garbage collector
    flat: list[str] = []
    first = 1
    for row, cells in enumerate(rows, start=1):
        if len(cells) != width:
            problem = f"{len(cells)} cells, but the header names {width} columns"
            raise InputError(f"row {row} of {path} has {problem}; correct the row")
        flat += cells
        if len(flat) >= CELLS:
            yield Piece(path, first, {name: flat[i::width] for name, i in places.items()})
            flat, first = [], row + 1
    if flat:
        yield Piece(path, first, {name: flat[i::width] for name, i in places.items()})


@lru_cache(maxsize=1)
def _database(process: int) -> Any:
    """A database in memory, one per process: a fork does not have its parent's threads."""
    import duckdb

    return duckdb.connect()


def _parquet(path: Path, columns: str = "*", read: str = "read_parquet", rest: str = "") -> Any:
    """A DuckDB cursor that has run a query for these columns of a file."""
    import duckdb

    check_exists(path)
    try:
        query = f"SELECT {columns} FROM {read}(?){rest}"  # noqa: S608
        return _database(os.getpid()).cursor().execute(query, [str(path)])
    except duckdb.Error as error:
        _database.cache_clear()  # an error may have closed it
        problem = "damaged, empty or not a Parquet file"
        raise InputError(f"{path} is {problem}; write it again") from error


def _parquet_pieces(path: Path, names: Sequence[str]) -> Iterator[Piece]:
    import duckdb

    rows = int(_parquet(path, "sum(num_rows)", "parquet_file_metadata").fetchone()[0] or 0)
    asked = "path_in_schema, sum(num_values) AS found"
    counts = _parquet(path, asked, "parquet_metadata", " GROUP BY path_in_schema").fetchall()
    # every plain column must have a value per row, which DuckDB does not compare
    if any(found != rows for name, found in counts if ", " not in name):
        raise InputError(f"{path} is damaged (a column has no value per row); write it again")
    need(4 * rows * len(names), f"{path}, of {rows:,} rows,", MORE_MEMORY)
    kinds = {name: str(kind) for name, kind, *_ in _parquet(path).description}
    queries = ['"' + name.replace('"', '""') + '"' for name in names]
    for place, name in enumerate(names):
        if kinds[name] == "TIMESTAMP WITH TIME ZONE":  # for which Python would need pytz
            queries[place] = f"make_timestamp(epoch_us({queries[place]}))"
    found, first = _parquet(path, ", ".join(queries)), 1
    size = max(1, min(CELLS // len(names), 16_384))  # a cell may be a list: fewer rows than of CSV
    try:
        while piece := found.fetchmany(size):
            yield Piece(path, first, dict(zip(names, zip(*piece, strict=True), strict=True)))
            first += len(piece)
    except duckdb.Error as error:
        raise InputError(f"{path} is damaged (after row {first - 1}); write it again") from error


def texts(piece: Piece, name: str) -> list[str]:
    """A column as text without blanks around it; a missing value is the empty text."""
    cells = piece.columns[name]
    odd = next((value for value in cells if isinstance(value, list | dict | bytes)), None)
    if odd is not None:
        found = f"row {piece.first + cells.index(odd)} has a {type(odd).__name__}"
        what = f"column {name!r} of {piece.path} must hold texts or numbers, but {found}"
        raise InputError(f"{what}; name another column")
    return as_texts(cells, f"column {name!r} of {piece.path}")


class Trouble(NamedTuple):
    """A cell that cannot be a feature: its column, its row from 1, and what it holds."""

    column: str
    row: int
    value: Any

    def __str__(self) -> str:
        if isinstance(self.value, list):
            return f"row {self.row} has a list of {len(self.value)}"
        text, kind = as_text(self.value), "the date " if fits(days, self.value) else ""
        return f"row {self.row} has {f'{kind}{text[:40]!r}' if text else 'nothing'}"


def floats(piece: Piece, name: str) -> Array | Trouble:
    """A column of numbers, or of lists, as float32; else its first cell that is no such thing."""
    cells = piece.columns[name]
    try:
        with np.errstate(over="ignore"):  # too large for float32: not finite
            array: Array = np.array(cells, np.float64).astype(np.float32)
        if array.ndim <= 2 and np.isfinite(array).all():
            return array
    except (TypeError, ValueError):
        pass
    width = len(cells[0]) if isinstance(cells[0], list) else 1
    for row, value in enumerate(cells, start=piece.first):
        parts = value if isinstance(value, list) else [value]
        if not all(map(_is_finite, parts)) or len(parts) != width:
            return Trouble(name, row, value)
    raise AssertionError("a column was refused, but every cell of it is a number")


def unusable(path: object, troubles: Sequence[Trouble]) -> str:
    """One sentence about all columns that cannot be features, with what to type."""
    first, *more = troubles
    others = [f"column {each.column!r}: {each}" for each in more]
    also = f" (also {some_of(others, _SHOWN, 'more columns')})" if more else ""
    left_out = ignoring([each.column for each in troubles])
    way = f"correct the cells, or leave columns out with ignore ({left_out}; in read_tables and in "
    way += "a stream.toml, name the others as features)"
    if isinstance(path, Table):
        way = "fill the gaps, turn words into numbers, or leave the column out"
    return f"column {first.column!r} of {path} must hold numbers, but {first}{also}; {way}"


def ignoring(columns: Sequence[str]) -> str:
    """What to type to go on without these columns."""
    return some_of([f"--ignore {quote(name)}" for name in columns], _TYPED, between=" ")


def as_times(values: Sequence[Any], what: str) -> Array:
    """Numbers as they are, or ISO dates as days since 1970-01-01: all of one kind, none missing."""
    read = days if are_dates(values) else float
    times = np.array([read(value) if fits(read, value) else np.nan for value in values], float)
    if not np.isfinite(times).all():
        row = int(np.isfinite(times).argmin())
        shown = "nothing" if values[row] in (None, "", b"") else repr(values[row])
        kind = "number" if read is float else "date like 2021-03-31"
        problem = f"in every row, as in the first, but row {row + 1} has {shown}"
        raise InputError(f"{what} must hold a {kind} {problem}; correct it, or leave the row out")
    return times


def are_dates(values: Sequence[Any]) -> bool:
    """Whether `as_times` reads these as dates: the first is no number."""
    return not (values and fits(float, values[0]))


def _is_finite(value: Any) -> bool:
    with np.errstate(over="ignore"):
        return fits(float, value) and bool(np.isfinite(np.float32(float(value))))
