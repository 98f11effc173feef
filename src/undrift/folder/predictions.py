"""Predictions by the user's names, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.cells import as_list, as_text
from undrift.datasets.tables import Repairs
from undrift.errors import InputError
from undrift.folder.batch import Array, Batch
from undrift.folder.notice import counted_strange
from undrift.folder.record import Noticed, Record
from undrift.folder.store import HEAD, LEARNER
from undrift.formatting import class_columns, counted
from undrift.learners.base import Learner
from undrift.learners.reading import alarm_rate
from undrift.scale.graph_folder import MANIFEST
from undrift.scale.learning import no_probabilities
from undrift.storage.files import make_folder, write_atomically

UNKNOWN_WORD = "unknown"  # the class of a node that looks like no known one


@dataclass(frozen=True, eq=False)
class Predictions(Sequence[dict[str, Any]]):
    """Per node its id, its class, the probability of that and the next class, empty without one.

    A sequence of rows, so that `pandas.DataFrame(predictions)` is its table; as an array it is its
    classes. `predictions == labels` says per node whether its class has that name; 3 is "3".

    `probabilities` has a row per node and a column per class of `names`. What the method cannot
    tell, or nobody asked, is None. With `unknown` a node stranger than all but that share of known
    ones has the class `unknown`, no probability of it, and as runner-up the class that it would
    have. `groups`: which unknown nodes belong together, a name each, empty for other nodes.
    """

    ids: Array
    classes: list[str]
    probability: Array | None
    runner_up: list[str]
    repairs: Repairs = field(default_factory=Repairs)  # what was left out of the edges
    names: list[str] = field(default_factory=list)
    probabilities: Array | None = None
    novelty: Array | None = None
    unknown: float | None = None
    groups: list[str] | None = None
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # so that `labels == predictions` of arrays asks here
    noticed: Noticed | None = None  # how many nodes look like no known class, where it is told

    @classmethod
    def of(
        cls,
        ids: Array,
        ranking: Tensor,
        names: list[str],
        *,
        probable: bool,
        novelty: Tensor | None = None,
        unknown: float | None = None,
    ) -> Predictions:
        """From a number per node and class, larger is likelier."""
        best = ranking.topk(min(2, len(names)), dim=1)
        classes, *others = ([names[i] for i in place] for place in best.indices.T.tolist())
        runner_up = others[0] if others else [""] * len(classes)
        sure = best.values[:, 0].clone()
        if novelty is not None and unknown is not None:
            strange = novelty > 1 - unknown
            for i in strange.nonzero().flatten().tolist():
                classes[i], runner_up[i] = UNKNOWN_WORD, classes[i]
            sure[strange] = torch.nan
        return cls(
            ids,
            classes,
            sure.numpy() if probable else None,
            runner_up,
            names=names,
            probabilities=ranking.numpy() if probable else None,
            novelty=None if novelty is None else novelty.numpy(),
            unknown=unknown,
        )

    def to_frame(self, *, probabilities: bool = False) -> dict[str, list[Any]]:
        """Columns by name, as in a file; with `probabilities` also `p_NAME` for every class."""
        sure = np.full(len(self.classes), np.nan) if self.probability is None else self.probability
        frame = {
            "id": self.ids.tolist(),
            "class": list(self.classes),
            "probability": [None if np.isnan(p) else p for p in sure.tolist()],
            "runner_up": list(self.runner_up),
        }
        if self.unknown is not None and self.novelty is not None:
            frame["novelty"] = self.novelty.tolist()
        if self.groups is not None:
            frame["group"] = list(self.groups)
        if probabilities:
            if self.probabilities is None:
                raise no_probabilities()
            columns = class_columns(self.names)
            frame |= dict(zip(columns, self.probabilities.T.tolist(), strict=True))
        return frame

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """A row of `to_frame` at a time."""
        frame = self.to_frame()
        return (dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True))

    def __len__(self) -> int:
        return len(self.classes)

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.classes, dtype=dtype)

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        given = getattr(other, "classes", other)
        labels = [given] * len(self) if isinstance(given, str) else as_list(given)
        if labels is None or len(labels) != len(self):
            what = f"{len(self):,} predictions are compared with the name of one class, or with"
            raise InputError(f"{what} a label for each of these nodes, in their order")
        return np.array([c == as_text(y) for c, y in zip(self.classes, labels, strict=True)])

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return ~(self == other)

    def __repr__(self) -> str:
        return f"Predictions({counted(len(self.ids), 'node')}, {len(self.names)} classes)"

    def write(self, path: str | Path, *, probabilities: bool = False) -> None:
        """Write the columns of `to_frame` as a `.csv` or `.parquet` file, whole or not at all."""
        path = Path(path)
        check_out(path)
        frame = self.to_frame(probabilities=probabilities)
        words = ("class", "runner_up", "group")
        kinds = {name: "VARCHAR" if name in words else "DOUBLE" for name in frame}
        kinds["id"] = "BIGINT" if self.ids.dtype.kind in "iu" else "VARCHAR"
        each = zip(*frame.values(), strict=True)
        rows = ([f"{x:.17g}" if isinstance(x, float) else x for x in row] for row in each)
        write_table(path, rows, kinds)


def predicted(
    learner: Learner,
    record: Record,
    batch: Batch,
    nodes: Any = None,
    unknown: float | None = None,
    *,
    groups: bool = False,
) -> Predictions:
    """What a learner says of a batch; its rows are made once for classes and novelty."""
    index = None if nodes is None else batch.places(nodes)
    scores, novelty = learner.judged(batch.graph, index)
    names = record.named(learner.classes_)
    if unknown is not None and novelty is None:
        novelty = learner.novelty(batch.graph, index)  # says why not
    if unknown is not None and UNKNOWN_WORD in names:
        raise InputError(
            f"a class of this learner is called {UNKNOWN_WORD!r}, which is the word for nodes of "
            "no known class; leave out unknown, or observe that class under another name"
        )
    try:
        ranking, probable = learner.probabilities_of(scores), True
    except InputError:
        ranking, probable = scores, False
    ids = batch.ids if index is None else batch.ids[index]
    made = Predictions.of(ids, ranking, names, probable=probable, novelty=novelty, unknown=unknown)
    if groups:
        strange = np.flatnonzero(np.array(made.classes) == UNKNOWN_WORD)
        grouped = np.full(len(made.classes), "", dtype=object)
        asked = torch.from_numpy(strange) if index is None else torch.as_tensor(index)[strange]
        grouped[strange] = [f"group {n + 1}" for n in learner.groups(batch.graph, asked).tolist()]
        made = replace(made, groups=grouped.tolist())
    if novelty is not None:
        made = replace(made, noticed=counted_strange(novelty, record, batch.graph, unknown))
    return replace(made, repairs=batch.repairs)


def check_unknown(unknown: float | None, *, groups: bool = False) -> None:
    """Refuse a false-alarm rate that is none, before time is spent on reading."""
    if unknown is not None:
        alarm_rate(unknown)
    elif groups:
        way = "say which those are, as unknown=0.05 (--unknown 0.05)"
        raise InputError(f"groups are made of unknown nodes; {way}")


def check_out(path: Path, source: Any = ()) -> None:
    """Refuse a file that predictions of `source` cannot be written to, before time is spent."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"predictions are written as .csv or .parquet, not as {path.name!r}")
    check_target(path, source)
    make_folder(path.parent)


def check_target(path: str | Path, source: Any = ()) -> None:
    """Refuse a file of a learner's or a graph's folder, and a file of `source`, a batch or more."""
    path = Path(path)
    for folder in (*path.absolute().parents[:2], *path.resolve().parents[:2]):
        learner = (folder / LEARNER).exists() and (folder / HEAD).exists()
        if learner or (folder / MANIFEST).exists():
            raise InputError(
                f"{path} would lie in {folder}, whose files are those of a "
                f"{'learner' if learner else 'graph'}; write it into another folder"
            )
    for each in source if isinstance(source, list | tuple) else [source]:
        if isinstance(each, list | tuple):
            check_target(path, each)
            continue
        there = isinstance(each, str | Path) and path.exists() and Path(each).exists()
        if there and path.samefile(each):
            raise InputError(f"{path} is what is read, and would be gone; write to another file")


def write_table(path: Path, rows: Iterable[Sequence[Any]], kinds: dict[str, str]) -> None:
    """Write rows of these columns, with their types, as CSV or Parquet, whole or not at all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kinds)
    writer.writerows(rows)
    table = text.getvalue().encode()
    if path.suffix.lower() == ".csv":
        write_atomically(path, table)
        return
    import duckdb

    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        source, target = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        source.write_bytes(table)
        every = "SELECT * FROM read_csv(?, header = true, columns = ?, quote = '\"', delim = ',')"
        query = f"COPY ({every}) TO '{target}' (FORMAT parquet)"  # names of our own
        connection.execute(query, [str(source), kinds])
        write_atomically(path, target.read_bytes())
