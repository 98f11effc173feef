"""`RunSpec`: everything that decides what a run computes. Importing it does not import torch."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from undrift.checks import validation_message
from undrift.errors import InputError
from undrift.learners.registry import DEFAULT, FIRST_NAMES, class_for, recorded_name
from undrift.streams.arrival import BY_CLASS, parse_arrival, place_of
from undrift.streams.file import is_stream_file, read_stream_file

if TYPE_CHECKING:
    from undrift.learners.parameters import Parameters

_WORDS = {"true": True, "false": False, "none": None, "null": None}


class RunSpec(BaseModel):
    """A run: which stream, which method with which hyperparameters, which seed, graded how.

    `params` holds the hyperparameters that differ from the method's defaults, as plain values
    (none, booleans, numbers, strings, tuples of them); lists become tuples. `stream` is a name,
    or the path of a `stream.toml`: `pinned` adds `stream_sha256`, the hash of it and its data.
    `arrive` says how its nodes arrive (docs/arrivals.md). `open_world` also grades on nodes of
    classes still to come (docs/protocols.md). Bad values are an `InputError`.

    >>> RunSpec(method="adr", params={"gamma": 0.1}, seed=3).params
    {'gamma': 0.1}
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str = "synthetic"
    method: str = DEFAULT
    seed: int = Field(default=0, ge=0, strict=True)
    protocol: Literal["global", "local"] = "global"
    params: dict[str, Any] = Field(default_factory=dict)
    device: str = "cpu"
    stream_sha256: str | None = None
    arrive: str = BY_CLASS
    open_world: bool = Field(default=False, strict=True)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            why = validation_message(error)
            raise InputError(f"a run cannot be described so: {why}") from error

    @field_validator("params")
    @classmethod
    def _plain(cls, params: dict[str, Any], info: pydantic.ValidationInfo) -> dict[str, Any]:
        for name in params.keys() & {"seed", "device"}:
            raise ValueError(f"{name} is not a parameter of the method, give it beside them")
        renamed = FIRST_NAMES.get(info.data.get("method", ""), {})
        for old in renamed.keys() & params.keys():
            if renamed[old] in params:
                raise ValueError(f"{old} and {renamed[old]} are one parameter, give {renamed[old]}")
        return {renamed.get(name, name): _plain(name, value) for name, value in params.items()}

    @field_validator("arrive")
    @classmethod
    def _canonical_arrival(cls, arrive: str) -> str:
        try:
            return str(parse_arrival(arrive))
        except InputError as error:
            raise ValueError(str(error)) from error

    @pydantic.model_validator(mode="after")
    def _parts_agree(self) -> RunSpec:
        if self.protocol == "local" and self.arrive != BY_CLASS:
            why = f"local testing asks task by task, which arrival {self.arrive!r} does not have"
            raise ValueError(f"{why}; use global testing")
        if self.protocol == "local" and self.open_world:
            why = "open-world grading asks on one graph of known and unknown classes"
            raise ValueError(f"{why}, which local testing does not have; use global testing")
        if self.stream_sha256 is not None and not is_stream_file(self.stream):
            raise ValueError(f"stream_sha256 is for stream files, and {self.stream!r} is a name")
        return self

    def pin(self, content: str) -> RunSpec:
        """The spec of a stream file with this content; another than before is an `InputError`."""
        if self.stream_sha256 not in (None, content):
            raise InputError(
                f"the stream file {self.stream} or its data changed since the run was described "
                f"({self.stream_sha256} then, {content} now); describe it again"
            )
        return self.model_copy(update={"stream_sha256": content})

    @pydantic.model_serializer(mode="wrap")
    def _written(self, write: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        later = {"stream_sha256": None, "arrive": BY_CLASS, "open_world": False}  # not in old ids
        return {k: v for k, v in write(self).items() if k not in later or v != later[k]}

    @property
    def place(self) -> str:
        """The stream and how its nodes arrive: the column of a table in which the run stands."""
        return place_of(self.stream, self.arrive)

    @property
    def name(self) -> str:
        """What to call the run: `adr on cs-cl, seed 3`."""
        return f"{self.method} on {self.place}, seed {self.seed}"

    @property
    def id(self) -> str:
        """The first 12 hex digits of the SHA-256 of the spec as canonical JSON: 1 and 1.0 are one.

        The content of a stream file stands in the place of its path.
        """
        fields = _canonical(self.model_dump())
        first = {new: old for old, new in FIRST_NAMES.get(self.method, {}).items()}
        fields["params"] = {first.get(name, name): v for name, v in fields["params"].items()}
        if self.stream_sha256 is not None:
            fields["stream"] = f"sha256:{fields.pop('stream_sha256')}"
        elif is_stream_file(self.stream):
            raise InputError(
                f"a run over the file {self.stream} has no id before its content is known; use "
                "pinned(spec).id"
            )
        return short_hash(fields)


def short_hash(value: Any) -> str:
    """The first 12 hex digits of the SHA-256 of a value as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def pinned(spec: RunSpec) -> RunSpec:
    """The spec with the hash of its stream file, which must be that of before. Reads the data."""
    file = is_stream_file(spec.stream)
    return spec.pin(read_stream_file(spec.stream).content_sha256()) if file else spec


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_plain(name, part) for part in value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}, give a finite number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{name} is a {type(value).__name__}, give a number, text or a tuple of them")


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _canonical(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_canonical(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def command_of(spec: RunSpec) -> str:
    """The command that runs a spec again, quoted for a POSIX shell; without what is the default."""
    words = ["undrift", "run"]
    left_out = {"arrive": BY_CLASS, "protocol": "global", "device": "cpu"}
    for name in ("stream", "arrive", "method", "seed", "protocol", "device"):
        value = str(getattr(spec, name))
        # a value that starts with a dash would be taken for an option
        given = [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]
        words += [] if left_out.get(name) == value else given
    words += ["--open-world"] * spec.open_world
    for name, value in spec.params.items():
        words += ["--set", f"{name}={_text(value)}"]
    return shlex.join(words)


def _text(value: Any) -> str:
    """How `--set` writes a value: its first reading is the value again."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        literal = repr(value)  # in double quotes if possible: the shell's quotes are single ones
        if literal[0] == "'" and '"' not in literal:
            literal = f'"{literal[1:-1]}"'
        return value if value and readings(value) == (value,) else literal
    if isinstance(value, tuple) and value and all(type(part) in (int, float) for part in value):
        return ",".join(map(repr, value)) + ("," if len(value) == 1 else "")
    return repr(value)


def readings(text: str) -> tuple[Any, ...]:
    """What a text can mean, likeliest first: a value (number, true, none, tuple), then itself.

    The method's types decide: `none` is a value for a batch size and a name for a merge.
    """
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()], word
    try:
        value = ast.literal_eval(word)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        names = tuple(part.strip() for part in word.split(","))
        return (names, word) if len(names) > 1 and all(names) else (word,)
    if isinstance(value, list):
        value = tuple(value)
    return (value, word) if isinstance(value, int | float | str | tuple) else (word,)


def parse_settings(settings: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """The readings of each `name=value`; one without `=` or given twice is an `InputError`."""
    parsed: dict[str, tuple[Any, ...]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise InputError(
                f"--set takes name=value, for example --set gamma=0.1, not {setting!r}"
            )
        if name in ("seed", "device"):
            raise InputError(f"--set {setting} is an option of its own; write --{name} {text}")
        if name in parsed:
            raise InputError(f"--set names {name!r} twice; give it one value")
        parsed[name] = readings(text)
    return parsed


def choose_readings(
    method: str | type[Parameters], texts: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """For each name the first of its readings of the right type; none is an `InputError`."""
    name = method if isinstance(method, str) else recorded_name(method)
    kind = class_for(name, {name: values[0] for name, values in texts.items()})
    chosen: dict[str, Any] = {}
    for name, values in texts.items():
        for value in values:
            try:
                kind.check_param(name, value)
            except InputError:
                continue
            chosen[name] = value
            break
        else:
            kind.check_param(name, values[0])  # complains
    return chosen
