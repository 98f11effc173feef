"""`stream.toml`: a stream of your own as a file. Reading one does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from hashlib import file_digest, sha256
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, field_validator, model_validator

from undrift.checks import check_regular
from undrift.errors import InputError
from undrift.storage.lock import system_errors
from undrift.storage.toml_text import TomlText
from undrift.streams.benchmarks import STREAMS

if TYPE_CHECKING:
    from undrift.datasets.tables import TableGraph
    from undrift.graphs import Graph
    from undrift.streams.stream import TaskStream


@dataclass(frozen=True)
class StreamFile:
    """A `stream.toml` that was read and found valid; `toml_sha256` is the hash of its bytes."""

    path: Path
    settings: StreamSettings
    toml_sha256: str

    @property
    def files(self) -> dict[str, Path]:
        """The data files that it names, by what they are; paths are relative to the toml."""
        graph, sessions = self.settings.graph, self.settings.sessions
        named = {"split_file": self.settings.split.file}
        if graph is not None:
            named = {"npz": graph.npz, "nodes": graph.nodes, "edges": graph.edges, **named}
        if sessions is not None:
            named["table"] = sessions.table
        return {what: self.path.parent / name for what, name in named.items() if name is not None}

    @property
    def holds(self) -> str:
        """What a learner of it learns: `graphs` or `sessions`."""
        return "graphs" if self.settings.sessions is None else "sessions"

    def digests(self) -> dict[str, str]:
        """The SHA-256 of the toml and of every data file. Cost: reads all of them once."""
        found = {"toml": self.toml_sha256}
        for what, path in self.files.items():
            check_regular(path)
            problem = f"{self.path} names {path} as its {what}, which cannot be read"
            with system_errors(problem, "paths are relative to the toml"), path.open("rb") as file:
                found[what] = file_digest(file, "sha256").hexdigest()
        return found

    def content_sha256(self, digests: Mapping[str, str] | None = None) -> str:
        """One hash of all that decides the stream: the toml and its data, wherever they lie."""
        lines = [f"{what} {digest}\n" for what, digest in (digests or self.digests()).items()]
        return sha256("".join(lines).encode()).hexdigest()


def is_stream_file(name: str) -> bool:
    """Whether a stream is given as a file and not by its name: `.toml`, or a path with folders."""
    return name.lower().endswith(".toml") or "/" in name or "\\" in name


def read_stream_file(path: str | Path) -> StreamFile:
    """Read and check a `stream.toml`; its data files are not touched."""
    path = Path(path)
    file = TomlText.read(path, "stream file")
    return StreamFile(path, file.parsed(StreamSettings), sha256(file.data).hexdigest())


def load_stream_file(path: str | Path, seed: int = 0) -> TaskStream:
    r"""The stream that a `stream.toml` describes; `seed` draws its split and a random order.

    Its provenance has the SHA-256 of the toml and of every data file, `content_sha256` over all
    of them, and what was repaired. Cost: the data files are read twice, once to hash them.

    >>> import tempfile
    >>> rows = [f"{i},{i % 2},{i % 3}" for i in range(20)]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = Path(place)
    ...     _ = (folder / "nodes.csv").write_text("\n".join(["id,label,size", *rows]))
    ...     _ = (folder / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    ...     text = "name='own'\n[graph]\nnodes='nodes.csv'\nedges='edges.csv'\n"
    ...     _ = (folder / "stream.toml").write_text(text + "[tasks]\nbase=1\nincrement=1\n")
    ...     load_stream_file(folder / "stream.toml").classes
    ((0,), (1,))
    """
    file = read_stream_file(path)
    digests = file.digests()
    provenance = {"name": file.settings.name, "content_sha256": file.content_sha256(digests)}
    for what, place in {"toml": file.path, **file.files}.items():
        provenance |= {what: place.name, f"{what}_sha256": digests[what]}
    about = {"name": file.settings.name, "seed": seed, "provenance": provenance}
    graph_of = file.settings.graph
    if graph_of is None:
        made: TaskStream = resolve_name("undrift.recommend.stream:stream_of_file")(file, about)
        return made
    tables = None
    if "npz" in file.files:
        from undrift.datasets.readers import read_npz

        graph = read_npz(file.files["npz"])
    else:
        from undrift.datasets.tables import read_tables

        columns = graph_of.model_dump(exclude={"npz", "nodes", "edges", "scale"})
        tables = read_tables(file.files["nodes"], file.files["edges"], **columns)
        graph = tables.graph
        if str(tables.repairs):
            provenance["repairs"] = str(tables.repairs)
    try:
        return _stream(file, graph_of, graph, tables, about)
    except InputError as error:
        raise InputError(f"the stream of {file.path} cannot be made: {error}") from error


def _stream(
    file: StreamFile,
    section: GraphSection,
    graph: Graph,
    tables: TableGraph | None,
    about: dict[str, Any],
) -> TaskStream:
    from undrift.cells import days
    from undrift.streams.split import Times, class_ids
    from undrift.streams.stream import TaskStream, scale_note

    tasks, split, scale = file.settings.tasks, file.settings.split, section.scale
    time = None if tables is None else tables.time
    if tasks is None:
        from undrift.storage.splits import load_split

        stream = TaskStream.with_split(graph, load_split(file.files["split_file"]), **about)
    else:
        about |= {"fractions": (split.train, split.val, split.test), "scale": "none"}
        if tasks.by == "time":
            if tables is None or time is None:
                raise InputError('by = "time" needs tables with a time column; name it in [graph]')
            periods = tasks.periods
            if isinstance(periods, list):
                periods = [days(start) if isinstance(start, date) else start for start in periods]
            stream = TaskStream.by_time(graph, time, periods, dates=tables.dates, **about)
        else:
            about |= {"base": tasks.base, "increment": tasks.increment, "order": tasks.order}
            stream = TaskStream.from_graph(graph, **about)
        (normal,) = class_ids([tasks.normal], graph.names.classes)
        stream = replace(stream, normal=normal)
    if time is not None and stream.times is None:
        stream = replace(stream, times=Times(time.numpy()))
    # tables are scaled where nothing else is said; other graphs get a note if they need it
    if scale is not None or tables is not None:
        return stream.in_units(scale or "robust", None if tables is None else tables.columns)
    note = scale_note(stream)
    return replace(stream, provenance={**stream.provenance, "scale": note}) if note else stream


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class GraphSection(_Section):
    """Where the graph is: `npz`, or `nodes` and `edges` with the names of their columns."""

    npz: str | None = None
    nodes: str | None = None
    edges: str | None = None
    id: str = "id"
    label: str = "label"
    source: str = "source"
    target: str = "target"
    features: list[str] | None = None
    time: str | None = None
    undirected: bool = True
    scale: Literal["robust", "none"] | dict[str, dict[str, float]] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> GraphSection:
        tables = self.model_fields_set - {"npz", "scale"}
        if self.npz is None and (self.nodes is None or self.edges is None):
            raise ValueError('give npz = "...", or both nodes = "..." and edges = "..."')
        if self.npz is not None and tables:
            raise ValueError(f"{min(tables)} is for tables; leave it out beside npz")
        return self


def _known_periods(periods: Any) -> Any:
    kinds = {type(p) for p in periods} if isinstance(periods, list) else {str}
    if not kinds <= {int, float, date, datetime} and type(periods) is not int:
        raise ValueError("give a whole number, or a list of times at which new periods start")
    return periods


Periods = Annotated[Any, PlainValidator(_known_periods)]


class TasksSection(_Section):
    """How the classes arrive: `base` and `increment` in an `order`, or `by = "time"`.

    `normal`: the class, by name or id, beside which all others are anomalies (docs/anomalies.md).
    """

    base: int | None = Field(default=None, ge=1)
    increment: int | None = Field(default=None, ge=1)
    order: str | list[int | str] = "label"
    by: Literal["time"] | None = None
    periods: Periods = None
    normal: int | str | None = None

    @field_validator("order", mode="plain")
    @classmethod
    def _known_order(cls, order: Any) -> Any:
        listed = isinstance(order, list) and {type(c) for c in order} in ({int}, {str})
        if order not in ("label", "random") and not listed:
            raise ValueError('give "label", "random" or a list of all classes')
        return order

    @model_validator(mode="after")
    def _one_way(self) -> TasksSection:
        sizes = self.model_fields_set & {"base", "increment", "order"}
        if self.by == "time":
            if self.periods is None:
                raise ValueError('by = "time" needs periods, a number or a list of starts')
            if sizes:
                raise ValueError(f"{min(sizes)} is for tasks by class; leave it out beside by")
        elif self.periods is not None:
            raise ValueError('periods needs by = "time" beside it')
        elif self.base is None or self.increment is None:
            raise ValueError("give base and increment, the classes of the first and later tasks")
        return self


class SessionsSection(_Section):
    """A table of clicks with its columns; `period` names one, or `periods` cuts the times."""

    table: str
    session: str = "session"
    item: str = "item"
    time: str = "time"
    user: str | None = None
    period: str | None = None
    periods: Periods = None

    @model_validator(mode="after")
    def _one_way(self) -> SessionsSection:
        if (self.period is None) == (self.periods is None):
            raise ValueError("give period, a column, or periods, a number or a list of starts")
        return self


class SplitSection(_Section):
    """The share of every class that trains, validates and tests, or the `file` of a split."""

    train: float = Field(default=0.6, gt=0, lt=1)
    val: float = Field(default=0.2, gt=0, lt=1)
    test: float = Field(default=0.2, gt=0, lt=1)
    file: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> SplitSection:
        if self.file is not None and len(self.model_fields_set) > 1:
            raise ValueError("leave out train, val and test beside file, which decides them")
        if abs(self.train + self.val + self.test - 1.0) > 1e-6:
            raise ValueError("train, val and test must add up to 1")
        return self


class StreamSettings(_Section):
    """What a `stream.toml` says."""

    name: str = Field(min_length=1)
    graph: GraphSection | None = None
    sessions: SessionsSection | None = None
    tasks: TasksSection | None = None
    split: SplitSection = SplitSection()

    @field_validator("name")
    @classmethod
    def _own_name(cls, name: str) -> str:
        if name.partition("@")[0] in STREAMS:  # with or without an option
            raise ValueError(f"{name} is the name of a benchmark; choose another")
        return name

    @model_validator(mode="after")
    def _tasks_once(self) -> StreamSettings:
        if (self.graph is None) == (self.sessions is None):
            raise ValueError("give either [graph] or [sessions]")
        if self.sessions is not None:
            if self.model_fields_set & {"tasks", "split"}:
                raise ValueError("leave out [tasks] and [split] beside [sessions]")
        elif (self.tasks is None) == (self.split.file is None):
            raise ValueError("give either [tasks] or, in [split], the file that holds them")
        return self
