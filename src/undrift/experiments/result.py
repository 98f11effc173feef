"""`Result`: what a run writes to `result.json`. Importing it does not import torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf, isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix, Parts
from undrift.evaluation.metrics import METRICS, mean_of, metrics_of
from undrift.experiments.record import StrictModel, read_record, write_record
from undrift.experiments.spec import RunSpec
from undrift.learners.registry import METHODS, Method, described

if TYPE_CHECKING:
    from undrift.storage.splits import SavedSplit

FORMAT = 6
"""The format of `result.json` that is written; older ones have fewer fields."""

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
    """The metrics of an accuracy matrix as attributes by their keys; None for one not there."""

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

    def value(self, key: str) -> float:
        """One metric; not a number where it is not there."""
        return float(self.__pydantic_extra__.get(key, nan))

    def completed(self, matrix: AccuracyMatrix) -> Metrics:
        """Itself, with what it lacks computed from the matrix."""
        keys = {key for key in METRICS if METRICS[key].fits(matrix.parts)}
        if keys <= self.__pydantic_extra__.keys():
            return self
        return Metrics.model_validate(Metrics.of(matrix).model_dump() | self.model_dump())


class Cost(StrictModel):
    """Seconds per phase, their `total`; MB of memory and state; `state_bytes` after every task."""

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
    """Where classes come back: a matrix has a column per class and a row per grading.

    `classes` are in order of arrival, `nodes` their test nodes. `graded` says after which of the
    `batches`, `shares` which share of the training nodes arrived since the grading before.
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
    task t, None where it is not finite. `imbalance[t]` is rho_t, the nodes of the largest class
    of task t over those of its smallest. Where classes come back (`returning`), the matrix is of
    classes, after every grading. `series` has a number after each step by the key of its metric,
    None where a step has none. A run that was graded by series alone has an empty matrix.
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
    series: dict[str, list[float | None]] = Field(default_factory=dict)

    def value(self, key: str, grading: str = "class") -> float:
        """A metric of the run on its test nodes; not a number where it has none."""
        if key in self.series:
            return mean_of(self.series[key])
        graded = self.metrics.by_node if grading == "node" else self.metrics.by_class
        return graded.value(key)

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
        if self.returning:
            return self.returning.batches
        return max([len(self.matrix.by_class), *map(len, self.series.values())])

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
    return AccuracyMatrix(rows, "classes", returning.nodes if by_node else None, returning.shares)


def graded_metrics(by_class: AccuracyMatrix, by_node: AccuracyMatrix) -> Graded[Metrics]:
    """The metrics of both matrices."""
    return Graded[Metrics](by_class=Metrics.of(by_class), by_node=Metrics.of(by_node))


def metric_keys(results: Iterable[Result]) -> list[str]:
    """The metrics that some of these runs can have, in their order; all where there is no run."""
    every = list(results)
    kinds: set[Parts] = {"classes" if r.returning else "tasks" for r in every if r.matrix.by_class}
    series = {key for result in every for key in result.series}
    return [
        key
        for key, metric in METRICS.items()
        if key in series or (metric.of and not every) or any(map(metric.fits, kinds))
    ]


def result_path(spec: RunSpec, out: str | Path) -> Path:
    """Where the result of a run lies: `<out>/<id>/result.json`."""
    return Path(out) / spec.id / "result.json"


def save_result(result: Result, out: str | Path, *, split: SavedSplit | None = None) -> Path:
    """Write `<out>/<id>/result.json`, whole or not at all, after its `split` beside it."""
    path = result_path(result.spec, out)
    if split is not None:
        from undrift.storage.splits import save_split

        save_split(path.with_name("split.npz"), split)
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
        if not result.matrix.by_class and not result.series:
            raise InputError("its accuracy matrix is empty")
        whole = {name: old.completed(getattr(result, name)) for name, old in both.items()}
    except InputError as error:
        raise InputError(f"{path} is damaged ({error}); delete it and run again") from error
    return result.model_copy(update={"metrics": result.metrics.model_copy(update=whole)})


def each_metric(result: Result) -> Iterator[tuple[tuple[str, str], str, float | None]]:
    """Every metric that is known here: ((split, by), key, value), None where it is not there."""
    matrices = [key for key, metric in METRICS.items() if metric.of is not None]
    for split, graded in (("test", result.metrics), ("val", result.validation)):
        for by in ("class", "node"):
            metrics = graded and (graded.by_class if by == "class" else graded.by_node)
            yield from (((split, by), key, getattr(metrics, key, None)) for key in matrices)
    for key in METRICS.keys() - set(matrices):  # neither by class nor by node
        value = result.value(key)
        yield ("test", "class"), key, value if isfinite(value) else None
