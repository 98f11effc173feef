"""What a `stream.toml` may say, and the sentence for one that says something else."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from undrift.errors import InputError, unknown_name
from undrift.streams.benchmarks import STREAMS


def parse_settings(text: str, where: str) -> Settings:
    """The checked settings in the text of a `stream.toml`; `where` names the file in errors.

    Everything wrong in it is an `InputError` with, where there is one, the line.
    """
    try:
        return Settings.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is not valid TOML: {error}; correct it there") from error
    except RecursionError:
        raise InputError(
            f"{where} is no stream: its values are nested too deeply; give plain lists"
        ) from None
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
        listed = isinstance(periods, list) and all(
            isinstance(p, int | float | date) and not isinstance(p, bool) for p in periods
        )
        if not listed and type(periods) is not int:
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


class Settings(_Section):
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
    def _tasks_once(self) -> Settings:
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
    "": Settings,
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
