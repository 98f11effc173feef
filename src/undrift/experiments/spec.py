"""`RunSpec`: everything that decides what a run computes. Importing it does not import torch."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from undrift.errors import InputError

__all__ = ["RunSpec", "complaint"]


class RunSpec(BaseModel):
    """A run: which stream, which method with which hyperparameters, which seed, graded how.

    Threads and where the result goes are not part of it: they do not decide what is computed.
    `params` holds the hyperparameters that differ from the method's defaults, as plain values
    (none, booleans, numbers, strings, tuples of them). Lists become tuples, so a spec that was
    read from JSON equals the one that was written. Bad values are an `InputError`.

    >>> spec = RunSpec(stream="cs-cl", method="adr", params={"gamma": 0.1})
    >>> spec.id
    '...'
    >>> RunSpec.model_validate_json(spec.model_dump_json()) == spec
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str = "synthetic"
    method: str = "adr"
    seed: int = Field(default=0, ge=0, strict=True)
    protocol: Literal["global", "local"] = "global"
    params: dict[str, Any] = Field(default_factory=dict)
    device: str = "cpu"

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InputError(f"a run cannot be described so: {complaint(error)}") from error

    @field_validator("params")
    @classmethod
    def _plain(cls, params: dict[str, Any]) -> dict[str, Any]:
        for name in ("seed", "device"):
            if name in params:
                raise ValueError(f"{name} is not a parameter of the method, give it beside them")
        return {name: _plain(name, value) for name, value in params.items()}

    @property
    def id(self) -> str:
        """The first 12 hex digits of the SHA-256 of the spec as canonical JSON.

        Keys are sorted and a whole float is written as an integer, so `gamma=1` and `gamma=1.0`
        name the same run.
        """
        fields = {name: _canonical(getattr(self, name)) for name in type(self).model_fields}
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def complaint(error: ValidationError) -> str:
    """The first thing pydantic found wrong, as the end of a sentence."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return f"{where}: {what[:1].lower()}{what[1:]}" if where else what


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_plain(name, part) for part in value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}, give a finite number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(
        f"{name} is a {type(value).__name__}, give none, a boolean, a number, a string or a "
        "tuple of them"
    )


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _canonical(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_canonical(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
