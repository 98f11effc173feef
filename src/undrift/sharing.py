"""Work that several learners have in common, done once while they learn side by side."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch

T = TypeVar("T")

_kept: ContextVar[dict[Any, tuple[Any, Any]] | None] = ContextVar("kept", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Inside, `once` does equal work one time only; what it keeps goes at the end."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def is_shared() -> bool:
    """Whether several learners work side by side, inside `sharing`."""
    return _kept.get() is not None


def once(make: Callable[[], T], *inputs: Any) -> T:
    """`make()`, which depends on the inputs alone; inside `sharing`, once for equal inputs.

    Plain values are compared by value, tuples and frozen dataclasses by their parts. Everything
    else, such as a tensor, is compared by identity, because it never changes.
    """
    kept = _kept.get()
    if kept is None:
        return make()
    key = tuple(_key(part) for part in inputs)
    if key not in kept:
        kept[key] = (make(), inputs)  # the inputs stay alive, so no identity is used again
    made: T = kept[key][0]
    return made


def drawn_once(make: Callable[[], T], generator: torch.Generator, *inputs: Any) -> T:
    """`once` for a function that draws from `generator`: it is left where `make` leaves it."""
    before = generator.get_state().numpy().tobytes()
    result, after = once(lambda: (make(), generator.get_state()), *inputs, before)
    generator.set_state(after)
    return result


def _key(part: Any) -> Any:
    if part is None or isinstance(part, bool | int | float | str | bytes):
        return type(part).__name__, part
    if isinstance(part, tuple):
        return tuple(_key(inner) for inner in part)
    if is_dataclass(part) and not isinstance(part, type) and type(part).__hash__ is not None:
        return type(part).__name__, *(_key(getattr(part, f.name)) for f in fields(part))
    return id(part)
