"""Tables of any size, as DuckDB reads them: files, columns, and ids that mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path
from typing import Any

from undrift.datasets.columns import column_names
from undrift.errors import InputError

_KINDS = (".parquet", ".pq", ".csv", ".tsv")
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


class TableError(InputError):
    """What is in a table cannot be read: the same tables will not do the next time either."""


@dataclass(frozen=True)
class Table:
    """A `.parquet`, `.csv` or `.tsv` file, or a folder of files of one of these kinds."""

    path: Path
    files: tuple[Path, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, path: str | Path) -> Table:
        """The table at a path; its columns are those of its first file."""
        path = Path(path)
        files: tuple[Path, ...] = (path,)
        if path.is_dir():
            files = tuple(f for f in sorted(path.iterdir()) if f.suffix.lower() in _KINDS)
            if not files:
                raise InputError(f"{path} has no file that ends in {', '.join(_KINDS)}")
        if len({f.suffix.lower() for f in files}) > 1:
            raise InputError(f"{path} has files of several kinds; keep one kind in it")
        table = cls(path, files, tuple(column_names(files[0])))
        for file in files[1:]:
            table._check_same(file)
        return table

    def _check_same(self, file: Path) -> None:
        """Refuse a file with other columns than the first; in CSV their order counts, too."""
        theirs = tuple(column_names(file))
        if theirs == self.columns or (not self.is_text and set(theirs) == set(self.columns)):
            return
        pairs = enumerate(zip_longest(theirs, self.columns), start=1)
        place, pair = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        other, first = ("nothing" if name is None else repr(name) for name in pair)
        raise InputError(
            f"column {place} of {file} is {other} and of {self.files[0]} {first}; "
            f"give all files in {self.path} the same columns in the same order"
        )

    @property
    def is_text(self) -> bool:
        """Whether cells are text: CSV."""
        return self.files[0].suffix.lower() in (".csv", ".tsv")

    @property
    def sql(self) -> str:
        """What stands behind FROM."""
        names = ", ".join(literal(str(f)) for f in self.files)
        if not self.is_text:
            return f"read_parquet([{names}])"
        delimiter = "\\t" if self.files[0].suffix.lower() == ".tsv" else ","
        named = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.columns)
        how = f"header = true, delim = E'{delimiter}', quote = '\"', escape = '\"'"
        return f"read_csv([{names}], {how}, auto_detect = false, columns = {{{named}}})"

    def need(self, *names: str) -> None:
        """Refuse a table that lacks one of these columns."""
        for name in names:
            if name not in self.columns:
                near = get_close_matches(name, self.columns, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                shown = ", ".join(self.columns[:20]) + " and more" * (len(self.columns) > 20)
                raise InputError(
                    f"{self.path} has no column {name!r}{hint}; name one of its columns: {shown}"
                )

    def fingerprint(self) -> list[Any]:
        """What tells that the files are those of an earlier call."""
        told = [(str(f.resolve()), f.stat()) for f in self.files]
        return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in told]

    def kinds(self, connection: Any) -> dict[str, str]:
        """The type of every column."""
        rows = connection.execute(f"DESCRIBE SELECT * FROM {self.sql}").fetchall()
        return {name: str(kind) for name, kind, *_ in rows}

    def numbers(self, connection: Any, names: Sequence[str]) -> list[tuple[str, str]]:
        """Columns of features as numbers in SQL, with their names.

        A column with a list in each row stands once for each number of the lists.
        """
        kinds = self.kinds(connection)
        found = []
        for name in names:
            cells = [quoted(name)]
            if kinds[name].endswith("]"):
                width = self._list_width(connection, name)
                cells = [f"{quoted(name)}[{i + 1}]" for i in range(width)]
            cast = "{}" if kinds[name].startswith("FLOAT") else "TRY_CAST({} AS DOUBLE)"
            found += [(name, cast.format(cell)) for cell in cells]
        return found

    def _list_width(self, connection: Any, name: str) -> int:
        query = f"SELECT min(len({quoted(name)})), max(len({quoted(name)})) FROM {self.sql}"
        least, most = connection.execute(query).fetchone()
        if least != most or not most:
            raise TableError(
                f"the lists in column {name!r} of {self.path} have {least} to {most} numbers; "
                "give every node a list of the same length"
            )
        return int(most)


def text(name: str, kind: str) -> str:
    """A column as text without blanks around it: whole floats as integers, nothing as NULL."""
    column = quoted(name)
    if kind in ("DOUBLE", "FLOAT"):
        whole = f"CAST(CAST({column} AS BIGINT) AS VARCHAR)"
        fits = f"{column} = floor({column}) AND abs({column}) < 9007199254740992"
        return f"CASE WHEN {fits} THEN {whole} WHEN isnan({column}) THEN NULL ELSE {column} END"
    return f"nullif(trim(CAST({column} AS VARCHAR)), '')"


def whole(name: str, kind: str) -> str:
    """A column as a whole number; NULL where its text is not how that number is written."""
    if kind in _WHOLE:
        return f"CAST({quoted(name)} AS BIGINT)"
    as_text = text(name, kind)
    number = f"TRY_CAST({as_text} AS BIGINT)"
    return f"CASE WHEN CAST({number} AS VARCHAR) = {as_text} THEN {number} END"


def copied(query: str, path: str, kind: str = "parquet") -> str:
    """SQL that writes rows to a file that is there (`whole_file`)."""
    return f"COPY ({query}) TO {literal(path)} (FORMAT {kind}, USE_TMP_FILE false)"


def quoted(name: str) -> str:
    """A name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"
