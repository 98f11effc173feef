"""Memory of large matrices that is used again while one task after the other is learned."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch
from torch import Tensor

_LARGE = 2**22  # numbers, 32 MiB: the system takes such memory back as soon as it is free

_Pool = list[tuple[np.ndarray, Callable[[], object]]]
"""Buffers, each with a weak reference to what holds it: None when nothing does any more."""

_pool: ContextVar[_Pool | None] = ContextVar("pool", default=None)


@contextmanager
def used_again() -> Iterator[None]:
    """Inside, `square` gives the memory of a matrix of that size which nothing holds any more.

    New pages take the system four times as long as copying the matrix: 0.8 of the 13 s of HAM on
    CoauthorCS. Memory: what was in use at once; it is given back at the end.
    """
    token = _pool.set([])
    try:
        yield
    finally:
        _pool.reset(token)


def square(width: int, like: Tensor) -> Tensor:
    """An empty `width x width` matrix in the type and on the device of `like`."""
    pool, numbers = _pool.get(), width * width
    fits = like.device.type == "cpu" and like.dtype == torch.float64 and numbers >= _LARGE
    if pool is None or not fits:
        return like.new_empty(width, width)
    fitting = [buffer for buffer, held in pool if held() is None and buffer.size == numbers]
    buffer = fitting.pop() if fitting else torch.empty(numbers, dtype=torch.float64).numpy()
    # free ones of other sizes are let go
    pool[:] = [
        (other, held)
        for other, held in pool
        if other is not buffer and (held() is not None or other.size == numbers)
    ]
    view = buffer[:]  # the tensor holds this view, so it lives as long as the tensor
    pool.append((buffer, weakref.ref(view)))
    return torch.from_numpy(view).view(width, width)
