"""Files that others may touch too: locks, what a killed writer left, no link out of a folder."""

import glob
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from undrift.errors import InputError

if sys.platform != "win32":
    import fcntl

_PART = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_DAY = 86_400.0  # seconds: nobody writes that long at one file
_MOST = 1 << 30  # bytes of a file that is read as a whole
_TRIES = 100  # at a file that writers replace again and again
_NEVER = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # follows, or waits
_KINDS = {"-": "a file", "l": "a link", "d": "a folder", "p": "a pipe", "s": "a socket"}


@contextmanager
def system_errors(what: str, way_out: str) -> Iterator[None]:
    """Inside, an error of the system becomes one sentence: what failed, why, and the way out."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} ({error.strerror or error}); {way_out}") from error


def open_own(path: Path, mode: Literal["rb", "r+b"] = "rb") -> IO[bytes]:
    """Open a regular file of a folder, with `r+b` one without a second name; others are refused."""
    alone = mode == "r+b"
    for _ in range(_TRIES):
        seen = check_own(path, alone=alone)  # before it is opened: that alone may move a device
        file = open(path, mode, opener=lambda name, flags: os.open(name, flags | _NEVER))  # noqa: SIM115
        try:
            opened = check_own(path, alone=alone, opened=os.fstat(file.fileno()))
        except BaseException:
            file.close()
            raise
        if os.path.samestat(seen, opened):
            return file
        file.close()  # a writer put a new file there in between: look again
    raise InputError(f"{path} was replaced each time it was opened; try again")


def read_own(path: Path) -> bytes | None:
    """All bytes of a file of a folder; None where there is none."""
    with system_errors(f"cannot read {path}", "check it"):
        try:
            with open_own(path) as file:
                if os.fstat(file.fileno()).st_size > _MOST:
                    raise InputError(f"{path} is larger than 1 GiB; restore it from a copy")
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None


@contextmanager
def name_own(path: Path) -> Iterator[str]:
    """A name for a library that opens files itself: on Linux of the very file that was checked."""
    with open_own(path) as file:
        by_number = f"/proc/self/fd/{file.fileno()}"
        yield by_number if os.path.exists(by_number) else str(path)


def check_own(
    path: Path, *, alone: bool = False, opened: os.stat_result | None = None
) -> os.stat_result:
    """Refuse what is no regular file, and if `alone` one with a second name (a hard link) too."""
    found = path.lstat() if opened is None else opened
    wrong = ""
    if not stat.S_ISREG(found.st_mode):
        wrong = f"{_kind(found.st_mode)}, not a file"
    elif alone and found.st_nlink > 1:
        wrong = "a hard link: it has another name elsewhere"
    if wrong:
        way = "delete it" if path.name.startswith(".") else "put a copy of the file there"
        raise InputError(f"{path} is {wrong}, and is left alone; {way}")
    return found


def check_own_folder(path: Path) -> Path:
    """The folder within a folder; where something else is there, a link for example, an error."""
    if os.path.lexists(path) and not stat.S_ISDIR(mode := path.lstat().st_mode):
        raise InputError(f"{path} is {_kind(mode)}, not a folder; delete it")
    return path


def _kind(mode: int) -> str:
    return _KINDS.get(stat.filemode(mode)[0], "a device")


class BusyError(InputError):
    """Another process holds the lock."""


@contextmanager
def exclusive(path: Path, what: str, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file at `path`, or an error if another process does for `patience` seconds."""
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
    """Delete parts of files that nobody writes: not locked, or without locks a day old."""
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
