"""Work that several learners have in common, done once while they learn side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch

__all__ = ["once", "sharing", "trained_once"]

T = TypeVar("T")

_memory: ContextVar[dict[Any, tuple[Any, Any]] | None] = ContextVar("shared_work", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Inside, `once` computes a thing once per set of inputs; what it kept goes with the block.

    A search lets the learners of a grid observe a task inside one such block. Outside of one,
    nothing is shared and nothing is kept.
    """
    token = _memory.set({})
    try:
        yield
    finally:
        _memory.reset(token)


def once(make: Callable[[], T], *inputs: Any) -> T:
    """`make()`, or what it gave before for the same inputs inside the same `sharing` block.

    `inputs` are all that the result depends on. Plain values and settings are compared by
    value; everything else (a task, an encoder, a sum) by identity, because it never changes:
    learners whose inputs are one object get one object back, which is the input of the next.

    >>> with sharing():
    ...     a, b = (once(lambda: [1], "one", 2.0) for _ in range(2))
    >>> a is b, once(lambda: [1], "one", 2.0) is a
    (True, False)
    """
    kept = _memory.get()
    if kept is None:
        return make()
    key = tuple(_key(part) for part in inputs)
    if key not in kept:
        kept[key] = (make(), inputs)  # the inputs stay alive, so no identity is used again
    made: T = kept[key][0]
    return made


def trained_once(make: Callable[[], T], generator: torch.Generator, *inputs: Any) -> T:
    """`once` for a function that draws from `generator`: it is left where `make` leaves it."""
    if _memory.get() is None:
        return make()

    def made() -> tuple[T, torch.Tensor]:
        return make(), generator.get_state()

    before = generator.get_state().numpy().tobytes()
    result, after = once(made, *inputs, before)
    generator.set_state(after)
    return result


def _key(part: Any) -> Any:
    if part is None or isinstance(part, bool | int | float | str | bytes):
        return type(part).__name__, part
    if isinstance(part, tuple):
        return tuple(_key(inner) for inner in part)
    if is_dataclass(part) and not isinstance(part, type) and type(part).__hash__ is not None:
        values = [getattr(part, f.name) for f in fields(part)]
        if all(_is_plain(value) for value in values):
            return type(part).__name__, part
    return id(part)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(inner) for inner in value)
    return value is None or isinstance(value, bool | int | float | str)
