"""Work that several learners have in common, done once while they learn side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Cache:
    """Results of work that several learners have in common.

    `cache(make, *inputs)` is `make()`, or what it gave before for the same inputs. `inputs` are
    all that the result depends on. Plain values and settings are compared by value; everything
    else (a task, an encoder, a sum) by identity, because it never changes: learners whose inputs
    are one object get one object back, which is the input of the next. Memory: every result and
    its inputs, until the cache itself goes.

    >>> cache = Cache()
    >>> a, b = (cache(lambda: [1], "one", 2.0) for _ in range(2))
    >>> a is b, Cache()(lambda: [1], "one", 2.0) is a
    (True, False)
    """

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, make: Callable[[], T], *inputs: Any) -> T:
        """`make()`, once for these inputs."""
        key = tuple(_key(part) for part in inputs)
        if key not in self._kept:
            # the inputs stay alive, so no identity is used again
            self._kept[key] = (make(), inputs)
        made: T = self._kept[key][0]
        return made


_cache: ContextVar[Cache | None] = ContextVar("cache", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Inside, `once` does equal work one time only; what it keeps goes at the end."""
    token = _cache.set(Cache())
    try:
        yield
    finally:
        _cache.reset(token)


def is_shared() -> bool:
    """Whether several learners work side by side, inside `sharing`."""
    return _cache.get() is not None


def once(make: Callable[[], T], *inputs: Any) -> T:
    """`make()`, which depends on the inputs and no more; inside `sharing` from the cache."""
    cache = _cache.get()
    return make() if cache is None else cache(make, *inputs)


def drawn_once(make: Callable[[], T], generator: torch.Generator, *inputs: Any) -> T:
    """`once` for a function that draws from `generator`: it is left where `make` leaves it."""

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
