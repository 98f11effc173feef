"""A dataset's files: from their official addresses into the data folder, and checked there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from undrift.datasets.archives import check_zip, unpack_zip
from undrift.datasets.catalogue import DATASETS, load_dataset
from undrift.datasets.dataset import Dataset, RemoteFile
from undrift.datasets.download import DOWNLOAD_LIMIT, Opener, discard, download, open_url
from undrift.datasets.folder import (
    VARIABLE,
    data_folder,
    find_file,
    may_write,
    published,
    record,
    record_path,
    recorded,
    sha256,
)
from undrift.errors import InputError, unknown_name
from undrift.storage.files import make_folder
from undrift.storage.lock import exclusive
from undrift.typing import Progress, silent


def fetch(
    name: str,
    folder: str | Path | None = None,
    progress: Progress = silent,
    opener: Opener = open_url,
    *,
    force: bool = False,
    limit_bytes: int = DOWNLOAD_LIMIT,
    wait: Callable[[float], None] = time.sleep,
) -> list[Path]:
    """Download a dataset into the data folder and return where its files lie.

    A file that is there and whole is kept, unless `force`; where its published bytes are known,
    those are. A download goes to `FILE.part` and is
    gone on with after a break. Its size and published checksum are compared; where none is
    published, the checksums within the zip or `.npz` are, and every later download must have the
    SHA-256 of the first. Only then does the file take its name, in one step. `progress(file,
    done, total)` is called with bytes, `wait(seconds)` before another try.
    """
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    place = make_folder(data_folder() if folder is None else folder)
    paths: list[Path] = []
    for file in DATASETS[name].files:
        targets = [place / target for target in file.names]
        if force or not all(is_whole(target, file) for target in targets):
            if not may_write(place):
                raise InputError(
                    f"{place} is read-only, so {file.name} cannot be fetched into it; set "
                    f"{VARIABLE} to another folder"
                )
            with exclusive(place / f".{file.name}.lock", f"fetching {file.name}"):
                part = place / f"{file.name}.part"
                download(
                    file.url,
                    part,
                    size=file.size,
                    limit_bytes=limit_bytes,
                    progress=progress,
                    opener=opener,
                    wait=wait,
                )
                _keep(part, file, place / file.name, limit_bytes)
        paths += targets
    return paths


def is_whole(path: Path, file: RemoteFile) -> bool:
    """Whether a file is there and has the bytes that are published, or were recorded, for it.

    A file with neither, which somebody put there, is read to its end: the zip or `.npz` has
    checksums of its own.
    """
    if not path.is_file():
        return False
    compared = published(path, file) if path.name == file.name else None
    if compared is not None:
        return compared.found == compared.wanted
    wanted = recorded(path)
    if wanted is not None:
        return sha256(path) == wanted
    try:
        check_zip(path)
    except InputError:
        return False
    return True


def _keep(part: Path, file: RemoteFile, target: Path, limit_bytes: int) -> None:
    """Check a download and give it its name, or unpack it."""
    try:
        digest = _verify(part, file, target, limit_bytes)
        if file.members:
            for path in unpack_zip(part, target.parent, file.members, limit_bytes):
                record(path, sha256(path))
            record(target, digest)  # last: what is refused on the way was never the first one
        else:
            record(target, digest)
            os.replace(part, target)
    finally:
        discard(part)  # also when it is the wrong file: to go on with it would not mend it


def _verify(part: Path, file: RemoteFile, target: Path, limit_bytes: int) -> str:
    """The SHA-256 of a download that is the right file; otherwise an error."""
    compared = published(part, file)
    if compared is not None:
        if compared.found != compared.wanted:
            raise InputError(
                f"{file.url} sent other bytes than the published {file.name} ({compared.kind} "
                f"{compared.found[:12]}..., published {compared.wanted[:12]}...); nothing was "
                "kept, so try again later or put the file into the data folder by hand"
            )
    elif target.suffix in (".zip", ".npz"):
        try:
            check_zip(part, limit_bytes)
        except InputError as error:
            raise InputError(
                f"{file.url} sent a damaged file or another one than {file.name}; nothing was "
                "kept, so try again later"
            ) from error
    digest, first = sha256(part), recorded(target)
    if compared is None and first not in (None, digest):
        raise InputError(
            f"{file.url} sent another {file.name} than the first time (SHA-256 {digest[:12]}..., "
            f"recorded {str(first)[:12]}...); nothing was kept, so if the change is meant, delete "
            f"{record_path(target)} and fetch again"
        )
    return digest


@dataclass(frozen=True)
class CheckedFile:
    """A file of a dataset that was loaded, and what its bytes were compared with."""

    path: Path
    size: int
    sha256: str
    verdict: str


def check_dataset(name: str, *, accept: bool = False) -> tuple[CheckedFile, ...]:
    """Load a dataset, compare its statistics and checksums, and say how each file fared.

    Other statistics than the published ones, other bytes than the recorded ones, and where
    published bytes are known other ones than those are errors; `accept` lets the last pass, since
    a file that was saved again holds the same graph. Nothing is written.
    """
    load_dataset(name)
    paths = [find_file(file) for file in DATASETS[name].names]
    return tuple(_checked(path, DATASETS[name], accept) for path in paths)


def _checked(path: Path, dataset: Dataset, accept: bool) -> CheckedFile:
    digest, known = sha256(path), recorded(path)
    file = next((file for file in dataset.files if file.name == path.name), None)
    compared = published(path, file) if file is not None else None
    verdict = "nothing to compare them with" if known is None else "as recorded"
    if compared is not None:
        verdict = f"as published ({compared.kind})"
        if compared.found != compared.wanted:
            verdict = "accepted; other bytes than published"
            if not accept:
                raise InputError(
                    f"{path} has other bytes than the published file ({compared.kind} "
                    f"{compared.found[:12]}..., published {compared.wanted[:12]}...), so its "
                    f"labels may be others too; fetch it with: undrift data fetch {dataset.name}, "
                    "or add --accept if you know why"
                )
    return CheckedFile(path, path.stat().st_size, digest, verdict)
