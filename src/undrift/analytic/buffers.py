"""Memory of large matrices that is used again while one task after the other is learned."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

_LARGE = 2**22  # numbers, 32 MiB: the system takes such memory back as soon as it is free

_Held = Callable[[], object]  # a weak reference: None when nothing holds the memory any more


@dataclass
class _Buffers:
    """Buffers of this stream of tasks, each with whether anything still holds it."""

    of: list[tuple[np.ndarray, _Held]] = field(default_factory=list)

    def take(self, numbers: int) -> np.ndarray:
        """A buffer that nothing holds; free ones of other sizes are let go."""
        fitting = [buffer for buffer, held in self.of if held() is None and buffer.size == numbers]
        self.of = [(buffer, held) for buffer, held in self.of if held() is not None]
        buffer = fitting.pop() if fitting else torch.empty(numbers, dtype=torch.float64).numpy()
        view = buffer[:]  # the tensor holds this view, so it lives as long as the tensor
        self.of += [(buffer, weakref.ref(view)), *((other, _nobody) for other in fitting)]
        return view


def _nobody() -> None:
    return None


_pool: ContextVar[_Buffers | None] = ContextVar("pool", default=None)


@contextmanager
def used_again() -> Iterator[None]:
    """Inside, `square` gives the memory of a matrix of that size which nothing holds any more.

    A Gram matrix of 6,805 columns has 90,000 pages, and new ones take the system four times as
    long as copying the matrix: about 0.8 of the 13 s of HAM on CoauthorCS. Memory: what was in use
    at once; it is given back at the end.
    """
    token = _pool.set(_Buffers())
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
    return torch.from_numpy(pool.take(numbers)).view(width, width)
