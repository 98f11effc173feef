"""Lines of a CSV file, written the same on every machine and read with their place known."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ValidationError

from undrift.checks import validation_message
from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Graded, Metrics
from undrift.experiments.spec import RunSpec
from undrift.storage.files import write_atomically
from undrift.streams.arrival import BY_CLASS

__all__ = ["LATER", "CsvLine", "grades", "lines_of", "number", "packed", "write_lines"]

LATER = {"imbalance", "arrive", "returning", "series", "open_world"}.union(
    prefix + key for prefix in ("", "node_", "val_", "val_node_") for key in METRICS
)
"""Columns that a table which was written before they were recorded has not."""


def number(value: float, decimals: int) -> float:
    """A number with so many decimals; a zero has no sign.

    >>> number(2 / 3, 3), number(-1e-9, 6)
    (0.667, 0.0)
    """
    return round(float(value), decimals) + 0.0


def packed(value: Any) -> str:
    """JSON without spaces, in the order given: the order of a grid's settings is their meaning.

    >>> packed({"alpha": 4, "hidden": (8, 8)})
    '{"alpha":4,"hidden":[8,8]}'
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def grades(prefix: str, graded: Graded[Metrics] | None, decimals: int) -> dict[str, float]:
    """The metrics as cells: `<prefix>a_avg`, ..., `<prefix>node_a_avg`, ...; none where None."""
    if graded is None:
        return {}
    found = {f"{prefix}{name}": value for name, value in graded.by_class}
    found |= {f"{prefix}node_{name}": value for name, value in graded.by_node}
    return {name: number(value, decimals) for name, value in found.items()}


def write_lines(path: Path, columns: Sequence[str], lines: Iterable[Mapping[str, object]]) -> None:
    """Write these columns of the lines under a header, whole or not at all.

    None is an empty cell, a boolean is `true` or `false`, a line break in a text is a space.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for line in lines:
        writer.writerow([_cell(line.get(name)) for name in columns])
    write_atomically(path, text.getvalue().encode())


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(number(value, 6))
    return " ".join(str(value).splitlines())


def lines_of(path: Path, columns: Sequence[str]) -> Iterator[CsvLine]:
    """Every line after the header, which must be these columns.

    Only what was recorded later (`LATER`, a new metric) may be absent.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(f"cannot read {path} ({why}); restore it from the repository") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if header != [name for name in columns if name in header or name not in LATER]:
            odd = sorted(set(header) ^ set(columns)) or ["their order"]
            raise InputError(
                f"{path}, line 1: these are not the columns of this version (differ: "
                f"{', '.join(odd)}); make the file again"
            )
        for cells in reader:
            yield CsvLine(path, reader.line_num, header, cells)
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: {error}; restore the file from the repository"
        ) from error


class CsvLine:
    """One line by the names of its columns. As a context, it names itself in every error.

    >>> with CsvLine(Path("runs.csv"), 7, ["seed"], ["x"]) as line:
    ...     line.whole("seed")
    Traceback (most recent call last):
    undrift.errors.InputError: runs.csv, line 7: seed is 'x', not a whole number; restore the ...
    """

    def __init__(
        self, path: Path, place: int, columns: Sequence[str], cells: Sequence[str]
    ) -> None:
        self.path, self.place = path, place
        self._count, self._expected = len(cells), len(columns)
        self._cells = dict(zip(columns, cells, strict=False))

    def __enter__(self) -> CsvLine:
        if self._count != self._expected:
            error = f"it has {self._count} cells, not {self._expected}"
            raise self._wrong(error)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, ValidationError):
            raise self._wrong(validation_message(error)) from error
        if isinstance(error, InputError):
            raise self._wrong(str(error)) from error

    def __getitem__(self, column: str) -> str:
        return self._cells.get(column, "") if column in LATER else self._cells[column]

    def whole(self, column: str) -> int:
        """The whole number of a column."""
        try:
            return int(self[column])
        except ValueError:
            raise InputError(f"{column} is {self[column]!r}, not a whole number") from None

    def real(self, column: str) -> float:
        """The number of a column."""
        try:
            return float(self[column])
        except ValueError:
            raise InputError(f"{column} is {self[column]!r}, not a number") from None

    def flag(self, column: str) -> bool:
        """The `true` or `false` of a column."""
        if self[column] not in ("true", "false"):
            raise InputError(f"{column} is {self[column]!r}, not true or false")
        return self[column] == "true"

    def json(self, column: str) -> Any:
        """The JSON of a column."""
        try:
            return json.loads(self[column])
        except (ValueError, RecursionError):
            raise InputError(f"{column} is not JSON") from None

    def graded(self, prefix: str) -> Graded[Metrics] | None:
        """What `grades` wrote; None where the cells are empty."""
        if not self[f"{prefix}a_avg"]:
            return None
        return Graded[Metrics](
            by_class=self._metrics(prefix), by_node=self._metrics(f"{prefix}node_")
        )

    def spec(self, params: str) -> RunSpec:
        """The run that the line describes; `params` names the column of its hyperparameters."""
        return RunSpec(
            stream=self["stream"],
            method=self["method"],
            seed=self.whole("seed"),
            protocol=self["protocol"],
            params=self.json(params),
            device=self["device"],
            stream_sha256=self["stream_sha256"] or None,
            arrive=self["arrive"] or BY_CLASS,
            open_world=self["open_world"] == "true",
        )

    def _metrics(self, prefix: str) -> Metrics:
        there = {key: prefix + key for key in METRICS if self[prefix + key]}
        return Metrics.model_validate({key: self.real(column) for key, column in there.items()})

    def _wrong(self, why: str) -> InputError:
        return InputError(
            f"{self.path}, line {self.place}: {why}; restore the file from the repository or make "
            "it again"
        )
