"""The data folder: its files, each with its `x.npz.sha256`, which reads check, and caches."""

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


def delete(*paths: Path) -> None:
    """Delete files, if they are there."""
    for path in paths:
        with system_errors(f"cannot delete {path}", "delete it by hand"):
            path.unlink(missing_ok=True)


def sha256(path: Path, kind: str | Callable[[], Any] = "sha256") -> str:
    """The SHA-256 of a file, or a checksum of another kind, in one pass."""
    with system_errors(f"cannot read {path}", "check its permissions"), path.open("rb") as file:
        return file_digest(file, kind).hexdigest()


def published(path: Path, file: RemoteFile) -> tuple[str, str] | None:
    """The kind of checksum that is published, and how the file's own differs; None without one."""
    kind, wanted = "SHA-256", file.sha256 or file.git
    hashed: Any = "sha256"
    if wanted is None:
        return None
    if file.sha256 is None:  # git's id is the hash of this and the bytes
        head = b"blob %d\0" % path.stat().st_size
        kind, hashed = "git id", lambda: sha1(head, usedforsecurity=False)
    found = sha256(path, hashed)
    differs = f"{kind} {found[:12]}..., published {wanted[:12]}..."
    return kind, "" if found == wanted else differs


def record_path(path: Path) -> Path:
    """Where a file's SHA-256 is recorded."""
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
        problem = f"SHA-256 {found[:12]}..., recorded {str(wanted)[:12]}..."
        raise InputError(
            f"{path} has changed since it was fetched ({problem}); fetch it again{way}"
        )
    return found


class KeptGraph(NamedTuple):
    """A file that can be made again, and the stand-in it is a part of."""

    name: str
    path: Path
    size: int


def stand_in_folder() -> Path:
    """Where stand-ins are kept."""
    return _platform_cache() / "undrift" / "stand-ins"


def kept_stand_ins() -> Iterator[KeptGraph]:
    """Every file of a stand-in that is kept."""
    for name, dataset in stand_in_names().items():
        for path in sorted(stand_in_folder().glob(f"{dataset}-[0-9]*.npz")):
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
    delete(*(kept.path for kept in found))
    return found
