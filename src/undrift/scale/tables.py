"""Tables of any size, as DuckDB reads them: files, columns, and ids that mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from undrift.checks import check_exists
from undrift.datasets.columns import column_names
from undrift.errors import InputError

_KINDS = (".parquet", ".pq", ".csv", ".tsv")
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace())  # what `str.strip` takes off


class TableError(InputError):
    """What is in a table cannot be read: the same tables will not do the next time either."""


@dataclass(frozen=True)
class TableFiles:
    """A `.parquet`, `.csv` or `.tsv` file, or a folder of files of one of these kinds."""

    path: Path
    files: tuple[Path, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, path: str | Path) -> TableFiles:
        """The table at a path; its columns are those of its first file."""
        path = Path(path)
        files: tuple[Path, ...] = (path,)
        if path.is_dir():
            files = tuple(f for f in sorted(path.iterdir()) if f.suffix.lower() in _KINDS)
            if not files:
                raise InputError(f"{path} has no file that ends in {', '.join(_KINDS)}")
        else:
            check_exists(path)
        if files[0].suffix.lower() not in _KINDS:
            raise InputError(f"{path} is no table to import; give a .parquet, .csv or .tsv file")
        if len({f.suffix.lower() for f in files}) > 1:
            raise InputError(f"{path} has files of several kinds; keep one kind in it")
        table = cls(path, files, tuple(column_names(files[0])))
        for file in files[1:]:
            table._check_same(file)
        return table

    def _check_same(self, file: Path) -> None:
        """Refuse a file with other columns than the first; in CSV their order counts, too."""
        theirs = tuple(column_names(file))
        if theirs == self.columns or (not self._is_text and set(theirs) == set(self.columns)):
            return
        pairs = enumerate(zip_longest(theirs, self.columns), start=1)
        place, pair = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        other, first = ("nothing" if name is None else repr(name) for name in pair)
        problem = f"column {place} of {file} is {other} and of {self.files[0]} {first}"
        raise InputError(f"{problem}; give all files the same columns in the same order")

    @property
    def _is_text(self) -> bool:
        return self.files[0].suffix.lower() in (".csv", ".tsv")

    @property
    def sql(self) -> str:
        """What stands behind FROM."""
        names = ", ".join(literal(str(f)) for f in self.files)
        if not self._is_text:
            return f"read_parquet([{names}])"
        delimiter = "\\t" if self.files[0].suffix.lower() == ".tsv" else ","
        # by their places: names may be empty, or differ in capitals alone
        named = ", ".join(f"c{i}: 'VARCHAR'" for i, _ in enumerate(self.columns))
        how = f"header = true, delim = E'{delimiter}', quote = '\"', escape = '\"'"
        return f"read_csv([{names}], {how}, auto_detect = false, columns = {{{named}}})"

    def cell(self, name: str) -> str:
        """A column in SQL."""
        return f"c{self.columns.index(name)}" if self._is_text else quoted(name)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """The type of every column."""
        if self._is_text:
            return dict.fromkeys(self.columns, "VARCHAR")
        with database() as connection:
            rows = connection.execute(f"DESCRIBE SELECT * FROM {self.sql}").fetchall()
        return {name: str(kind) for name, kind, *_ in rows}

    def fingerprint(self) -> list[Any]:
        """What tells that the files are those of an earlier call."""
        facts = [(str(f.resolve()), f.stat()) for f in self.files]
        return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in facts]

    def text(self, name: str) -> str:
        """A column as `undrift.cells.as_text` has each cell; what is empty is NULL."""
        cell, kind = self.cell(name), self._kinds[name]
        if re.search(r"\]$|^(STRUCT|MAP|UNION|BLOB)", kind):
            problem = (
                f"must hold texts or numbers, but its type is {kind[:40]}; name another column"
            )
            raise TableError(f"column {name!r} of {self.path} {problem}")
        if kind == "BOOLEAN":
            return f"CASE WHEN {cell} THEN 'True' WHEN NOT {cell} THEN 'False' END"
        if kind in ("DOUBLE", "FLOAT"):
            whole = f"CAST(TRY_CAST({cell} AS HUGEINT) AS VARCHAR)"
            fits = f"{cell} = floor({cell}) AND abs({cell}) < 1e38"
            other = f"CAST(CAST({cell} AS DOUBLE) AS VARCHAR)"
            return f"CASE WHEN isnan({cell}) THEN NULL WHEN {fits} THEN {whole} ELSE {other} END"
        cell = f"CAST({cell} AS VARCHAR)"
        bare = f"regexp_full_match({cell}, '[!-~]+')"  # most cells: to look for blanks is slow
        trimmed = f"nullif(trim({cell}, {literal(_BLANKS)}), '')"
        return f"CASE WHEN {bare} THEN {cell} ELSE {trimmed} END"

    def whole(self, name: str) -> str:
        """A column as whole numbers (`whole`)."""
        if self._kinds[name] in _WHOLE:
            return f"CAST({self.cell(name)} AS BIGINT)"
        return whole(self.text(name))

    def numbers(self, connection: Any, names: Sequence[str]) -> list[tuple[str, str]]:
        """Columns of features as numbers in SQL, with their names; of lists one for each place."""
        found = []
        for name in names:
            cell, kind = self.cell(name), self._kinds[name]
            cells = [cell]
            if kind.endswith("]"):
                query = f"SELECT min(len({cell})), max(len({cell})) FROM {self.sql}"
                least, most = connection.execute(query).fetchone()
                if least != most or not most:
                    problem = (
                        f"{least} to {most} numbers; give every node a list of the same length"
                    )
                    raise TableError(f"the lists in column {name!r} of {self.path} have {problem}")
                cells = [f"{cell}[{i + 1}]" for i in range(most)]
            cast = "{}" if kind.startswith("FLOAT") else "TRY_CAST({} AS DOUBLE)"
            found += [(name, cast.format(each)) for each in cells]
        return found


@contextmanager
def database(path: Path | None = None, **settings: Any) -> Iterator[Any]:
    """A connection to DuckDB, to a file or to nothing but memory."""
    import duckdb

    with duckdb.connect(path or ":memory:", config=settings) as connection:
        connection.execute("SET enable_progress_bar = false")
        yield connection


def sentence(error: Exception) -> str:
    """What DuckDB says of an error, without its advice."""
    first = re.split(r"\n\n|Possible (?:fixes|solutions)", str(error), maxsplit=1)[0]
    return " ".join(first.split())[:300]


def whole(text: str) -> str:
    """A text in SQL as a whole number; NULL where it is not how that number is written."""
    number = f"TRY_CAST({text} AS BIGINT)"
    return f"CASE WHEN CAST({number} AS VARCHAR) = {text} THEN {number} END"


def copied(query: str, path: str, kind: str = "parquet") -> str:
    """SQL that writes rows to a file that is there (`whole_file`)."""
    return f"COPY ({query}) TO {literal(path)} (FORMAT {kind}, USE_TMP_FILE false)"


def quoted(name: str) -> str:
    """A name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"
