"""`Result`: what a run writes to `result.json`. Importing it does not import torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.spec import RunSpec, complaint
from undrift.storage.files import write_atomically

if TYPE_CHECKING:
    from undrift.storage.splits import SavedSplit

__all__ = [
    "FORMAT",
    "Cost",
    "Graded",
    "Metrics",
    "Result",
    "load_result",
    "result_path",
    "save_result",
    "split_path",
]

FORMAT = 2
"""The format of `result.json` that is written; 1 had no `format` and no `cost.state_bytes`."""

T = TypeVar("T")


class _Record(BaseModel):
    # by name or alias: `class` is a keyword of Python but the right word in the file
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Graded(_Record, Generic[T]):
    """The same thing by class (the headline) and by node."""

    by_class: T = Field(validation_alias="class", serialization_alias="class")
    by_node: T = Field(validation_alias="node", serialization_alias="node")


class Metrics(_Record):
    """The metrics of an accuracy matrix, in percent (see `AccuracyMatrix`)."""

    a_avg: float
    a_f: float
    a_l: float
    forgetting: float

    @classmethod
    def of(cls, matrix: AccuracyMatrix) -> Metrics:
        """The metrics of a matrix."""
        return cls(a_avg=matrix.a_avg, a_f=matrix.a_f, a_l=matrix.a_l, forgetting=matrix.forgetting)


class Cost(_Record):
    """Seconds per phase with their `total`; peak memory and kept state in MB (10^6 bytes).

    `state_bytes` is the size of the state after every task, `state_mb` after the last.
    """

    seconds: dict[str, float]
    peak_memory_mb: float | None
    state_mb: float
    threads: int
    state_bytes: list[int] = []


class Result(_Record):
    """A finished run.

    `matrix` and `metrics` are of the test nodes, `validation` holds the metrics of the
    validation nodes (None where a task has none). `drift[t]` is the relative drift of the base
    task's embeddings after task t: empty for a learner without embeddings, None where it is not
    a finite number. `provenance` says where the data came from, `split_sha256` in it names the
    split (see `SavedSplit`), and `stand_in` says whether the data only imitates the benchmark.

    An older format is read as if it were written today, what it lacks takes its default; a newer
    one is refused. So in memory `format` is always `FORMAT`.
    """

    format: int = Field(default=FORMAT, ge=FORMAT, le=FORMAT, strict=True)
    spec: RunSpec
    matrix: Graded[list[list[float]]]
    metrics: Graded[Metrics]
    validation: Graded[Metrics] | None
    drift: list[float | None]
    cost: Cost
    versions: dict[str, str]
    provenance: dict[str, bool | str]

    @property
    def by_class(self) -> AccuracyMatrix:
        """The accuracy matrix by class."""
        return AccuracyMatrix(self.matrix.by_class)

    @property
    def by_node(self) -> AccuracyMatrix:
        """The accuracy matrix by node."""
        return AccuracyMatrix(self.matrix.by_node)

    @property
    def stand_in(self) -> bool:
        """Whether the data only imitates the benchmark."""
        return bool(self.provenance.get("stand_in", False))


def result_path(spec: RunSpec, out: str | Path) -> Path:
    """Where the result of a run lies: `<out>/<id>/result.json`."""
    return Path(out) / spec.id / "result.json"


def split_path(result: str | Path) -> Path:
    """Where the split of a result lies: `split.npz` beside the `result.json`."""
    return Path(result).with_name("split.npz")


def save_result(result: Result, out: str | Path, *, split: SavedSplit | None = None) -> Path:
    """Write `<out>/<id>/result.json`, whole or not at all, and return its path.

    With the stream's `split`, it is written beside it first: a result that names a split has it.
    """
    path = result_path(result.spec, out)
    if split is not None:
        from undrift.storage.splits import save_split

        save_split(split_path(path), split)
    write_atomically(path, (result.model_dump_json(by_alias=True, indent=2) + "\n").encode())
    return path


def load_result(path: str | Path) -> Result:
    """Read a `result.json` of this format or an older one; anything else is an `InputError`."""
    data = b""
    try:
        data = Path(path).read_bytes()
        return Result.model_validate_json(data)
    except OSError as error:
        raise InputError(
            f"cannot read the result {path} ({error.strerror or error}); give the path of a "
            "result.json"
        ) from error
    except ValidationError as error:
        written = _written_format(data)
        if written > FORMAT:
            raise InputError(
                f"{path} was written by a newer undrift (result format {written}, this one reads "
                f"up to {FORMAT}); upgrade undrift"
            ) from error
        raise InputError(
            f"{path} is not a result of a run ({complaint(error)}); delete it and run again"
        ) from error


def _written_format(data: bytes) -> int:
    """The format that a file claims to have, 0 where it claims none."""
    try:
        claimed = json.loads(data)["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0
    return claimed if isinstance(claimed, int) else 0
