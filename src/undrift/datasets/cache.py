"""What took long to read, kept as plain arrays: a cache that is checked, never trusted."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from undrift.datasets.arrays import Array, open_npz
from undrift.datasets.checksums import sha256
from undrift.errors import InputError
from undrift.storage.files import write_atomically

__all__ = ["through_cache"]

VERSION = 1
T = TypeVar("T")


def through_cache(
    source: Path,
    folder: Path,
    parse: Callable[[], Mapping[str, Array]],
    build: Callable[[Mapping[str, Array]], T],
    kinds: Mapping[str, tuple[str, int]],
) -> T:
    """`build(parse())`, where the arrays that `parse` reads from `source` are kept for next time.

    The arrays lie in an `.npz` file named after the SHA-256 of the source, so another source
    never finds them. They count only if the file is whole (a zip has checksums), says which
    source it is of, holds what `kinds` names (numpy type kinds and dimensions of each array) and
    `build` accepts them; otherwise they are read again from the source. They are written once
    `build` has succeeded, in one step, and not at all where the folder cannot be written to.
    """
    digest = sha256(source)
    path = folder / f"{source.name}.{digest[:16]}.npz"
    with suppress(InputError):  # damaged, foreign or not there: read the source
        return build(_read(path, digest, kinds))
    arrays = parse()
    result = build(arrays)
    with suppress(InputError):  # a folder that is full or read-only only costs time
        _write(path, digest, arrays)
        _forget_others(path, source.name)
    return result


def _key(digest: str) -> Array:
    return np.frombuffer(f"{VERSION} {digest}".encode("ascii"), np.uint8)


def _read(path: Path, digest: str, kinds: Mapping[str, tuple[str, int]]) -> dict[str, Array]:
    with open_npz(path, "it is no cache of undrift") as archive:
        if not np.array_equal(archive.array("key", "iu"), _key(digest)):
            raise InputError(f"{path} was made from another file")
        return {name: archive.array(name, kind, ndim) for name, (kind, ndim) in kinds.items()}


def _write(path: Path, digest: str, arrays: Mapping[str, Array]) -> None:
    whole = io.BytesIO()
    members: dict[str, Array] = {"key": _key(digest), **arrays}
    np.savez(whole, allow_pickle=False, **members)  # stored, not deflated: read in a moment
    write_atomically(path, whole.getvalue())


def _forget_others(path: Path, name: str) -> None:
    """Delete the arrays of earlier versions of the source."""
    for other in path.parent.glob(f"{name}.*.npz"):
        if other != path:
            with suppress(OSError):
                other.unlink()
