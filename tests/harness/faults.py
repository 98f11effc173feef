"""Faults on purpose: the file layer fails, or the process dies, at any one call of a step.

`crash_everywhere` runs a step once to count its calls to the file system, then once for every
call and kind of fault, in a process of its own on a copy of its folder, and lets a check look at
what is left. Unix only: a process is forked so that its death is a real one.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from undrift.errors import InputError

Kind = Literal[
    "kill", "lost rename", "no space", "io error", "short write", "full", "read-only", "slow"
]
KINDS: tuple[Kind, ...] = (
    *("kill", "lost rename", "no space", "io error", "short write", "full", "read-only"),
)
_ERRORS = {
    "no space": errno.ENOSPC,
    "io error": errno.EIO,
    "short write": errno.ENOSPC,
    "full": errno.ENOSPC,
    "read-only": errno.EROFS,
}
_LASTING = ("full", "read-only")
_PAUSE = 0.02  # seconds: what every call takes on a slow disk
_KILLED, _REFUSED, _BROKEN = 77, 78, 79
_WRITES = set("wxa+")


@dataclass
class Fault:
    """Trouble at call number `at`, from 1 (0: none); `calls` counts them.

    A disk that is full or read-only stays so; a full one still lets files be deleted and renamed.
    A slow one is slow at every call.
    """

    kind: Kind = "kill"
    at: int = 0
    calls: int = 0

    def __post_init__(self) -> None:
        self.renames: list[tuple[Path, bytes | None]] = []

    def call(self, short: Callable[[], object] | None = None, *, takes_room: bool = True) -> None:
        """Count a call; at the chosen one die or fail. `short` does half of a write first."""
        self.calls += 1
        if self.kind == "slow":
            time.sleep(_PAUSE)
            return
        lasting = self.kind in _LASTING and 0 < self.at <= self.calls
        if self.calls != self.at and not lasting:
            return
        if self.kind == "full" and not takes_room:
            return
        if self.kind in ("kill", "lost rename"):
            if self.kind == "lost rename":
                self._undo()
            os._exit(_KILLED)
        if self.kind == "short write" and short is not None:
            short()
        code = _ERRORS[self.kind]
        raise OSError(code, os.strerror(code))

    def _undo(self) -> None:
        """Names that were never synced are gone with the power."""
        for target, before in reversed(self.renames):
            if before is None:
                os.unlink(target)
            else:
                target.write_bytes(before)


class _File:
    """A file whose writes are counted."""

    def __init__(self, file: Any, fault: Fault) -> None:
        self._file, self._fault = file, fault

    def write(self, data: Any) -> Any:
        self._fault.call(lambda: self._file.write(data[: len(data) // 2]))
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        self._file.__enter__()
        return self

    def __exit__(self, *raised: object) -> Any:
        return self._file.__exit__(*raised)

    def __iter__(self) -> Any:
        return iter(self._file)


@contextmanager
def faulty(fault: Fault) -> Iterator[Fault]:
    """Count the calls that change files, of `os` and of `open`, and fail as the fault says."""
    names = ("replace", "rename", "fsync", "mkdir", "unlink", "rmdir", "open")
    real = {name: getattr(os, name) for name in names}
    real_open = io.open

    def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if not _WRITES & set(mode):
            return real_open(file, mode, *args, **options)
        if not isinstance(file, int):
            fault.call()
        return _File(real_open(file, mode, *args, **options), fault)

    def replaced(source: Any, target: Any, **options: Any) -> None:
        fault.call(takes_room=False)
        place = Path(target)
        before = place.read_bytes() if place.is_file() else None
        real["replace"](source, target, **options)
        if fault.kind == "lost rename" and place.is_file():
            fault.renames.append((place, before))

    def handled(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            fault.call()
        handle: int = real["open"](path, flags, *args, **options)
        return handle

    def synced(handle: int) -> None:
        fault.call(takes_room=False)
        real["fsync"](handle)
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            fault.renames.clear()

    def counted(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            fault.call(takes_room=name == "mkdir")
            return real[name](*args, **options)

        return call

    with (
        mock.patch("io.open", opened),
        mock.patch("builtins.open", opened),
        mock.patch("os.open", handled),
        mock.patch("os.replace", replaced),
        mock.patch("os.rename", counted("rename")),
        mock.patch("os.rmdir", counted("rmdir")),
        mock.patch("os.fsync", synced),
        mock.patch("os.mkdir", counted("mkdir")),
        mock.patch("os.unlink", counted("unlink")),
    ):
        yield fault


@dataclass(frozen=True)
class Survived:
    """How many crash points there were, and how many times the step was run with a fault."""

    points: int
    runs: int


def crash_everywhere(
    start: Path,
    step: Callable[[Path], object],
    check: Callable[[Path, bool], None],
    *,
    kinds: tuple[Kind, ...] = KINDS,
    every: int = 1,
) -> Survived:
    """Run `step(folder)` on copies of the folder `start`, with every fault at every call.

    `check(folder, done)` is called after each; `done` says that the step ended well all the same.
    A step may refuse with an `InputError`; any other error is an AssertionError with its trace.
    `every` takes only each so-manieth call.
    """
    work = start.with_name(f"{start.name}-faulty")
    points = _calls(start, work, step)
    runs = 0
    for kind in kinds:
        for at in range(1, points + 1, every):
            shutil.copytree(start, work)
            code, trace = _run(work, step, Fault(kind, at))
            where = f"{kind} at call {at} of {points}"
            assert code != _BROKEN, f"{where}: {trace}"
            try:
                check(work, code == 0)
            except Exception as error:
                raise AssertionError(f"after {where}: {error}") from error
            shutil.rmtree(work)
            runs += 1
    return Survived(points, runs)


def _calls(start: Path, work: Path, step: Callable[[Path], object]) -> int:
    shutil.copytree(start, work)
    with faulty(Fault()) as counted:
        step(work)
    shutil.rmtree(work)
    return counted.calls


def forked() -> int:
    """`os.fork`, though libraries may have threads: the child uses none of theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _run(folder: Path, step: Callable[[Path], object], fault: Fault) -> tuple[int, str]:
    """The step in a process of its own: its exit code, and its trace where it broke."""
    reading, writing = os.pipe()
    child = forked()
    if child == 0:
        os.close(reading)
        code = 0
        try:
            with faulty(fault):
                step(folder)
        except InputError:
            code = _REFUSED
        except BaseException:
            os.write(writing, traceback.format_exc()[-60_000:].encode())
            code = _BROKEN
        os._exit(code)
    os.close(writing)
    with open(reading, "rb") as pipe:
        trace = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), trace
