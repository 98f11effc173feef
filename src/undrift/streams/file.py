"""`stream.toml`: a stream of your own as a file. Reading one does not import torch."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from undrift.checks import check_regular
from undrift.errors import InputError, unknown_name
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
        graph, split = self.settings.graph, self.settings.split.file
        named = {"npz": graph.npz, "nodes": graph.nodes, "edges": graph.edges, "split_file": split}
        return {what: self.path.parent / name for what, name in named.items() if name is not None}

    def digests(self) -> dict[str, str]:
        """The SHA-256 of the toml and of every data file. Cost: reads all of them once."""
        found = {"toml": self.toml_sha256}
        for what, path in self.files.items():
            check_regular(path)
            try:
                with path.open("rb") as file:
                    found[what] = file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise InputError(
                    f"{self.path} names {path} as its {what}, which cannot be read "
                    f"({error.strerror or error}); paths are relative to the toml file"
                ) from error
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
    check_regular(path)
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"cannot read the stream file {path} ({error.strerror or error}); check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8 and try again") from error
    return StreamFile(path, parse_settings(text, str(path)), sha256(data).hexdigest())


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
    tables = None
    if "npz" in file.files:
        from undrift.datasets.readers import read_npz

        graph = read_npz(file.files["npz"])
    else:
        from undrift.datasets.tables import read_tables

        columns = file.settings.graph.model_dump(exclude={"npz", "nodes", "edges", "scale"})
        tables = read_tables(file.files["nodes"], file.files["edges"], **columns)
        graph = tables.graph
        if str(tables.repairs):
            provenance["repairs"] = str(tables.repairs)
    try:
        about = {"name": file.settings.name, "seed": seed, "provenance": provenance}
        return _stream(file, graph, tables, about)
    except InputError as error:
        raise InputError(f"the stream of {file.path} cannot be made: {error}") from error


def _stream(
    file: StreamFile, graph: Graph, tables: TableGraph | None, about: dict[str, Any]
) -> TaskStream:
    from undrift.streams.split import Times
    from undrift.streams.stream import TaskStream, scale_note

    tasks, split, scale = file.settings.tasks, file.settings.split, file.settings.graph.scale
    time = None if tables is None else tables.time
    if tasks is None:
        from undrift.storage.splits import load_split

        stream = TaskStream.with_split(graph, load_split(file.files["split_file"]), **about)
    else:
        names = {} if tables is None else tables.class_names
        _check_classes(graph, names)
        about |= {"fractions": (split.train, split.val, split.test), "scale": "none"}
        if tasks.by == "time":
            stream = _by_time(graph, tables, tasks.periods, about)
        else:
            about |= {"base": tasks.base, "increment": tasks.increment}
            stream = TaskStream.from_graph(graph, order=_order(tasks.order, names), **about)
    if time is not None and stream.times is None:
        stream = replace(stream, times=Times.of(time))
    # tables are scaled where nothing else is said; other graphs get a note if they need it
    if scale is not None or tables is not None:
        return stream.in_units(scale or "robust", None if tables is None else tables.columns)
    note = scale_note(stream)
    return replace(stream, provenance={**stream.provenance, "scale": note}) if note else stream


def _by_time(
    graph: Graph, tables: TableGraph | None, periods: Any, about: Mapping[str, Any]
) -> TaskStream:
    from undrift.datasets.columns import days
    from undrift.streams.stream import TaskStream

    if tables is None or tables.time is None:
        raise InputError('by = "time" needs tables with a time column; name it in [graph]')
    if isinstance(periods, list):
        periods = [days(start) if isinstance(start, date) else start for start in periods]
    return TaskStream.by_time(graph, tables.time, periods, dates=tables.dates, **about)


def _order(order: Any, names: Mapping[int, str]) -> Any:
    """Classes given by name as ids; everything else as it is."""
    if isinstance(order, str) or not isinstance(order[0], str):
        return order
    ids = {name: c for c, name in names.items()}
    for name in order:
        if name not in ids:
            raise unknown_name("class", name, ids)
    missing = [name for name in ids if name not in order]
    twice = sorted({name for name in order if order.count(name) > 1})
    if missing or twice:
        parts = [("missing", missing), ("twice", twice)]
        wrong = ", ".join(f"{what}: {', '.join(found)}" for what, found in parts if found)
        raise InputError(f"order must name each of the {len(ids)} classes once ({wrong})")
    return [ids[name] for name in order]


def _check_classes(graph: Graph, names: Mapping[int, str]) -> None:
    """A class too small to split, by the name that it has in the table."""
    from undrift.streams.split import SMALLEST_CLASS, too_small

    present, counts = graph.labelled().unique(return_counts=True)
    for c, count in zip(present.tolist(), counts.tolist(), strict=True):
        if c in names and count < SMALLEST_CLASS:
            way_out = "leave the label of its nodes empty or merge it with another"
            raise too_small(names[c], count, way_out)


def parse_settings(text: str, where: str) -> StreamSettings:
    """The checked settings in the text of a `stream.toml`; `where` names the file in errors."""
    try:
        return StreamSettings.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is not valid TOML: {error}; correct it there") from error
    except RecursionError:
        why = "its values are nested too deeply; give plain lists"
        raise InputError(f"{where} is no stream: {why}") from None
    except ValidationError as error:
        raise InputError(_complaint(where, text, error)) from error


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


class TasksSection(_Section):
    """How the classes arrive: `base` and `increment` in an `order`, or `by = "time"`."""

    base: int | None = Field(default=None, ge=1)
    increment: int | None = Field(default=None, ge=1)
    order: str | list[int | str] = "label"
    by: Literal["time"] | None = None
    periods: Any = None

    @field_validator("order", mode="plain")
    @classmethod
    def _known_order(cls, order: Any) -> Any:
        listed = isinstance(order, list) and {type(c) for c in order} in ({int}, {str})
        if order not in ("label", "random") and not listed:
            raise ValueError('give "label", "random" or a list of all classes')
        return order

    @field_validator("periods", mode="plain")
    @classmethod
    def _known_periods(cls, periods: Any) -> Any:
        kinds = {type(p) for p in periods} if isinstance(periods, list) else {str}
        if not kinds <= {int, float, date, datetime} and type(periods) is not int:
            raise ValueError("give a whole number, or a list of times at which new periods start")
        return periods

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
    graph: GraphSection
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
        if (self.tasks is None) == (self.split.file is None):
            raise ValueError("give either [tasks] or, in [split], the file that holds them")
        return self


def _complaint(where: str, text: str, error: ValidationError) -> str:
    """The first thing wrong in the file as one sentence, with its line where it has one."""
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"]]
    section, key = (place[0], place[1]) if len(place) > 1 else ("", place[0] if place else "")
    line = _line(text, section, key)
    where = f"{where}, line {line}" if line else where
    if first["type"] == "extra_forbidden":
        known = _SECTIONS[section].model_fields
        what = f"key of [{section}]" if section else "key"
        return f"{where}: {unknown_name(what, key, known)}"
    if first["type"] == "missing":
        needed = f"[{key}]" if not section and key != "name" else f"a value for {key!r}"
        return f"{where} needs {needed}{f' in [{section}]' if section else ''}"
    message = str(first["msg"]).removeprefix("Value error, ")
    name = f"{section}.{key}" if section else key
    return f"{where}: {name + ': ' if name else ''}{message[:1].lower()}{message[1:]}"


_SECTIONS: dict[str, type[_Section]] = {
    "": StreamSettings,
    "graph": GraphSection,
    "tasks": TasksSection,
    "split": SplitSection,
}


def _line(text: str, section: str, key: str) -> int | None:
    """The line on which a key of a section stands, or where the section `key` begins."""
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            current = header[1]
            if not section and current == key:
                return number
        elif current == section and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""", line):
            return number
    return None
