"""Predictions by the user's names, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from torch import Tensor

from undrift.datasets.tables import Repairs
from undrift.errors import InputError
from undrift.formatting import class_columns
from undrift.scale.learning import no_probabilities
from undrift.storage.files import make_folder, write_atomically

Array = np.ndarray[Any, np.dtype[Any]]
COLUMNS = ("id", "class", "probability", "runner_up")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Per node its id, its class, the probability of that and the next class.

    `probabilities` has a row per node and a column per class of `names`. It and `probability` are
    None where the method has none; without a second class `runner_up` is empty.
    """

    ids: Array
    classes: list[str]
    probability: Array | None
    runner_up: list[str]
    repairs: Repairs = field(default_factory=Repairs)  # what was left out of the edges
    names: list[str] = field(default_factory=list)
    probabilities: Array | None = None

    @classmethod
    def of(cls, ids: Array, ranking: Tensor, names: list[str], *, probable: bool) -> Predictions:
        """From a number per node and class, larger is likelier."""
        best = ranking.topk(min(2, len(names)), dim=1)
        first, *second = best.indices.T.tolist()
        return cls(
            ids,
            [names[i] for i in first],
            best.values[:, 0].numpy() if probable else None,
            [names[i] for i in second[0]] if second else [""] * len(first),
            names=names,
            probabilities=ranking.numpy() if probable else None,
        )

    def rows(self) -> Iterator[tuple[Any, str, float | None, str]]:
        """A row per node, in the order of the columns of a file."""
        sure = [None] * len(self.classes) if self.probability is None else self.probability.tolist()
        yield from zip(self.ids.tolist(), self.classes, sure, self.runner_up, strict=True)

    def to_frame(self, *, probabilities: bool = False) -> dict[str, list[Any]]:
        """Columns by name, as `pandas.DataFrame` and `polars.DataFrame` take them.

        They are `id` and `predicted`, with `probabilities` also `p_NAME` for every class.

        >>> made = Predictions(np.array(["a", "b"]), ["fine", "mule"], None, ["", ""])
        >>> made.to_frame()
        {'id': ['a', 'b'], 'predicted': ['fine', 'mule']}
        """
        frame = {"id": self.ids.tolist(), "predicted": list(self.classes)}
        if probabilities:
            if self.probabilities is None:
                raise no_probabilities()
            columns = class_columns(self.names)
            frame |= dict(zip(columns, self.probabilities.T.tolist(), strict=True))
        return frame

    def write(self, path: str | Path, *, probabilities: bool = False) -> None:
        """Write a `.csv` or `.parquet` file, whole or not at all.

        With `probabilities` it has a column more for every class, `p_NAME`.
        """
        path = Path(path)
        check_out(path)
        more: list[str] = []
        every: Iterator[list[float]] = repeat([])
        if probabilities:
            if self.probabilities is None:
                raise no_probabilities()
            more, every = class_columns(self.names), iter(self.probabilities.tolist())
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*COLUMNS, *more])
        for (name, label, sure, second), others in zip(self.rows(), every, strict=False):
            each = ["" if p is None else f"{p:.17g}" for p in (sure, *others)]
            writer.writerow([name, label, each[0], second, *each[1:]])
        data = text.getvalue().encode()
        if path.suffix.lower() != ".csv":
            data = _as_parquet(data, more, numbers=self.ids.dtype.kind in "iu")
        write_atomically(path, data)


def check_out(path: Path) -> None:
    """Refuse a file that predictions cannot be written to, before time is spent on them."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"predictions are written as .csv or .parquet, not as {path.name!r}")
    make_folder(path.parent)


def _as_parquet(table: bytes, more: list[str], *, numbers: bool) -> bytes:
    import duckdb

    kinds = dict.fromkeys(COLUMNS, "VARCHAR") | {"probability": "DOUBLE"}
    kinds |= dict.fromkeys(more, "DOUBLE") | ({"id": "BIGINT"} if numbers else {})
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        source, target = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        source.write_bytes(table)
        rows = "SELECT * FROM read_csv(?, header = true, columns = ?, quote = '\"', delim = ',')"
        query = f"COPY ({rows}) TO '{target}' (FORMAT parquet)"  # names of our own
        connection.execute(query, [str(source), kinds])
        return target.read_bytes()
