"""What a killed process left half written: told by a lock from what is being written now."""

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
from undrift.storage.own import open_own

if sys.platform != "win32":
    import fcntl

_PART = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_DAY = 86_400.0  # seconds: nobody writes that long at one file


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
    """A new folder to fill, locked meanwhile and gone afterwards, unless it took another name.

    Folders for the same name that killed processes left are deleted first.
    """
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
    handle = os.open(folder, os.O_RDONLY)
    ours = True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        ours = False
    try:
        yield ours
    finally:
        os.close(handle)


def sweep(folders: Iterable[Path]) -> list[Path]:
    """Delete the parts of files that nobody writes any more from these folders; which they were.

    A part is locked while it is written and the system lets go of a killed process's locks. Where
    files cannot be locked, a part is left over once it is a day old. What cannot be deleted stays.
    """
    gone = []
    for folder in folders:
        with suppress(OSError):
            parts = [path for path in folder.iterdir() if _PART.fullmatch(path.name)]
            gone += [path for path in parts if _taken(path)]
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


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        raise OSError("files are not locked here")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
