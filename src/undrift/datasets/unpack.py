"""Files out of a zip: only those asked for, whole, and never outside the folder."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from undrift.datasets.arrays import DAMAGE, open_zip
from undrift.errors import InputError
from undrift.storage.files import whole_file

UNPACK_LIMIT = 8 << 30
"""Bytes that a download may unpack to: several times what the largest dataset here does."""

_CHUNK = 1 << 20


def unpack_zip(
    path: str | Path,
    folder: str | Path,
    members: Sequence[str],
    limit_bytes: int = UNPACK_LIMIT,
) -> list[Path]:
    """Unpack these files of a zip into a folder, and return where they lie.

    A member is named by its last part. A path that leads out of the folder, or a link, anywhere
    in the zip refuses all of it. Bytes are counted as they are unpacked, whatever the zip says
    of its sizes. No file takes its name before all are unpacked.
    """
    path, folder = Path(path), Path(folder)
    with open_zip(path) as archive, ExitStack() as files:
        left = limit_bytes
        for name, info in _chosen(archive, members, path).items():
            file = files.enter_context(whole_file(folder / name))
            for chunk in _chunks(archive, info, left, path):
                left -= file.write(chunk)
    return [folder / name for name in members]


def check_zip(path: str | Path, limit_bytes: int = UNPACK_LIMIT) -> None:
    """Read a zip (or `.npz`) to its end and compare every checksum in it."""
    path = Path(path)
    with open_zip(path) as archive:
        left = limit_bytes
        for info in archive.infolist():
            left -= sum(map(len, _chunks(archive, info, left, path)))


def _chosen(
    archive: zipfile.ZipFile, members: Sequence[str], path: Path
) -> dict[str, zipfile.ZipInfo]:
    for info in archive.infolist():
        _check_entry(info, path)
    # no is_dir(): a damaged zip may have a member without a name
    files = [info for info in archive.infolist() if not info.filename.endswith("/")]
    chosen = {}
    for name in members:
        found = [info for info in files if PurePosixPath(info.filename).name == name]
        if len(found) != 1:
            raise InputError(
                f"{path} holds {len(found) or 'no'} {'files' if found else 'file'} {name}, not "
                "one; it is another zip than the one that is needed"
            )
        chosen[name] = found[0]
    return chosen


def _check_entry(info: zipfile.ZipInfo, path: Path) -> None:
    # the name as it was written: ZipInfo.filename is already cut at a zero byte
    name = info.orig_filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    outside = name.startswith("/") or ".." in parts or ":" in name or "\0" in name
    what = "a path out of its folder" if outside else "a link"
    if outside or stat.S_ISLNK(info.external_attr >> 16):
        raise InputError(
            f"{path} holds {info.orig_filename!r}, {what}; "
            "nothing was unpacked, so take the zip from its official address"
        )


def _chunks(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, path: Path
) -> Iterator[bytes]:
    """A member's bytes, at most `limit` of them."""
    done = 0
    try:
        with archive.open(info) as file:
            while chunk := file.read(_CHUNK):
                done += len(chunk)
                if done > limit:
                    raise InputError(
                        f"{path} unpacks to more bytes than are allowed ({limit:,} were left for "
                        f"{info.filename!r}); nothing was kept, so take the zip from its official "
                        "address"
                    )
                yield chunk
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(
            f"{info.filename!r} in {path} is damaged; fetch the file again from its source"
        ) from error
