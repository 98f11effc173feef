"""One process at a time: a lock that the system lets go of when its holder ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from undrift.errors import InputError

__all__ = ["alone"]


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
            raise InputError(f"another process is {what} right now; wait until it is done")
        try:
            yield
        finally:
            with suppress(OSError):  # an open file cannot be deleted on Windows
                path.unlink()
    finally:
        os.close(handle)


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
