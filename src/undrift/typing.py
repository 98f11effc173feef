"""Types that more than one folder speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:  # for readers and the type checker: this file imports nothing
    from torch import Tensor

    from undrift.sparse import Csr

T = TypeVar("T")

SparseRows: TypeAlias = "Csr"
Rows: TypeAlias = "Tensor | Csr"
"""A matrix with a row per node, dense or sparse: both understand the same words."""

Progress = Callable[[str, int, int], None]
"""`progress(phase, done, total)`: called when a phase starts (`done = 0`) and after every step.

One callable serves the progress bar and the clock: the time between two calls belongs to the
phase named in the first of them.
"""


def silent(phase: str, done: int, total: int) -> None:
    """The progress callback that shows nothing."""


def told(items: Sequence[T], phase: str, progress: Progress) -> Iterator[T]:
    """The items one by one, told as they are done."""
    progress(phase, 0, len(items))
    for done, item in enumerate(items, start=1):
        yield item
        progress(phase, done, len(items))


class Once(Protocol):
    """`once(make, *inputs)`: the result of `make()`, which depends on the inputs and no more.

    A search hands its learners an `undrift.sharing.Cache`, so that they do equal work once.
    """

    def __call__(self, make: Callable[[], T], *inputs: Any) -> T:
        """`make()`, or what it gave before for the same inputs."""
        ...


def unshared(make: Callable[[], T], *inputs: Any) -> T:
    """The `Once` without a cache: nothing is shared, nothing is kept."""
    return make()
