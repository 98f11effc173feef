"""Faults on purpose: the file layer fails, or the process dies, at any one call of a step.

`crash_everywhere` runs a step once to count its calls to the file system, then once for every
call and kind of fault, in a process of its own on a copy of its folder, and lets a check look at
what is left. `kill_at_random` kills it at random instants. Unix only: a process is forked so that
its death is a real one.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple
from unittest import mock

from tests.harness.fuzz.guard import copied
from tests.harness.scenarios import Scenario, Step
from undrift.errors import InputError

Kind = Literal["kill", "lost rename", "no space", "io error", "short write", "full", "read-only"]
_ERRORS: dict[Kind, int] = {
    "no space": errno.ENOSPC,
    "io error": errno.EIO,
    "short write": errno.ENOSPC,
    "full": errno.ENOSPC,
    "read-only": errno.EROFS,
}
KINDS: tuple[Kind, ...] = ("kill", "lost rename", *_ERRORS)
KILLED, REFUSED, BROKEN = 77, 78, 79  # exit codes


@dataclass
class Fault:
    """Trouble at call number `at`, from 1 (0: none); `calls` counts them.

    A disk that is full or read-only stays so; a full one still lets files be deleted and renamed.
    """

    kind: Kind = "kill"
    at: int = 0
    calls: int = 0
    renames: list[tuple[Path, bytes | None]] = field(default_factory=list)

    def call(self, short: Callable[[], object] | None = None, *, takes_room: bool = True) -> None:
        """Count a call; at the chosen one die or fail. `short` does half of a write first."""
        self.calls += 1
        lasting = self.kind in ("full", "read-only") and 0 < self.at <= self.calls
        if (self.calls != self.at and not lasting) or (self.kind == "full" and not takes_room):
            return
        if self.kind == "lost rename":  # names that were never synced are gone with the power
            for target, before in reversed(self.renames):
                os.unlink(target) if before is None else target.write_bytes(before)
        if self.kind in ("kill", "lost rename"):
            os._exit(KILLED)
        if self.kind == "short write" and short is not None:
            short()
        code = _ERRORS[self.kind]
        raise OSError(code, os.strerror(code))


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


@contextmanager
def faulty(fault: Fault) -> Iterator[Fault]:
    """Count the calls that change files, of `os` and of `open`, and fail as the fault says."""
    real = {name: getattr(os, name) for name in ("replace", "fsync", "open")}
    real_open = io.open

    def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if not set("wxa+") & set(mode):
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

    def handled(path: Any, flags: int, *args: Any, **options: Any) -> Any:
        if flags & os.O_CREAT:
            fault.call()
        return real["open"](path, flags, *args, **options)

    def synced(handle: int) -> None:
        fault.call(takes_room=False)
        real["fsync"](handle)
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            fault.renames.clear()

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            fault.call(takes_room=name == "mkdir")
            return plain(*args, **options)

        return call

    ours: dict[str, Any] = {"io.open": opened, "builtins.open": opened, "os.open": handled}
    ours |= {"os.replace": replaced, "os.fsync": synced}
    ours |= {f"os.{name}": counted(name) for name in ("rename", "rmdir", "mkdir", "unlink")}
    with ExitStack() as stack:
        for name, function in ours.items():
            stack.enter_context(mock.patch(name, function))
        yield fault


class Survived(NamedTuple):
    """How many crash points there were, and how many times the step was run with a fault."""

    points: int
    runs: int


def crash_everywhere(
    start: Path,
    step: Step,
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
    shutil.copytree(start, work)
    with faulty(Fault()) as calm:
        step(work)
    shutil.rmtree(work)
    runs = 0
    for kind in kinds:
        for at in range(1, calm.calls + 1, every):
            copied(start, work)
            try:
                check(work, ended(forked(step, work, Fault(kind, at)), work) == 0)
            except Exception as error:
                where = f"{kind} at call {at} of {calm.calls}"
                raise AssertionError(f"after {where}: {error}") from error
            shutil.rmtree(work)
            runs += 1
    return Survived(calm.calls, runs)


def kill_at_random(scenario: Scenario, kills: int, seed: int = 0) -> tuple[int, int]:
    """Kill the step at random instants until it was killed so many times.

    The folder that a kill left is taken up again by the next step, as a person would; after each
    that was done, or a few kills in a row, it is checked and begun anew. How many kills hit a
    running step, and how many steps were begun.
    """
    random = Random(seed)
    work = scenario.start.with_name(f"{scenario.start.name}-killed-{seed}")
    length = 0.0
    for _ in range(2):  # the first loads what the second needs
        copied(scenario.start, work)
        began = time.monotonic()
        ended(forked(scenario.step, work), work)
        length = time.monotonic() - began
    copied(scenario.start, work)
    hit = begun = row = 0
    while hit < kills:
        child = forked(scenario.step, work)
        begun += 1
        time.sleep(random.uniform(0.0, 1.1 * length))
        os.kill(child, signal.SIGKILL)
        code = ended(child, work)
        killed = code == -signal.SIGKILL
        hit += killed
        row += killed
        if not killed or row >= random.randrange(1, 5):
            scenario.check(work, not killed and code == 0)
            copied(scenario.start, work)
            row = 0
    shutil.rmtree(work)
    return hit, begun


def forked(step: Step, folder: Path, fault: Fault | None = None) -> int:
    """The number of a process that does the step; libraries' threads are not in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = 0
    try:
        with nullcontext() if fault is None else faulty(fault):
            step(folder)
    except InputError:
        code = REFUSED
    except BaseException:
        _trace(folder).write_text(traceback.format_exc(), encoding="utf-8")
        code = BROKEN
    os._exit(code)


def ended(child: int, folder: Path) -> int:
    """The exit code of a process, or minus the signal that killed it, once it has ended.

    A step that broke in this folder is an AssertionError with its trace.
    """
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code != BROKEN, _trace(folder).read_text(encoding="utf-8")
    return code


def _trace(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.trace")
