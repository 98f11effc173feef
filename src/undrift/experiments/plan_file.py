"""A plan from a TOML file: streams x methods x grids x seeds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from undrift.errors import InputError, unknown_name
from undrift.experiments.plan import Plan, PlanRow
from undrift.experiments.search import check_grid, settings_of
from undrift.learners.registry import known_method, method_class, recorded_name
from undrift.streams.benchmarks import stream_info
from undrift.streams.file import is_stream_file, read_stream_file

__all__ = ["read_plan"]

_KEYS = ("name", "title", "streams", "methods", "seeds", "protocol", "search", "params", "grid")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def read_plan(path: str | Path) -> Plan:
    """Read a plan such as

        name = "mine"                      # optional: the file's name
        streams = ["cs-cl", "papers/stream.toml"]
        methods = ["bare", "adr"]
        seeds = [0, 1, 2]                  # optional: 0 to 4
        protocol = "global"                # optional
        search = true                      # optional: choose from each grid on validation

        [params.adr]                       # optional: settings other than the defaults
        epochs = 100

        [grid.adr]                         # optional: a method's own grid where search = true
        gamma = [0.1, 1.0]

    Without `search`, every setting of a grid is a row of its own. Whatever is wrong is an
    `InputError` that says the line, the name and the nearest valid names.
    """
    file = Path(path)
    reader = _Reader(file, _text(file))
    given = reader.parse()
    for key in given:
        if key not in _KEYS:
            raise reader.wrong(key, unknown_name("key", key, _KEYS))
    streams = reader.names(given, "streams")
    methods = reader.names(given, "methods")
    for name in streams:
        reader.check(name, partial(_check_stream, name, file.parent))
    for name in methods:
        reader.check(name, partial(known_method, name))
    for part in ("params", "grid"):
        reader.check_table(given, part, methods)
    rows = tuple(row for method in methods for row in _rows(method, given, reader))
    name = str(given.get("name", file.stem))
    if not _NAME.fullmatch(name):
        raise reader.wrong("name", InputError(f"{name!r} cannot be the name of a file"))
    return Plan(
        name=name,
        title=str(given.get("title", name)),
        rows=rows,
        streams=tuple(_located(name, file.parent) for name in streams),
        seeds=reader.seeds(given),
        protocol=reader.choice(given, "protocol", ("global", "local")),
    )


def _rows(method: str, given: Mapping[str, Any], reader: _Reader) -> list[PlanRow]:
    params = {
        name: _frozen(value) for name, value in given.get("params", {}).get(method, {}).items()
    }
    own = given.get("grid", {}).get(method)
    search = given.get("search", False)
    if not isinstance(search, bool):
        raise reader.wrong("search", InputError("search must be true or false"))
    listed = method_class(method).grid if own is None and search else own or {}
    grid = {
        name: tuple(_frozen(value) for value in _listed(values)) for name, values in listed.items()
    }
    for name, values in grid.items():
        if not values:
            raise reader.wrong(
                name, InputError(f"the grid of {name} has no value; give at least one")
            )
    tables = dict.fromkeys(params, f"[params.{method}]")
    tables |= dict.fromkeys(grid, f"[grid.{method}]")
    reader.check_in(tables, lambda: check_grid(method, params, grid))
    if search or not grid:
        return [PlanRow(method, recorded_name(method), params, grid if search else {})]
    return [
        PlanRow(f"{method} {_written(setting)}", recorded_name(method), {**params, **setting})
        for setting in settings_of(grid)
    ]


class _Reader:
    """The text of a plan file, to say in which line something is wrong."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()

    def parse(self) -> dict[str, Any]:
        try:
            return tomllib.loads("\n".join(self.lines))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{self.path} is not TOML: {error}") from error

    def wrong(self, word: str, error: Exception, after: str = "") -> InputError:
        """The error with the line in which `word` stands, after the line that begins so."""
        start = next((k for k, line in enumerate(self.lines) if after and after in line), 0)
        pattern = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        found = [k for k, line in enumerate(self.lines) if k >= start and pattern.search(line)]
        where = f"{self.path}, line {found[0] + 1}" if found else str(self.path)
        return InputError(f"{where}: {error}")

    def check(self, word: str, test: Callable[[], object]) -> None:
        try:
            test()
        except InputError as error:
            raise self.wrong(word, error) from error

    def check_in(self, tables: Mapping[str, str], test: Callable[[], None]) -> None:
        """Blame the first parameter that the error names, in the table that sets it."""
        try:
            test()
        except InputError as error:
            places = {name: re.search(rf"\b{re.escape(name)}\b", str(error)) for name in tables}
            found = {name: place.start() for name, place in places.items() if place}
            word = min(found, key=lambda name: found[name]) if found else "methods"
            raise self.wrong(word, error, tables.get(word, "")) from error

    def check_table(self, given: Mapping[str, Any], part: str, methods: Sequence[str]) -> None:
        table = given.get(part, {})
        if not isinstance(table, dict) or not all(isinstance(v, dict) for v in table.values()):
            raise self.wrong(part, InputError(f"{part} must be tables such as [{part}.adr]"))
        for name in table:
            self.check(f"{part}.{name}", partial(known_method, name))
            if name not in methods:
                raise self.wrong(
                    f"{part}.{name}",
                    InputError(f"[{part}.{name}] is given but methods has no {name!r}; add it"),
                )

    def names(self, given: Mapping[str, Any], key: str) -> list[str]:
        value = given.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
            raise self.wrong(
                key, InputError(f"{key} must be a list of names, as in {key} = [{_EXAMPLE[key]}]")
            )
        if len(set(value)) < len(value):
            raise self.wrong(key, InputError(f"{key} names something twice; name each once"))
        return value

    def seeds(self, given: Mapping[str, Any]) -> tuple[int, ...]:
        value = given.get("seeds", [0, 1, 2, 3, 4])
        whole = isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)
        if not whole or not value or len(set(value)) < len(value):
            raise self.wrong(
                "seeds",
                InputError("seeds must be different whole numbers of at least 0, as in [0, 1, 2]"),
            )
        return tuple(value)

    def choice(self, given: Mapping[str, Any], key: str, choices: tuple[str, ...]) -> Any:
        value = given.get(key, choices[0])
        if value not in choices:
            raise self.wrong(key, unknown_name(key, str(value), choices))
        return value


_EXAMPLE = {"streams": '"cs-cl", "photo-cl"', "methods": '"adr", "acil"'}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(f"cannot read the plan {path} ({why}); give a TOML file") from error


def _check_stream(name: str, folder: Path) -> None:
    if is_stream_file(name):
        read_stream_file(_located(name, folder))
    else:
        stream_info(name)


def _located(name: str, folder: Path) -> str:
    """A stream file is meant relative to the plan that names it."""
    return str(folder / name) if is_stream_file(name) else name


def _listed(values: Any) -> list[Any]:
    return (
        values
        if isinstance(values, list)
        else list(values)
        if isinstance(values, tuple)
        else [values]
    )


def _frozen(value: Any) -> Any:
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def _written(setting: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in setting.items())
