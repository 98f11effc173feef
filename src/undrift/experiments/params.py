"""Hyperparameters held to their types: a dataclass itself would take anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from undrift.errors import InputError
from undrift.experiments.record import complaint
from undrift.learners.registry import method_class

__all__ = ["check_params", "choose_readings"]


def check_params(method: str, params: Mapping[str, Any]) -> None:
    """Reject a value that is not of its hyperparameter's type.

    A single value may stand for a tuple of one. Names the method does not know are left to
    `make_learner`, which lists those it does.
    """
    hints = _hints(method_class(method))
    for name, value in params.items():
        error = _misfit(hints[name], value) if name in hints else None
        if error is not None:
            raise InputError(
                f"{name}={value!r} does not suit method {method!r}: {complaint(error)}"
            ) from error


def choose_readings(method: str, readings: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """For each name the first of its readings that is of the right type, or simply the first.

    >>> choose_readings("adr", {"merge": (None, "none"), "batch_size": (None, "none")})
    {'merge': 'none', 'batch_size': None}
    """
    hints = _hints(method_class(method))
    chosen: dict[str, Any] = {}
    for name, values in readings.items():
        fitting = [v for v in values if name in hints and _misfit(hints[name], v) is None]
        chosen[name] = [*fitting, *values][0]
    return chosen


def _hints(kind: type) -> dict[str, Any]:
    """The type of each hyperparameter; those of a part such as `backbone` stand beside."""
    flat: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        part = isinstance(hint, type) and is_dataclass(hint)
        flat |= _hints(hint) if part else {name: hint}
    return flat


def _misfit(hint: Any, value: Any) -> ValidationError | None:
    single = get_origin(hint) is tuple and not isinstance(value, tuple)
    adapter: TypeAdapter[Any] = TypeAdapter(hint, config=ConfigDict(strict=True))
    try:
        adapter.validate_python((value,) if single else value)
    except ValidationError as error:
        return error
    return None
