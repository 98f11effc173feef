"""One case, watched: what came of it, and whether that is allowed."""

import faulthandler
import json
import os
import re
import resource
import shutil
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

from undrift.errors import InputError

SECONDS = 10.0
BYTES = 2 << 30
LONGEST = 2010
"""Characters of a sentence: what was in a file is shown in part."""

Outcome = Literal["refused", "same", "read", "missed", "found"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)[:-1]


@dataclass(frozen=True)
class Target:
    """A kind of file: how clean ones are made, changed and read.

    `change` says in words what it did. `read` gives something to compare. `plain`, where a format
    has no checksum, reads changed files in a plain second way; what `read` accepts must equal that.
    `weight`: how many of the cases are its own, relative to others. `lenient`: the library that
    reads this format is known to read over damage that the plain reading sees; such cases are
    counted as missed.
    """

    name: str
    make: Callable[[Path], None]
    change: Callable[[Random, Path], str]
    read: Callable[[Path], Any]
    plain: Callable[[Path], Any] | None = None
    weight: float = 1.0
    lenient: bool = False


class Forged:
    """The answer of files that somebody gave a fitting checksum: any, as long as there is one."""


@dataclass(frozen=True)
class Case:
    """What came of a case: refused, the same answer, read as it is, missed, or a finding."""

    target: str
    seed: int
    change: str
    outcome: Outcome
    said: str
    seconds: float


def run_cases(target: Target, first: int, count: int, folder: Path) -> None:
    """Run cases in this process, which is to have no other use: how they went is in `told`.

    Warnings are errors. A finding is an AssertionError. One that takes too long ends the process.
    """
    with suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("torch_geometric.data")  # which writes files of its own when it is loaded
    warnings.simplefilter("error")
    (folder / "clean").mkdir()
    target.make(folder / "clean")
    answer = target.read(copied(folder / "clean", folder / "answer"))
    _limit()
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        (folder / "told").write_text(f"seed {seed}", encoding="utf-8")
        faulthandler.dump_traceback_later(6 * SECONDS, exit=True)  # one that waits takes none
        case = run_case(target, seed, folder / "clean", folder / "case", answer)
        faulthandler.cancel_dump_traceback_later()
        assert case.outcome != "found", case
        counts[case.outcome] += 1
    told = {outcome: counts[outcome] for outcome in OUTCOMES}
    (folder / "told").write_text(json.dumps(told), encoding="utf-8")


def _limit() -> None:
    """Not much more memory from here on; libraries ask for more than they ever fill."""
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    used = int(text.split()[0]) * os.sysconf("SC_PAGE_SIZE")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * BYTES, hard))


def run_case(target: Target, seed: int, clean: Path, place: Path, answer: Any) -> Case:
    """Change a copy of the clean files by this seed and read it; `answer` is that of the clean."""
    given = copied(clean, place / "given", fresh=place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        change = target.change(Random(f"{target.name} {seed}"), given)
    peak = _peak()
    began = time.process_time()  # a machine may be busy, or the process paused
    outcome: Outcome = "found"
    try:
        with only_inside(given) as outside:
            found = target.read(given)
    except InputError as error:
        outcome, said = _sentence(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = "".join(traceback.format_exception(error))
    else:
        outcome, said = _judged(found, answer, target, given)
    seconds, more = time.process_time() - began, _peak() - peak
    strange = outside or [path.name for path in place.iterdir() if path != given]
    for wrong, told in (
        (strange, f"written outside: {strange}"),
        (more > BYTES, f"{more / 1e9:.1f} GB of memory"),
        (seconds > SECONDS, f"{seconds:.0f} s"),
    ):
        outcome, said = ("found", told) if wrong else (outcome, said)
    return Case(target.name, seed, change, outcome, said, seconds)


def copied(clean: Path, place: Path, fresh: Path | None = None) -> Path:
    """A copy of a folder at this place, where nothing stays of before."""
    shutil.rmtree(fresh or place, ignore_errors=True)
    shutil.copytree(clean, place)
    return place


def _peak() -> int:
    """The most memory that this process ever had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _judged(found: Any, answer: Any, target: Target, given: Path) -> tuple[Outcome, str]:
    """What is read must be the answer of clean files, or what a plain reading gives."""
    if isinstance(found, Forged):
        return "read", ""
    if found == answer:
        return "same", ""
    if target.plain is None:
        return "found", f"another answer: {_short(found)} and not {_short(answer)}"
    try:
        wanted = target.plain(given)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"[:300]
        said = f"accepted ({_short(found)}), though a plain reading says {told}"
        return "missed" if target.lenient else "found", said
    if found == wanted:
        return "read", ""
    return "found", f"read as {_short(found)}, but a plain reading gives {_short(wanted)}"


def _sentence(text: str) -> tuple[Outcome, str]:
    """Whether an error is one sentence for people."""
    words = r"Traceback|at 0x[0-9a-f]{6}|\bat::|ATen|\w+Error\b|errors\.pydantic"
    for wrong, why in (
        (not text.strip() or "\n" in text or "\r" in text, "no single line"),
        (len(text) > LONGEST, f"{len(text)} characters"),
        (re.search(words, text), "words of a library"),
        (not text.isprintable(), "signs that a terminal would obey"),
    ):
        if wrong:
            return "found", f"{why}: {text[:500]!r}"
    return "refused", text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:150]} ... {text[-100:]}"


_VERBS = ("mkdir", "rename", "remove", "rmdir", "link", "symlink", "truncate")
_CHANGES = {f"os.{verb}" for verb in _VERBS}
_watching: list[tuple[str, list[str]]] = []
_watch = cache(sys.addaudithook)  # once and for ever: a hook cannot be taken back


@contextmanager
def only_inside(folder: Path) -> Iterator[list[str]]:
    """The paths outside this folder that Python code writes to, or deletes, meanwhile."""
    _watch(_audit)
    found: list[str] = []
    _watching.append((os.path.realpath(folder), found))
    try:
        yield found
    finally:
        _watching.pop()


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _watching:
        return
    paths: tuple[Any, ...] = args[:2] if event in _CHANGES else ()
    if event == "open":
        path, mode, flags = args
        opened = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        if flags & opened if mode is None else set("wxa+") & set(mode):
            paths = (path,)
    folder, found = _watching[-1]
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike):
            real = os.path.realpath(os.fsdecode(path))
            if not (real == folder or real.startswith(folder + os.sep) or real == os.devnull):
                found.append(f"{event} {real}")
