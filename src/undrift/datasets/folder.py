"""The data folder: where its files are, whether they have changed, and what is kept in caches.

Beside a fetched file `x.npz` is `x.npz.sha256`, as `sha256sum` writes it: later reads check it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import file_digest, sha1
from pathlib import Path
from typing import Any, NamedTuple

from undrift.datasets.catalogue import DATASETS, MARK, RemoteFile, dataset_of, stand_in_names
from undrift.errors import InputError, unknown_name
from undrift.storage.files import write_atomically
from undrift.storage.lock import system_errors

VARIABLE = "UNDRIFT_DATA"


def data_folder() -> Path:
    """The folder that UNDRIFT_DATA names, else `undrift` in the platform's cache folder."""
    value = os.environ.get(VARIABLE, "").strip()
    return Path(value).expanduser() if value else _platform_cache() / "undrift"


def _platform_cache() -> Path:
    known = {"darwin": ("", "Library/Caches"), "win32": ("LOCALAPPDATA", "AppData/Local")}
    variable, usual = known.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    value = os.environ.get(variable, "").strip()
    # the XDG rules: a relative path is invalid and to be ignored
    return Path(value) if value and Path(value).is_absolute() else Path.home() / usual


def may_write(folder: Path) -> bool:
    """Whether a folder, there or still to be made, is not marked read-only, even for root."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return bool(folder.stat().st_mode & 0o222) and os.access(folder, os.W_OK)


def cache_folder(kind: str) -> Path:
    """A folder for what can be made again: in the data folder, unless that is read-only."""
    folder = data_folder()
    return (folder if may_write(folder) else _platform_cache() / "undrift") / kind


def find_file(name: str) -> Path:
    """The data file of this name; where there is none, the error says how to get it."""
    folder = data_folder()
    if (folder / name).is_file():
        return folder / name
    named = bool(os.environ.get(VARIABLE, "").strip())
    where = f"not in {folder}" + (f", the folder of {VARIABLE}" if named else "")
    if named and not folder.is_dir():
        where = f"needed, but {VARIABLE} names {folder}, which is not a folder"
    dataset = dataset_of(name)
    way = f", or run: undrift data fetch {dataset}" if dataset else ""
    set_it = f"set the environment variable {VARIABLE} to the folder that holds it"
    raise InputError(f"data file {name} is {where}; put it there, or {set_it}{way}")


def delete(path: Path) -> None:
    """Delete a file, if it is there."""
    with system_errors(f"cannot delete {path}", "delete it by hand"):
        path.unlink(missing_ok=True)


def sha256(path: Path, kind: str | Callable[[], Any] = "sha256") -> str:
    """The SHA-256 of a file, or a checksum of another kind, in one pass."""
    with system_errors(f"cannot read {path}", "check its permissions"), path.open("rb") as file:
        return file_digest(file, kind).hexdigest()


class Compared(NamedTuple):
    """A checksum of a file beside the published one."""

    kind: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.kind} {self.found[:12]}..., published {self.wanted[:12]}..."


def published(path: Path, file: RemoteFile) -> Compared | None:
    """The best checksum that is published for a file, computed; None where there is none."""
    if file.sha256 is not None:
        return Compared("SHA-256", sha256(path), file.sha256)
    if file.git is not None:
        head = b"blob %d\0" % path.stat().st_size  # git's id is the hash of this and the bytes
        return Compared("git id", sha256(path, lambda: sha1(head, usedforsecurity=False)), file.git)
    return None if file.md5 is None else Compared("MD5", sha256(path, "md5"), file.md5)


def record_path(path: Path) -> Path:
    """Where a file's checksum is recorded."""
    return path.with_name(path.name + ".sha256")


def record(path: Path, digest: str) -> None:
    """Write a file's SHA-256 beside it."""
    write_atomically(record_path(path), f"{digest}  {path.name}\n".encode("ascii"))


def recorded(path: Path) -> str | None:
    """The SHA-256 recorded beside a file, or None where there is no readable record."""
    try:
        words = record_path(path).read_text("ascii").split()
    except (OSError, UnicodeDecodeError):
        return None
    return words[0] if words and re.fullmatch(r"[0-9a-f]{64}", words[0]) else None


def check_recorded(path: Path) -> str:
    """The SHA-256 of a file; an error if another one was recorded for it."""
    found, wanted = sha256(path), recorded(path)
    if wanted not in (None, found):
        dataset = dataset_of(path.name)
        way = f" with: undrift data fetch {dataset}" if dataset else ""
        told = f"SHA-256 {found[:12]}..., recorded {str(wanted)[:12]}..."
        raise InputError(f"{path} has changed since it was fetched ({told}); fetch it again{way}")
    return found


class KeptGraph(NamedTuple):
    """A file that can be made again, and the stand-in it is a part of."""

    name: str
    path: Path
    size: int


def stand_in_folders() -> tuple[Path, ...]:
    """Where stand-ins are kept: in the platform's cache, and where earlier versions kept them."""
    every = (_platform_cache() / "undrift", data_folder())
    return tuple(folder / "stand-ins" for folder in dict.fromkeys(every))


def kept_stand_ins() -> Iterator[KeptGraph]:
    """Every file of a stand-in that is kept."""
    for name, dataset in stand_in_names().items():
        for folder in stand_in_folders():
            for path in sorted(folder.glob(f"{dataset}-[0-9]*.npz")):
                with suppress(FileNotFoundError):  # removed in this moment
                    yield KeptGraph(name, path, path.stat().st_size)


def remove_stand_in(name: str) -> list[KeptGraph]:
    """Delete the files of a stand-in and return them; it is made again when needed."""
    known = stand_in_names()
    if name in DATASETS:
        files = ", ".join(str(data_folder() / file) for file in DATASETS[name].names)
        what = f"only generated stand-ins are removed ({', '.join(known)})"
        raise InputError(f"{what}; the files of {name} are yours to delete: {files}")
    if name not in known:
        raise unknown_name(MARK, name, known)
    found = [kept for kept in kept_stand_ins() if kept.name == name]
    for kept in found:
        delete(kept.path)
    return found
