"""Types that more than one folder speaks, and what a package shows of itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:  # for readers and the type checker: this file imports nothing
    from torch import Tensor

    from undrift.sparse import Csr

T = TypeVar("T")

SparseRows: TypeAlias = "Csr"
Rows: TypeAlias = "Tensor | Csr"
"""A matrix with a row per node, dense or sparse: both understand the same words."""

Progress = Callable[[str, int, int], None]
"""`progress(phase, done, total)`: called when a phase starts (`done = 0`) and after every step."""


def silent(phase: str, done: int, total: int) -> None:
    """The progress callback that shows nothing."""


def with_progress(items: Sequence[T], phase: str, progress: Progress) -> Iterator[T]:
    """The items one by one; `progress` is called as each is done."""
    progress(phase, 0, len(items))
    for done, item in enumerate(items, start=1):
        yield item
        progress(phase, done, len(items))


def public_names(package: str) -> Callable[[], list[str]]:
    """A package's `__dir__`: what `undrift.<TAB>` shows is what `__all__` lists."""
    return lambda: sorted(sys.modules[package].__all__)


def imported_late(
    package: str, where: Mapping[str, str], parts: Collection[str] = ()
) -> Callable[[str], Any]:
    """A package's `__getattr__`: what it names is imported when first used.

    A name comes from its module of `where`; `parts` are modules of the package themselves.
    """

    def look_up(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if name not in where:
            others = [f"{package}.{part}" for part in parts if name[0].isupper()]
            there = [m for m in others if name in getattr(import_module(m), "__all__", ())]
            hint = f"; it is {there[0]}.{name}" if there else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return look_up
