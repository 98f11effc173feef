"""Files of a folder that may come from elsewhere: none is a link out of it, none keeps us waiting.

Whoever made a folder chose what its names lead to. So a file of it is opened only if it is a
regular file under its own name: no link, pipe, socket, device or folder. What was looked at is what
was opened: the two are compared.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Literal

from undrift.errors import InputError

_MOST = 1 << 30  # bytes of a file that is read as a whole
_NEVER = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # follows, or waits
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def open_own(path: Path, mode: Literal["rb", "r+b"] = "rb") -> BufferedReader | BufferedRandom:
    """Open a file of a folder; anything but a regular file is an `InputError`, none a missing one.

    With `r+b`, a file that has a second name (a hard link) is refused as well: what is written to
    it would be written there too.
    """
    alone = mode == "r+b"
    seen = check_own(path, alone=alone)  # before it is opened: that alone may move a device
    file: BufferedReader | BufferedRandom
    file = open(path, "rb", opener=_opened) if not alone else open(path, "r+b", opener=_opened)  # noqa: SIM115
    try:
        found = os.fstat(file.fileno())
        _check(path, found, alone=alone)
        if not os.path.samestat(seen, found):
            raise InputError(f"{path} was replaced while it was opened; try again")
    except BaseException:
        file.close()
        raise
    return file


def read_own(path: Path) -> bytes | None:
    """All bytes of a file of a folder; None where there is none."""
    try:
        with open_own(path) as file:
            if os.fstat(file.fileno()).st_size > _MOST:
                raise InputError(f"{path} is larger than 1 GiB; restore it from a copy")
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror or error}); check it") from error


@contextmanager
def name_own(path: Path) -> Iterator[str]:
    """A name of a file of a folder, for a library that opens files itself.

    Where the system has names for open files, as Linux has, it is that of the very file that was
    looked at. Names in `/dev/fd` elsewhere share the place that was read up to: no use here.
    """
    with open_own(path) as file:
        by_number = f"/proc/self/fd/{file.fileno()}"
        yield by_number if os.path.exists(by_number) else str(path)


def check_own(path: Path, *, alone: bool = False) -> os.stat_result:
    """Refuse what is no regular file; what is not there is a `FileNotFoundError`.

    `alone`: one with a second name (a hard link) too.
    """
    found = path.lstat()
    _check(path, found, alone=alone)
    return found


def check_own_folder(path: Path) -> Path:
    """The folder within a folder; where something else is there, a link for example, an error."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return path
    if not stat.S_ISDIR(mode):
        raise InputError(f"{path} is {_kind(mode)}, not a folder; delete it")
    return path


def _opened(name: str, flags: int) -> int:
    return os.open(name, flags | _NEVER)


def _check(path: Path, found: os.stat_result, *, alone: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise InputError(
            f"{path} is {_kind(found.st_mode)}, not a file, and is left alone; put the file itself "
            "there, or delete it"
        )
    if alone and found.st_nlink > 1:
        raise InputError(
            f"{path} is a hard link: it has another name elsewhere, and is left alone; put a copy "
            "there, or delete it"
        )


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "a file"
    return _KINDS.get(stat.S_IFMT(mode), "a device")
