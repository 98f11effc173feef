"""What a learner knows, as named tensors and plain values.

`pack` takes a dataclass apart and `unpack` builds it again from its type hints. Nothing is
pickled, so nothing loaded can execute code; a new learner gets saving and loading for free by
keeping what it learned in one frozen dataclass.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from undrift.errors import InputError

__all__ = ["State", "pack", "unpack"]

Plain = None | bool | int | float | str


@dataclass(frozen=True)
class State:
    """Everything a learner needs to go on.

    `method` and `params` rebuild the learner; `tensors` and `values` hold what it learned,
    keyed by dotted field paths such as `ham.layers.0.gram`.
    """

    method: str
    params: dict[str, Any]
    tensors: dict[str, Tensor]
    values: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors: the size of what is kept."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def pack(thing: Any, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and plain values of a dataclass, a tuple, a dict or a leaf, keyed by their path."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    if isinstance(thing, Tensor):
        tensors[prefix] = thing
    elif thing is None or isinstance(thing, bool | int | float | str):
        values[prefix] = thing
    else:
        for key, part in _parts(thing, prefix):
            inner_tensors, inner_values = pack(part, f"{prefix}.{key}" if prefix else key)
            tensors |= inner_tensors
            values |= inner_values
        if isinstance(thing, tuple):
            values[f"{prefix}.#"] = len(thing)
        elif isinstance(thing, dict):
            values[f"{prefix}.#"] = list(thing)
    return tensors, values


def _parts(thing: Any, prefix: str) -> list[tuple[str, Any]]:
    if is_dataclass(thing):
        return [(f.name, getattr(thing, f.name)) for f in fields(thing) if f.init]
    if isinstance(thing, tuple):
        return [(str(i), part) for i, part in enumerate(thing)]
    if isinstance(thing, dict) and all(isinstance(key, str) for key in thing):
        return list(thing.items())
    raise TypeError(f"cannot keep {type(thing).__name__} at {prefix!r} in a state")


def unpack(kind: Any, tensors: dict[str, Tensor], values: dict[str, Any], prefix: str = "") -> Any:
    """The thing of type `kind` that `pack` took apart; a missing part is a damaged state."""
    if kind is Tensor:
        return _get(tensors, prefix)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _unpack_union(arguments, tensors, values, prefix)
    if origin is tuple:
        count = _get(values, f"{prefix}.#")
        inner = [arguments[0]] * count if arguments[-1] is Ellipsis else list(arguments)
        return tuple(unpack(part, tensors, values, f"{prefix}.{i}") for i, part in enumerate(inner))
    if origin is dict:
        keys = _get(values, f"{prefix}.#")
        return {key: unpack(arguments[1], tensors, values, f"{prefix}.{key}") for key in keys}
    if is_dataclass(kind):
        path = f"{prefix}." if prefix else ""
        hints = _hints(kind)
        parts = {
            f.name: unpack(hints[f.name], tensors, values, path + f.name)
            for f in fields(kind)
            if f.init
        }
        return kind(**parts)  # type: ignore[operator]  # a dataclass type is callable
    return _get(values, prefix)


def _unpack_union(
    arguments: tuple[Any, ...], tensors: dict[str, Tensor], values: dict[str, Any], prefix: str
) -> Any:
    if prefix in values:
        return values[prefix]
    if prefix in tensors:
        return tensors[prefix]
    structured = [a for a in arguments if is_dataclass(a) or get_origin(a) in (tuple, dict)]
    for kind in structured:
        names = [f.name for f in fields(kind)] if is_dataclass(kind) else ["#"]
        if any(key.startswith(f"{prefix}.{names[0]}") for key in (*tensors, *values)):
            return unpack(kind, tensors, values, prefix)
    raise InputError(f"the state is damaged: {prefix!r} is missing")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _get(parts: dict[str, Any], key: str) -> Any:
    if key not in parts:
        raise InputError(f"the state is damaged: {key!r} is missing")
    return parts[key]
