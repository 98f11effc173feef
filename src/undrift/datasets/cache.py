"""What took long to read, kept as plain arrays: a cache that is checked, never trusted."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from undrift.datasets.archives import Array, open_npz
from undrift.datasets.folder import sha256
from undrift.errors import InputError
from undrift.storage.files import write_atomically

VERSION = 1
Kinds = Mapping[str, tuple[str, int]]
T = TypeVar("T")


def through_cache(
    source: Path,
    folder: Path,
    parse: Callable[[], Mapping[str, Array]],
    build: Callable[[Mapping[str, Array]], T],
    kinds: Kinds,
) -> T:
    """`build(parse())`, where the arrays that `parse` reads from `source` are `kept`.

    Their file is named after the SHA-256 of the source, so another source never finds them, and
    replaces that of an earlier version of the source.
    """
    digest = sha256(source)
    path = folder / f"{source.name}.{digest[:16]}.npz"
    result = kept(path, digest, parse, build, kinds)
    for other in path.parent.glob(f"{source.name}.*.npz") if path.is_file() else ():
        if other != path:
            with suppress(OSError):
                other.unlink()
    return result


def kept(
    path: Path,
    key: str,
    make: Callable[[], Mapping[str, Array]],
    build: Callable[[Mapping[str, Array]], T],
    kinds: Kinds,
    *,
    worth: Callable[[T], bool] = lambda result: True,
    also: Sequence[Path] = (),
) -> T:
    """`build(make())`, where the arrays that `make` gives are kept in a file for next time.

    They count only if the file is whole (a zip has checksums), has this `key`, holds what
    `kinds` names (numpy type kinds and dimensions of each array) and `build` accepts them;
    otherwise they are made again. They are written once `build` has succeeded with a result
    that is `worth` it, in one step, and not at all where the folder cannot be written to. `also`:
    files that are read in its place, and never written.
    """
    stamp = np.frombuffer(f"{VERSION} {key}".encode("ascii"), np.uint8)
    for each in (path, *also):
        with suppress(InputError):  # damaged, foreign or not there
            return build(_read(each, stamp, kinds))
    arrays = make()
    result = build(arrays)
    if worth(result):
        whole = io.BytesIO()
        members: dict[str, Array] = {"key": stamp, **arrays}
        np.savez(whole, allow_pickle=False, **members)  # stored, not deflated: read in a moment
        with suppress(InputError):  # a folder that is full or read-only only costs time
            write_atomically(path, whole.getvalue())
    return result


def _read(path: Path, stamp: Array, kinds: Kinds) -> dict[str, Array]:
    with open_npz(path, "it is no cache of undrift") as archive:
        if not np.array_equal(archive.array("key", "iu"), stamp):
            raise InputError(f"{path} was made from something else")
        return {name: archive.array(name, kind, ndim) for name, (kind, ndim) in kinds.items()}
