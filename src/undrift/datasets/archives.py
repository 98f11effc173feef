"""Zip files: an `.npz` file read array by array, files unpacked out of a download, a cache."""

import io
import stat
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from undrift.checks import check_exists, check_regular
from undrift.errors import InputError
from undrift.machine import need
from undrift.storage.files import whole_file, write_atomically

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")
MORE_MEMORY = "check where the file is from, or use a machine with more"
FETCH_AGAIN = "fetch the file again from its source"
LIMIT = 8 << 30  # bytes of a download, packed or unpacked: several times the largest one here
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
_PIECE = 1 << 22  # bytes: large enough to be fast, small beside any large array
_DEFLATE_LIMIT = 1100  # no deflated byte stands for more bytes than this
_OFFICIAL = "take the zip from its official address"
_WORDS = {"iu": "whole numbers", "f": "floats"}
_Header = tuple[tuple[int, ...], bool, np.dtype[Any]]


@contextmanager
def damage(what: str, kind: str = "") -> Iterator[None]:
    """Inside, an error of reading a damaged file becomes one sentence about `what`."""
    try:
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        wrong = f"damaged or not {kind}" if kind else "damaged"
        reason = f" ({error})" if type(error) is ValueError else ""
        raise InputError(f"{what} is {wrong}{reason}; {FETCH_AGAIN}") from error


def open_zip(path: Path, kind: str = "a zip file") -> zipfile.ZipFile:
    """A zip, open; `kind` says in an error what it should be."""
    check_exists(path)
    with damage(str(path), kind):
        return zipfile.ZipFile(path)


class Npz:
    """An `.npz` file that is open; made by `open_npz`."""

    def __init__(self, archive: zipfile.ZipFile, path: Path, holds: str) -> None:
        self.path = path
        self._archive = archive
        self._holds = holds
        members = (info for info in archive.infolist() if info.filename.endswith(".npy"))
        self._members = {info.filename[:-4]: info for info in members}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array by its header alone."""
        with self._open(name) as (_, (shape, _, _)):
            return shape

    def array(
        self, name: str, kinds: str, ndim: int = 1, dtype: type[np.generic] | None = None
    ) -> Array:
        """An array of these numpy type `kinds` (i, u, f, b), as `dtype`, converted in pieces."""
        what = f"array {name!r} of {self.path}"
        with self._open(name) as (file, (shape, fortran, found)):
            if found.kind not in kinds or len(shape) != ndim:
                wanted = ("", "a list", "a matrix")[ndim] + f" of {_WORDS.get(kinds, 'numbers')}"
                raise InputError(f"{what} must be {wanted}, not {found} of shape {shape}")
            count = int(np.prod(shape, dtype=object))
            need(count * np.dtype(dtype or found).itemsize, what, MORE_MEMORY)
            flat: Array = np.empty(count, dtype or found)
            step = max(1, _PIECE // max(found.itemsize, 1))
            for place in range(0, count, step):
                part = flat[place : place + step]
                piece = np.frombuffer(file.read(part.size * found.itemsize), found, part.size)
                with np.errstate(over="ignore"):  # too large for float32: infinity
                    part[:] = piece
                if flat.dtype.kind == "b" and not np.isfinite(piece).all():
                    raise InputError(f"{what} holds NaN or infinity; {FETCH_AGAIN}")
                if flat.dtype.kind in "iu" and not np.array_equal(part, piece):
                    raise InputError(f"{what} holds numbers that are too large; {FETCH_AGAIN}")
            if file.read(1):  # also makes zipfile compare the checksum of an empty array
                raise ValueError("more bytes than the shape needs")
        return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], _Header]]:
        if name not in self._members:
            raise InputError(f"{self.path} has no array {name!r}; {self._holds}")
        info, what = self._members[name], f"array {name!r} of {self.path}"
        with damage(what, "made of numbers"), self._archive.open(info) as file:
            yield file, _header(file, info)


@contextmanager
def open_npz(path: str | Path, holds: str) -> Iterator[Npz]:
    """An `.npz` file, open; `holds` says in an error what arrays such a file should have."""
    path = Path(path)
    check_regular(path)
    with open_zip(path, "an .npz file") as archive:
        yield Npz(archive, path, holds)


def _header(file: IO[bytes], info: zipfile.ZipInfo) -> _Header:
    """Shape, order and type of an array; no memory is taken on the word of a header alone."""
    read = np.lib.format
    readers = {(1, 0): read.read_array_header_1_0, (2, 0): read.read_array_header_2_0}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a header that Python 2 wrote
            shape, fortran, dtype = readers[read.read_magic(file)](file)
    except Exception as error:  # whatever a damaged header makes NumPy's parser raise
        raise ValueError("no header of an array") from error
    if dtype.hasobject:
        raise ValueError("an object array, which only pickle could read")
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if min(shape, default=0) < 0 or size != info.file_size - file.tell():
        raise ValueError("the shape does not fit the bytes")
    if info.file_size > _DEFLATE_LIMIT * max(info.compress_size, 1):
        raise ValueError("larger than its compressed bytes can be")
    return shape, fortran, dtype


def unpack_zip(path: str | Path, folder: str | Path, members: Sequence[str]) -> list[Path]:
    """Unpack these files of a zip: all, or none if anything in it leads out of the folder."""
    path, folder, left = Path(path), Path(folder), LIMIT
    with open_zip(path) as archive, ExitStack() as files:
        for info in archive.infolist():
            # the name as it was written: ZipInfo.filename is already cut at a zero byte
            name = info.orig_filename.replace("\\", "/")
            outside = name.startswith("/") or ":" in name or "\0" in name
            if outside or ".." in name.split("/") or stat.S_ISLNK(info.external_attr >> 16):
                problem = f"{info.orig_filename!r}, a link or a path out of its folder"
                raise InputError(f"{path} holds {problem}, so nothing was unpacked; {_OFFICIAL}")
        for name, info in [(name, only_member(archive, name, path)) for name in members]:
            file = files.enter_context(whole_file(folder / name))
            for chunk in _chunks(archive, info, left, path):
                left -= file.write(chunk)
    return [folder / name for name in members]


def check_zip(path: str | Path) -> None:
    """Read a zip (or `.npz`) to its end and compare every checksum in it."""
    path = Path(path)
    with open_zip(path) as archive:
        left = LIMIT
        for info in archive.infolist():
            left -= sum(map(len, _chunks(archive, info, left, path)))


def only_member(archive: zipfile.ZipFile, name: str, path: Path) -> zipfile.ZipInfo:
    """The one member of a zip that has this name, in whatever folder of the zip."""
    entries = archive.infolist()
    found = [i for i in entries if i.filename == name or i.filename.endswith(f"/{name}")]
    if len(found) != 1:
        files = "files" if found else "file"
        raise InputError(f"{path} holds {len(found) or 'no'} {files} {name}, not one; {_OFFICIAL}")
    return found[0]


def _chunks(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, path: Path
) -> Iterator[bytes]:
    """A member's bytes, at most `limit` of them."""
    with damage(f"{info.filename!r} in {path}"), archive.open(info) as file:
        while chunk := file.read(_PIECE):
            limit -= len(chunk)
            if limit < 0:
                raise InputError(f"{path} unpacks to more bytes than are allowed; {_OFFICIAL}")
            yield chunk


def kept(
    path: Path,
    key: str,
    make: Callable[[], Mapping[str, Array]],
    build: Callable[[Mapping[str, Array]], T],
    kinds: Mapping[str, tuple[str, int]],
    *,
    worth: Callable[[T], bool] = lambda result: True,
) -> T:
    """`build(make())`; arrays are kept in a file, which is checked and never trusted next time."""
    stamp = np.frombuffer(f"1 {key}".encode("ascii"), np.uint8)
    with suppress(InputError), open_npz(path, "") as file:  # damaged, foreign or not there
        if np.array_equal(file.array("key", "iu"), stamp):
            return build({name: file.array(name, *kind) for name, kind in kinds.items()})
    arrays = make()
    result = build(arrays)
    if worth(result):
        whole = io.BytesIO()
        members: dict[str, Array] = {"key": stamp, **arrays}
        np.savez(whole, allow_pickle=False, **members)  # stored, not deflated: read in a moment
        with suppress(InputError):  # a folder that is full or read-only only costs time
            write_atomically(path, whole.getvalue())
    return result
