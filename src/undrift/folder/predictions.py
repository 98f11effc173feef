"""Predictions by the user's names, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from torch import Tensor

from undrift.datasets.tables import Repairs
from undrift.errors import InputError
from undrift.storage.files import make_folder, write_atomically

Array = np.ndarray[Any, np.dtype[Any]]
COLUMNS = ("id", "class", "probability", "runner_up")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Per node its id, its class, the probability of that and the next class.

    `probability` is None where the method has none; without a second class `runner_up` is empty.
    """

    ids: Array
    classes: list[str]
    probability: Array | None
    runner_up: list[str]
    repairs: Repairs = field(default_factory=Repairs)  # what was left out of the edges

    @classmethod
    def of(cls, ids: Array, ranking: Tensor, names: list[str], *, probable: bool) -> Predictions:
        """From a number per node and class, larger is likelier."""
        best = ranking.topk(min(2, len(names)), dim=1)
        first = best.indices[:, 0].tolist()
        second = best.indices[:, 1].tolist() if len(names) > 1 else []
        return cls(
            ids,
            [names[i] for i in first],
            best.values[:, 0].numpy() if probable else None,
            [names[i] for i in second] or [""] * len(first),
        )

    def rows(self) -> Iterator[tuple[Any, str, float | None, str]]:
        """A row per node, in the order of the columns of a file."""
        sure = [None] * len(self.classes) if self.probability is None else self.probability.tolist()
        yield from zip(self.ids.tolist(), self.classes, sure, self.runner_up, strict=True)

    def write(self, path: str | Path) -> None:
        """Write a `.csv` or `.parquet` file, whole or not at all."""
        path = Path(path)
        check_out(path)
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, label, sure, second in self.rows():
            writer.writerow([name, label, "" if sure is None else f"{sure:.17g}", second])
        data = text.getvalue().encode()
        if path.suffix.lower() == ".csv":
            write_atomically(path, data)
        else:
            write_atomically(path, _as_parquet(data, numbers=self.ids.dtype.kind in "iu"))


def check_out(path: Path) -> None:
    """Refuse a file that predictions cannot be written to, before time is spent on them."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"predictions are written as .csv or .parquet, not as {path.name!r}")
    make_folder(path.parent)


def _as_parquet(table: bytes, *, numbers: bool) -> bytes:
    import duckdb

    kinds = {"id": "BIGINT" if numbers else "VARCHAR", "class": "VARCHAR"}
    kinds |= {"probability": "DOUBLE", "runner_up": "VARCHAR"}
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        source, target = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        source.write_bytes(table)
        rows = "SELECT * FROM read_csv(?, header = true, columns = ?, quote = '\"', delim = ',')"
        query = f"COPY ({rows}) TO '{target}' (FORMAT parquet)"  # names of our own
        connection.execute(query, [str(source), kinds])
        return target.read_bytes()
