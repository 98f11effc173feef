"""Values held to their annotated types: Python itself would take anything."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from pydantic import ValidationError

_WORDS: dict[Any, tuple[str, str]] = {
    bool: ("true or false", "true or false each"),
    int: ("a whole number", "whole numbers"),
    float: ("a finite number", "finite numbers"),
    str: ("a text", "texts"),
    NoneType: ("none", "none each"),
}
_UNITS = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_MISFIT = object()


def checked(name: str, hint: Any, value: Any) -> Any:
    """The value, if it is of the type that `hint` says; else an `InputError` of one sentence.

    A whole number is a number, a list a tuple, one value a tuple of one, an array the list of its
    values. A boolean is no number, and numbers are finite. Other types than plain values and
    classes let everything pass.
    """
    if hasattr(hint, "__metadata__"):  # annotated with a check of the value, as `Positive` is
        kind, check = get_args(hint)
        found = checked(name, kind, value)
        check(**{name: found})
        return found
    plain = value.tolist() if hasattr(value, "tolist") else value
    found = _fitted(hint, plain)
    if found is not _MISFIT:
        return found
    literals = [kind for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal]
    if literals and isinstance(value, str):
        raise unknown_name(name, value, [str(c) for each in literals for c in get_args(each)])
    raise InputError(f"{name} must be {_described(hint)}, not {value!r}")


def check_exists(path: Path) -> None:
    """Refuse the path of a file that is not there."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path")


def check_regular(path: Path) -> None:
    """Refuse what is there and is no file: a pipe would wait for ever, a device never end."""
    try:
        there, file = path.exists(), path.is_file()
    except OSError as error:  # a name that is too long, for example
        reason = error.strerror or error
        raise InputError(f"cannot look at {path} ({reason}); check the path") from error
    if there and not file:
        kind = "a folder" if path.is_dir() else "a pipe, a socket or a device"
        raise InputError(f"{path} is {kind}, not a file; give the path of a file")


def check_fields(thing: Any) -> None:
    """Hold the fields of a dataclass, frozen or not, to their types."""
    kind: type = type(thing)
    for name, hint in field_types(kind).items():
        object.__setattr__(thing, name, checked(name, hint, getattr(thing, name)))


@lru_cache(maxsize=256)
def field_types(kind: type) -> dict[str, Any]:
    """The annotated type of each field that a dataclass takes."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        problem = f"the types of {kind.__name__}'s fields cannot be read ({error})"
        way = "import them where the class is defined, not only for type checkers"
        raise InputError(f"{problem}; {way}") from error
    return {f.name: hints[f.name] for f in fields(kind) if f.init}


def _fitted(hint: Any, value: Any) -> Any:
    """The value as this type has it, or `_MISFIT`."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        found = (_fitted(member, value) for member in get_args(hint))
        return next((fit for fit in found if fit is not _MISFIT), _MISFIT)
    if origin in (tuple, Sequence):
        several = isinstance(value, Sequence) and not isinstance(value, str)
        parts, kinds = value if several else (value,), get_args(hint)
        kinds = kinds[:1] * len(parts) if _of_any_length(hint) else kinds
        fitted = [_fitted(kind, part) for kind, part in zip(kinds, parts, strict=False)]
        if len(kinds) != len(parts) or any(part is _MISFIT for part in fitted):
            return _MISFIT
        return value if isinstance(value, tuple) else tuple(fitted)  # a tuple stays the one it is
    if origin is Literal:
        fits = any(value == choice and type(value) is type(choice) for choice in get_args(hint))
    elif hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = number and abs(value) <= sys.float_info.max
    elif hint is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        kind = NoneType if hint is None else hint
        fits = kind is Any or not isinstance(kind, type) or isinstance(value, kind)
    return value if fits else _MISFIT


def _of_any_length(hint: Any) -> bool:
    return get_origin(hint) is Sequence or Ellipsis in get_args(hint)


def _described(hint: Any, place: int = 0) -> str:
    arguments, origin = get_args(hint), get_origin(hint)
    if hasattr(hint, "__metadata__"):
        return _described(arguments[0], place)
    if origin in (Union, UnionType):
        return " or ".join(_described(member, place) for member in arguments)
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin in (tuple, Sequence):
        if _of_any_length(hint):
            return _described(arguments[0], 1)
        return f"{len(arguments)} values ({', '.join(map(_described, arguments))})"
    kind = NoneType if hint is None else hint
    return _WORDS[kind][place] if kind in _WORDS else f"a {getattr(kind, '__name__', kind)}"


def validation_message(error: ValidationError, depth: int | None = None) -> str:
    """The first thing pydantic found wrong, as the end of a sentence; so many parts of its path."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"][:depth])
    what = first["msg"].removeprefix("Value error, ")
    return f"{where}: {what[:1].lower()}{what[1:]}" if where else what


def bytes_of(budget: float | str | None) -> float | None:
    """A number of bytes, or a text such as `4MB`.

    >>> bytes_of("4MB"), bytes_of("1.5 kB"), bytes_of(2000)
    (4000000.0, 1500.0, 2000.0)
    """
    if budget is None:
        return None
    text = str(budget).strip()
    found = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([KMG]?B?)", text, re.IGNORECASE)
    value = float(found[1]) * _UNITS.get(found[2].upper(), 0.0) if found else 0.0
    if isinstance(budget, bool) or not 0 < value < math.inf:
        raise InputError(
            f"budget must be a number of bytes above 0 or a text such as '4MB', not {budget!r}"
        )
    return value
