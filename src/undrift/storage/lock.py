"""One writer at a time, and what a killed writer left: the system lets go of a dead one's locks."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from undrift.errors import InputError
from undrift.storage.own import check_own, open_own, system_errors

if sys.platform != "win32":
    import fcntl

_PART = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_DAY = 86_400.0  # seconds: nobody writes that long at one file


class BusyError(InputError):
    """Another process holds the lock."""


@contextmanager
def exclusive(path: Path, what: str, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file at `path`; an error where another process holds it for `patience` seconds.

    A file left behind by a process that was killed locks nothing. A link is not followed.
    """
    from filelock import FileLock, Timeout

    # a name of its own for every holder, else a second one in this process would be let in
    lock = FileLock(path, mode=0o666, poll_interval=0.02, is_singleton=False)
    with system_errors(f"cannot write to {path.parent}", "choose another folder"):
        if not path.parent.is_dir():
            raise FileNotFoundError(2, "there is no such folder")
        with suppress(FileNotFoundError):
            check_own(path, alone=True)
        try:
            lock.acquire(timeout=patience)
        except Timeout:
            raise BusyError(f"another process is {what} right now; wait until it is done") from None
    try:
        yield
    finally:
        with suppress(OSError):  # an open file cannot be deleted on Windows
            path.unlink()
        lock.release()


def claim(part: Path) -> IO[bytes]:
    """A new file to write to, locked for as long as it is open, so that no sweep takes it."""
    while True:
        file = part.open("xb")
        try:
            _lock(file)
        except OSError:
            return file  # no locks on this file system: there a sweep goes by age
        if part.exists():
            return file
        file.close()  # a sweep came between the two


@contextmanager
def claimed_folder(part: Path) -> Iterator[None]:
    """A new folder to fill, gone afterwards unless it was renamed; left over ones go first."""
    name = part.name.rpartition(".")[0].rpartition(".")[0]  # without the random digits
    for left in part.parent.glob(f"{glob.escape(name)}.*.part"):
        if _PART.fullmatch(left.name) and left.is_dir() and not left.is_symlink():
            with suppress(OSError), _folder_lock(left) as ours:
                if ours or time.time() - left.stat().st_mtime > _DAY:
                    shutil.rmtree(left, ignore_errors=True)
    try:
        part.mkdir()
        with _folder_lock(part):
            yield
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _folder_lock(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder; whether it could be had: not all file systems have any."""
    if sys.platform == "win32":
        yield False
        return
    handle, ours = os.open(folder, os.O_RDONLY), False
    try:
        with suppress(OSError):
            _lock(handle)
            ours = True
        yield ours
    finally:
        os.close(handle)


def sweep(folders: Iterable[Path]) -> list[Path]:
    """Delete the parts of files that nobody writes any more from these folders; which they were.

    A part is locked while it is written. Where files cannot be locked, its age decides: a day.
    """
    gone: list[Path] = []
    for folder in folders:
        with suppress(OSError):
            parts = [path for path in folder.iterdir() if _PART.fullmatch(path.name)]
            gone += filter(_taken, parts)
    return gone


def _taken(part: Path) -> bool:
    """Delete a part unless it is being written, or is no file; whether it is gone."""
    with suppress(OSError, InputError), open_own(part, "r+b") as file:
        try:
            _lock(file)
        except BlockingIOError:
            return False
        except OSError:
            if time.time() - part.stat().st_mtime < _DAY:
                return False
        part.unlink()
        return True
    return False


def _lock(file: int | IO[bytes]) -> None:
    if sys.platform == "win32":
        raise OSError("files are not locked here")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
