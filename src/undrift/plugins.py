"""Registries: a thing by its name, ours or one that another installed package brings."""

import ast
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from undrift.errors import InputError, unknown_name

T = TypeVar("T")

IN_A_CLONE: dict[str, tuple[str, ...]] = {
    "undrift.commands": ("leakage", "results"),
    "undrift.engines": ("dask",),
    "undrift.figures": ("accuracy-cost", "plasticity", "drift", "surface", "matrices", "imbalance"),
    "undrift.forms": ("dpcr", "ewc", "joint", "lwf", "mas", "twp"),
    "undrift.merging": ("average", "fisher", "floored-fisher", "magmax", "regmean", "ties"),
    "undrift.methods": ("al-gnn", "ugcn"),
    "undrift.stream_options": ("thin", "whole"),
    "undrift.trackers": ("mlflow", "tensorboard"),
    "undrift.streams": ("corafull-cl-stand-in", "arxiv-cl-stand-in", "reddit-cl-stand-in"),
    "undrift.plans": ("paper",),
}
"""Names by group that `paper` and `extras` of the repository bring; they are in no wheel."""


@dataclass(frozen=True)
class Registry:
    """Everything of one kind that can be named; nothing is imported before it is loaded.

    A name is our own (`own`: name to `module:attribute`, or to the thing itself), or an entry
    point of `group` in an installed distribution, or spelled out as `module:attribute`.
    """

    what: str
    group: str
    own: Mapping[str, Any]

    def names(self) -> tuple[str, ...]:
        """Every name: ours in their order, then the others in alphabetical order."""
        return (*self.own, *(name for name in sorted(_outside(self.group)) if name not in self.own))

    def __contains__(self, name: str) -> bool:
        return name in self.own or name in _outside(self.group)

    def origin(self, name: str) -> str:
        """The distribution that brings the thing; `undrift` for our own."""
        entry = None if name in self.own else _outside(self.group).get(name)
        return "undrift" if entry is None else _distribution(entry)

    def where(self, name: str) -> str:
        """`module:attribute` of a name that is in the list."""
        return self.own[name] if name in self.own else _outside(self.group)[name].value

    def load(self, name: str) -> Any:
        """The thing behind a name; an unknown name prints the list, a broken one says why."""
        what, entry = f"{self.what} {name!r}", _outside(self.group).get(name)
        if entry is not None:
            package = _distribution(entry)
            if name in self.own:
                problem = f"{what} is ours, and {package} brings another of that name"
                raise InputError(f"{problem}; uninstall it, or let it take another name")
            way_out = f"mend or uninstall {package}"
            return _imported(entry.value, f"{what} of the package {package}", way_out)
        if name in self.own:
            mine = self.own[name]
            return _imported(mine, what, "install undrift again") if isinstance(mine, str) else mine
        if ":" not in name:
            raise self.unknown(name, self.names())
        module, path = name.partition(":")[0], _READ.get()
        if path is not None and module not in sys.modules:
            problem = f"{path} names {name!r}, and a file imports nothing"
            raise InputError(f"{problem}; import {module} first, if you trust it")
        return _imported(name, what, "")

    def in_a_clone(self, name: str) -> bool:
        """Whether the repository brings this name, and is not installed from a clone."""
        return name in IN_A_CLONE.get(self.group, ()) and name not in self

    def unknown(self, name: str, known: Iterable[str]) -> InputError:
        """The error for a name that is none of those known."""
        if not self.in_a_clone(name):
            return unknown_name(self.what, name, known)
        return InputError(
            f"the {self.what} {name!r} comes with a clone of the repository, not with the "
            "package alone; clone it and run make install there"
        )

    def summary(self, name: str) -> str:
        """The docstring of the function behind a name, without its parameters; read, not run."""
        try:
            _, node = _definition(self.where(name))
        except (ImportError, OSError, SyntaxError, LookupError):
            return ""
        return re.split(r"\n(?=:param |Parameters\n)", ast.get_docstring(node) or "")[0].strip()

    def usable(self, check: Callable[[str, Any], T]) -> Iterator[tuple[str, T]]:
        """Every name with what `check` makes of it, ours first, without what cannot be used."""
        yield from ((name, check(name, thing)) for name, thing in self.own.items())
        for name in self.names()[len(self.own) :]:
            about = f"{self.group} {name} {self.where(name)}"
            if about in _NOTED:
                continue
            try:
                yield name, check(name, self.load(name))
            except InputError as error:
                note_once(about, f"{error}; until then it is left out")

    def is_ours(self, name: str) -> bool:
        """Whether the repository brings this name, so that it need not be checked."""
        return name in self.own or name in IN_A_CLONE.get(self.group, ())

    def facts(self, name: str, wanted: Collection[str]) -> dict[str, Any]:
        """Constants of the class behind a name, those it has; of our own without importing it."""
        if self.is_ours(name):
            written = _written(self.where(name))
            return {fact: written[fact] for fact in wanted if fact in written}
        found = self.load(name)
        return {fact: getattr(found, fact) for fact in wanted if hasattr(found, fact)}


class Lookup(Mapping[str, T]):
    """Things by name, looked for whenever one is asked for: packages come and go."""

    def __init__(self, found: Callable[[], Iterable[tuple[str, T]]]) -> None:
        self._found = found

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._found())

    def __len__(self) -> int:
        return sum(1 for _ in self._found())

    def __getitem__(self, name: str) -> T:
        for known, thing in self._found():
            if known == name:
                return thing
        raise KeyError(name)


_READ: ContextVar[object] = ContextVar("_READ", default=None)  # the file that is being read


@contextmanager
def importing_nothing(path: object) -> Iterator[None]:
    """While what a file says is made good: a `module:attribute` must be imported already."""
    token = _READ.set(path)
    try:
        yield
    finally:
        _READ.reset(token)


_NOTED: set[str] = set()


def note_once(about: str, sentence: str) -> None:
    """Warn through the logger `undrift`, once per process; unless set up otherwise, to stderr."""
    if about not in _NOTED:
        _NOTED.add(about)
        logging.getLogger("undrift").warning("undrift: note: %s", sentence)


def _written(where: str) -> dict[str, Any]:
    """What a class and its bases say in their source, read and not run: that would import torch."""
    lines = (line for each in reversed(_lineage(where)) for line in _definition(each)[1].body)
    return {
        ast.unparse(line.target): line.value.value
        for line in lines
        if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Constant)
    }


@lru_cache(maxsize=64)
def _lineage(where: str) -> list[str]:
    """A class and its bases as Python asks them: one that several of them have comes after all."""
    module, definition = _definition(where)
    here = where.partition(":")[0]
    places = {n.name: f"{here}:{n.name}" for n in module.body if isinstance(n, ast.ClassDef)}
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("undrift."):
            places |= {alias.name: f"{node.module}:{alias.name}" for alias in node.names}
    bases = (ast.unparse(base).partition("[")[0] for base in getattr(definition, "bases", ()))
    every = [where, *(each for b in bases if b in places for each in _lineage(places[b]))]
    return [each for i, each in enumerate(every) if each not in every[i + 1 :]]


@lru_cache(maxsize=64)
def _definition(where: str) -> tuple[ast.Module, ast.ClassDef | ast.FunctionDef]:
    """The class or the function at a `module:name`, as it is written, and the module around it."""
    module, _, name = where.partition(":")
    found = find_spec(module)
    if found is None or found.origin is None:
        raise LookupError(where)
    tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return tree, node
    raise LookupError(where)


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


@lru_cache(maxsize=16)
def _outside(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}


def _imported(where: str, what: str, way_out: str) -> Any:
    """The thing at `module:attribute`; without a `way_out` it was spelled out by a user."""
    here, package = str(Path.cwd()), where.partition(":")[0].partition(".")[0]
    try:
        try:
            return resolve_name(where)
        except ModuleNotFoundError as error:
            if way_out or here in sys.path or error.name != package:
                raise
            sys.path.append(here)  # last: no file in it hides an installed package
            return resolve_name(where)
    except (Exception, SystemExit) as error:  # another package's code may fail in any way
        reason = " ".join(str(error).split()) or type(error).__name__
        spelled = f"name an attribute of an installed module, or of a file in {here}"
        problem = f"{what} cannot be loaded from {where!r} ({reason})"
        raise InputError(f"{problem}; {way_out or spelled}") from error
