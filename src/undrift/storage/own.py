"""Files of a folder that may come from elsewhere: none is a link out of it, none keeps us waiting.

Whoever made a folder chose what its names lead to. So a file of it is opened only if it is a
regular file under its own name: no link, pipe, socket, device or folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from undrift.errors import InputError

_MOST = 1 << 30  # bytes of a file that is read as a whole
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
    """Open a file of a folder; anything but a regular file is an `InputError`, none a missing one.

    With `r+b`, a file that has a second name (a hard link) is refused as well. What was looked at
    is what was opened: the two are compared.
    """
    alone = mode == "r+b"
    seen = check_own(path, alone=alone)  # before it is opened: that alone may move a device
    file = open(path, mode, opener=lambda name, flags: os.open(name, flags | _NEVER))  # noqa: SIM115
    try:
        if not os.path.samestat(seen, _checked(path, os.fstat(file.fileno()), alone)):
            raise InputError(f"{path} was replaced while it was opened; try again")
    except BaseException:
        file.close()
        raise
    return file


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


def check_own(path: Path, *, alone: bool = False) -> os.stat_result:
    """Refuse what is no regular file, and if `alone` one with a second name (a hard link) too."""
    return _checked(path, path.lstat(), alone)


def check_own_folder(path: Path) -> Path:
    """The folder within a folder; where something else is there, a link for example, an error."""
    if os.path.lexists(path) and not stat.S_ISDIR(mode := path.lstat().st_mode):
        raise InputError(f"{path} is {_kind(mode)}, not a folder; delete it")
    return path


def _checked(path: Path, found: os.stat_result, alone: bool) -> os.stat_result:
    wrong = ""
    if not stat.S_ISREG(found.st_mode):
        wrong = f"{_kind(found.st_mode)}, not a file"
    elif alone and found.st_nlink > 1:
        wrong = "a hard link: it has another name elsewhere"
    if wrong:
        raise InputError(f"{path} is {wrong}, and is left alone; put a copy there, or delete it")
    return found


def _kind(mode: int) -> str:
    return _KINDS.get(stat.filemode(mode)[0], "a device")
