"""One process at a time: a lock that the system lets go of when its holder ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from undrift.errors import InputError

__all__ = ["BusyError", "alone", "waiting_alone"]


class BusyError(InputError):
    """Another process holds the lock."""


@contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file at `path`; where another process holds it, an error says so at once.

    The lock is the system's, not the file: a file left behind by a process that was killed locks
    nothing.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"cannot write to {path.parent} ({error.strerror or error}); choose another folder"
        ) from error
    try:
        if not _take(handle) or not _still_there(handle, path):
            raise BusyError(f"another process is {what} right now; wait until it is done")
        try:
            yield
        finally:
            with suppress(OSError):  # an open file cannot be deleted on Windows
                path.unlink()
    finally:
        os.close(handle)


@contextmanager
def waiting_alone(path: Path, what: str, *, patience: float = 30.0) -> Iterator[None]:
    """`alone`, but wait for another process to be done, for so many seconds."""
    deadline = time.monotonic() + patience
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(alone(path, what))
                break
            except BusyError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.02)
        yield


def _take(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _still_there(handle: int, path: Path) -> bool:
    """Whether the locked file is the one that others will find under this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False
