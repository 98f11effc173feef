"""Predictions for every node, a chunk of rows at a time, as parts of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from undrift.errors import InputError
from undrift.formatting import class_columns
from undrift.scale.blocks import at_once, rows_of, slices
from undrift.scale.graph_folder import AGAIN
from undrift.scale.plan import BlockPlan, Call
from undrift.scale.tables import copied, literal, quoted
from undrift.storage.files import checksum, hashed_name, whole_file

WEIGHTS = "weights.npy"


class Answer(NamedTuple):
    """How scores become classes, beside the weights."""

    bank: str
    temperature: float | None  # None: there are no probabilities
    names: tuple[str, ...]
    every: bool = False  # a column for the probability of each class as well


def no_probabilities() -> InputError:
    """Where every class's probability was asked for, and there is none."""
    return InputError(
        "there are no probabilities: the method has scores only, or it has observed one class; "
        "leave out probabilities, or use propagation with two or more classes"
    )


def score_calls(plan: BlockPlan, answer: Answer) -> list[Call]:
    """A task per chunk of rows."""
    size = at_once(plan, sum(group.columns for group in plan.groups))
    return [
        Call(f"scores-{i:05}.parquet", write_scores, (answer, where.start, where.stop))
        for i, where in enumerate(slices(0, plan.rows, size))
    ]


def write_scores(plan: BlockPlan, name: str, answer: Answer, start: int, stop: int) -> None:
    """Write id, class, probability and runner-up of some nodes, as `Learner.predict_proba` does."""
    bank, temperature, names, every = answer
    weights = torch.from_numpy(np.load(plan.work / WEIGHTS))
    features = plan.maps[bank]
    at_a_time = slices(start, stop, at_once(plan, len(weights)))
    scores = torch.cat([features.scored(rows_of(plan, bank, w), weights) for w in at_a_time])
    ranking = scores if temperature is None else torch.softmax(scores / temperature, dim=1)
    best = ranking.topk(min(2, len(names)), dim=1)
    called = np.array([*names, ""], dtype=object)
    second = best.indices[:, 1] if len(names) > 1 else torch.full((stop - start,), -1)
    rows = {
        "n": np.arange(start, stop),
        "class": called[best.indices[:, 0].numpy()],
        "p": np.full(stop - start, np.nan) if temperature is None else best.values[:, 0].numpy(),
        "runner_up": called[second.numpy()],
    }
    more = class_columns(names) if every else []
    rows |= {f"q{i}": ranking[:, i].numpy() for i, _ in enumerate(more)}
    ids = f"read_parquet({literal(str(plan.folder.ids_file))}, file_row_number = true)"
    path = plan.work / name

    def named() -> Path:
        return hashed_name(path, checksum(Path(file.name)))

    with whole_file(path, named=named, way_out=AGAIN) as file, _duckdb(path) as connection:
        connection.register("rows", rows)
        query = (
            "SELECT id, class, CASE WHEN isnan(p) THEN NULL ELSE p END AS probability, runner_up"
            f"{''.join(f', q{i} AS {quoted(name)}' for i, name in enumerate(more))} FROM rows "
            f"JOIN (SELECT id, file_row_number FROM {ids} WHERE file_row_number >= {start} AND "
            f"file_row_number < {stop}) ON file_row_number = n ORDER BY n"
        )
        connection.execute(copied(query, file.name))


def joined_parts(plan: BlockPlan, parts: Sequence[Call], out: Path) -> None:
    """All parts in one table, in the order of the nodes, whole or not at all."""
    files = [plan.find(call.name) for call in parts]
    listed = ", ".join(literal(str(file)) for file in files)
    kind = "csv, HEADER" if out.suffix.lower() == ".csv" else "parquet"
    with whole_file(out, way_out=AGAIN) as file, _duckdb(out) as connection:
        connection.execute(copied(f"SELECT * FROM read_parquet([{listed}])", file.name, kind))


@contextmanager
def _duckdb(path: Path) -> Iterator[Any]:
    """A connection with one thread, so that the same rows are the same bytes."""
    import duckdb

    try:
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.execute("SET enable_progress_bar = false")
            yield connection
    except duckdb.Error as error:
        raise InputError(
            f"cannot write {path} ({' '.join(str(error).split())[:200]}); {AGAIN}"
        ) from error
