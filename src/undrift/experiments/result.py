"""`Result`: what a run writes to `result.json`. Importing it does not import torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix, Parts
from undrift.evaluation.metrics import METRICS, metrics_of
from undrift.experiments.record import StrictModel, read_record, write_record
from undrift.experiments.spec import RunSpec
from undrift.learners.registry import METHODS, Method, described

if TYPE_CHECKING:
    from undrift.storage.splits import SavedSplit

FORMAT = 5
"""The format of `result.json` that is written.

2 had no `imbalance` and our four metrics alone, 3 no `returning`, 4 no `described`.
"""

T = TypeVar("T")
_Format = Annotated[int, Field(ge=2, le=FORMAT, strict=True), AfterValidator(lambda _: FORMAT)]
# JSON has no infinity: it is written as null
_Ratio = Annotated[
    float,
    Field(ge=1.0, allow_inf_nan=True),
    BeforeValidator(lambda value: inf if value is None else value),
]
_Amount = Annotated[float, Field(ge=0.0)]


class Graded(StrictModel, Generic[T]):
    """The same thing by class (the headline) and by node."""

    by_class: T = Field(validation_alias="class", serialization_alias="class")
    by_node: T = Field(validation_alias="node", serialization_alias="node")


class Metrics(BaseModel):
    """The metrics of an accuracy matrix as attributes, each by its key (see `METRICS`).

    One that is not there is None; one of a package that is not installed here is kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, float]

    @classmethod
    def of(cls, matrix: AccuracyMatrix) -> Metrics:
        """The metrics of a matrix; one that is not a finite number is left out."""
        return cls.model_validate({key: v for key, v in metrics_of(matrix).items() if isfinite(v)})

    def __getattr__(self, key: str) -> Any:
        if key in self.__pydantic_extra__ or key.startswith("_") or key not in METRICS:
            return super().__getattr__(key)  # type: ignore[misc]
        return None

    def completed(self, matrix: AccuracyMatrix) -> Metrics:
        """Itself, with what it lacks computed from the matrix."""
        keys = (key for key in METRICS if matrix.parts in METRICS[key].parts)
        if all(key in self.__pydantic_extra__ for key in keys):
            return self
        return Metrics.model_validate(Metrics.of(matrix).model_dump() | self.model_dump())


class Cost(StrictModel):
    """Seconds per phase with their `total`; memory and state in MB (10^6 bytes).

    `state_bytes` is the size of the state after every task, `state_mb` after the last.
    """

    seconds: dict[str, _Amount]
    peak_memory_mb: _Amount | None
    state_mb: _Amount
    threads: int
    state_bytes: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)

    @property
    def total_seconds(self) -> float:
        """The seconds of the whole run."""
        return self.seconds["total"] if "total" in self.seconds else sum(self.seconds.values())

    @property
    def kept_bytes(self) -> float:
        """The size of the state after the last task."""
        return self.state_bytes[-1] if self.state_bytes else 1e6 * self.state_mb


class Returning(StrictModel):
    """What the rows and columns of a matrix are where classes come back.

    A column is a class: `classes` in order of arrival, each graded on so many test `nodes`. A row
    is a grading: after which of the `batches` (`graded`), and the share of the training nodes
    that arrived since the one before.
    """

    batches: int
    classes: list[int]
    nodes: list[int]
    graded: list[int]
    shares: list[float]


class Described(StrictModel):
    """What tables say of a method that goes by `module:Class`: reading a result imports nothing."""

    display: str
    family: str
    paper: str
    keeps: str
    keeps_examples: bool

    @classmethod
    def of(cls, method: str) -> Described | None:
        """Of a method that was loaded; None of one that is listed."""
        if ":" not in method:
            return None
        facts = METHODS[method]
        return cls(**{name: getattr(facts, name) for name in cls.model_fields})


class Result(StrictModel):
    """A finished run.

    `matrix` and `metrics` are of the test nodes, `validation` of the validation nodes (None
    where a task has none). `drift[t]` is the relative drift of the base task's embeddings after
    task t, None where it is not a finite number. `provenance` says where the data came from.
    `imbalance[t]` is rho_t, the nodes of the largest class of task t over those of its smallest.
    Where classes come back (`returning`), the matrix is of classes, after every grading.
    """

    format: _Format = FORMAT
    spec: RunSpec
    matrix: Graded[list[list[float]]]
    metrics: Graded[Metrics]
    validation: Graded[Metrics] | None
    drift: list[float | None]
    cost: Cost
    versions: dict[str, str]
    provenance: dict[str, bool | str]
    imbalance: list[_Ratio] | None = None
    returning: Returning | None = None
    described: Described | None = None

    @property
    def by_class(self) -> AccuracyMatrix:
        """The accuracy matrix by class."""
        return matrix_of(self.matrix.by_class, self.returning)

    @property
    def by_node(self) -> AccuracyMatrix:
        """The accuracy matrix by node."""
        return matrix_of(self.matrix.by_node, self.returning, by_node=True)

    @property
    def steps(self) -> int:
        """How many tasks, or batches where classes come back, were learned."""
        return self.returning.batches if self.returning else len(self.matrix.by_class)

    @property
    def stand_in(self) -> bool:
        """Whether the data only imitates the benchmark."""
        return bool(self.provenance.get("stand_in", False))


def matrix_of(
    rows: list[list[float]], returning: Returning | None, *, by_node: bool = False
) -> AccuracyMatrix:
    """The accuracy matrix with these rows: of tasks, or of classes where those come back."""
    if returning is None:
        return AccuracyMatrix(rows)
    weights = returning.nodes if by_node else None
    return AccuracyMatrix(rows, "classes", weights, returning.shares)


def graded_metrics(by_class: AccuracyMatrix, by_node: AccuracyMatrix) -> Graded[Metrics]:
    """The metrics of both matrices."""
    return Graded[Metrics](by_class=Metrics.of(by_class), by_node=Metrics.of(by_node))


def metric_keys(results: Iterable[Result]) -> list[str]:
    """The metrics that some of these runs can have, in their order; all where there is no run."""
    kinds: set[Parts] = {"classes" if result.returning else "tasks" for result in results}
    return [key for key in METRICS if not kinds or kinds.intersection(METRICS[key].parts)]


def result_path(spec: RunSpec, out: str | Path) -> Path:
    """Where the result of a run lies: `<out>/<id>/result.json`."""
    return Path(out) / spec.id / "result.json"


def split_path(result: str | Path) -> Path:
    """Where the split of a result lies: `split.npz` beside the `result.json`."""
    return Path(result).with_name("split.npz")


def save_result(result: Result, out: str | Path, *, split: SavedSplit | None = None) -> Path:
    """Write `<out>/<id>/result.json`, whole or not at all, after its `split` beside it."""
    path = result_path(result.spec, out)
    if split is not None:
        from undrift.storage.splits import save_split

        save_split(split_path(path), split)
    return write_record(result, path, indent=2)


def load_result(path: str | Path) -> Result:
    """Read a `result.json` of this format or an older one; anything else is an `InputError`."""
    first, again = "give the path of a result.json", "run again"
    try:
        result = read_record(Result, path, "result", "a result of a run", first=first, again=again)
    except InputError as error:
        written = None
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            written = json.loads(Path(path).read_bytes())["format"]
        if isinstance(written, int) and written > FORMAT:
            raise InputError(
                f"{path} was written by a newer undrift (result format {written}, this one reads "
                f"up to {FORMAT}); upgrade undrift"
            ) from error
        raise
    if result.described is not None:
        described(Method(result.spec.method, **result.described.model_dump()))
    both = {"by_class": result.metrics.by_class, "by_node": result.metrics.by_node}
    try:
        if not result.matrix.by_class:
            raise InputError("its accuracy matrix is empty")
        whole = {name: old.completed(getattr(result, name)) for name, old in both.items()}
    except InputError as error:
        raise InputError(f"{path} is damaged ({error}); delete it and run again") from error
    return result.model_copy(update={"metrics": result.metrics.model_copy(update=whole)})


def each_metric(result: Result) -> Iterator[tuple[tuple[str, str], str, float | None]]:
    """Every metric that is known here: ((split, by), key, value), None where it is not there."""
    keys = tuple(METRICS)
    for split, graded in (("test", result.metrics), ("val", result.validation)):
        for by in ("class", "node"):
            metrics = graded and (graded.by_class if by == "class" else graded.by_node)
            values = (metrics and metrics.model_extra) or {}
            for key in keys:
                yield (split, by), key, values.get(key)
