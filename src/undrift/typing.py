"""Types that more than one folder speaks, and what a package shows of itself."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:  # for readers and the type checker: this file imports nothing
    from torch import Tensor

    from undrift.sparse import Csr

T = TypeVar("T")
_EXPORTED = re.compile(r"^ +from ([\w.]+) import (\w+) as \2$", re.MULTILINE)

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


def imported_late(package: str) -> tuple[list[str], Callable[[], list[str]], Callable[[str], Any]]:
    """A package's `__all__`, `__dir__` and `__getattr__`: a name is imported when first used.

    The names are those that its file gives the type checker, as `from module import name as name`.
    Without any they are those of the package's modules. Modules are found by their names in any
    case.
    """
    found = list(iter_modules(sys.modules[package].__path__))
    modules, packages = [each.name for each in found], [each.name for each in found if each.ispkg]
    source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
    names = {name: module for module, name in _EXPORTED.findall(source)}

    def look_up(name: str) -> Any:
        if name in names:
            return getattr(import_module(names[name]), name)
        if name in modules:
            return import_module(f"{package}.{name}")
        inner = [f"{package}.{part}" for part in packages if name[0].isupper()]
        there = [part for part in inner if name in getattr(import_module(part), "__all__", ())]
        hint = f"; it is {there[0]}.{name}" if there else ""
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

    return sorted(names or modules), public_names(package), look_up
