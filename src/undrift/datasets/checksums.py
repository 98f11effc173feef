"""What a file's bytes are, and what they were when it was fetched.

Beside a fetched file `x.npz` lies `x.npz.sha256`, a line as `sha256sum` writes it. Whoever reads
the file later checks it against that line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import file_digest, sha1
from pathlib import Path
from typing import Any, NamedTuple

from undrift.datasets.catalogue import dataset_of
from undrift.datasets.dataset import RemoteFile
from undrift.errors import InputError
from undrift.storage.files import write_atomically


def sha256(path: Path, kind: str | Callable[[], Any] = "sha256") -> str:
    """The SHA-256 of a file, or a checksum of another kind, in one pass."""
    try:
        with path.open("rb") as file:
            return file_digest(file, kind).hexdigest()
    except OSError as error:
        raise InputError(
            f"cannot read {path} ({error.strerror or error}); check its permissions"
        ) from error


class Compared(NamedTuple):
    """A checksum of a file beside the published one."""

    kind: str
    found: str
    wanted: str


def published(path: Path, file: RemoteFile) -> Compared | None:
    """The best checksum that is published for a file, computed; None where there is none.

    SHA-1 (in git's ids) and MD5 hold against accidents only, which is what they are for here.
    """
    if file.sha256 is not None:
        return Compared("SHA-256", sha256(path), file.sha256)
    if file.git is not None:
        head = b"blob %d\0" % path.stat().st_size  # git's id is the hash of this and the bytes
        return Compared("git id", sha256(path, lambda: sha1(head, usedforsecurity=False)), file.git)
    return None if file.md5 is None else Compared("MD5", sha256(path, "md5"), file.md5)


def recorded(path: Path) -> str | None:
    """The SHA-256 recorded beside a file, or None where there is no readable record."""
    try:
        words = record_path(path).read_text("ascii").split()
    except (OSError, UnicodeDecodeError):
        return None
    return words[0] if words and re.fullmatch(r"[0-9a-f]{64}", words[0]) else None


def record(path: Path, digest: str) -> None:
    """Write down a file's SHA-256 beside it."""
    write_atomically(record_path(path), f"{digest}  {path.name}\n".encode("ascii"))


def record_path(path: Path) -> Path:
    """Where a file's checksum is recorded."""
    return path.with_name(path.name + ".sha256")


def check_recorded(path: Path) -> str:
    """The SHA-256 of a file; an error if another one was recorded for it."""
    found, wanted = sha256(path), recorded(path)
    if wanted is not None and found != wanted:
        dataset = dataset_of(path.name)
        way = f"fetch it again with: undrift data fetch {dataset}" if dataset else "fetch it again"
        raise InputError(
            f"{path} has changed since it was fetched (SHA-256 {found[:12]}..., recorded "
            f"{wanted[:12]}...); {way}"
        )
    return found
