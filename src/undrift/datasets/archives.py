"""Zip files: an `.npz` file read array by array, and files unpacked out of a download.

`np.load` reads an array whole and in the type it has on disk. Here it is read in pieces that are
converted as they come: 115 million int64 numbers become int32 without both being in memory.
Object arrays, which only pickle could read, are refused unread.
"""

from __future__ import annotations

import stat
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from undrift.checks import check_exists, check_regular
from undrift.errors import InputError
from undrift.machine import need
from undrift.storage.files import whole_file

Array = np.ndarray[Any, np.dtype[Any]]

FETCH_AGAIN = "fetch the file again from its source"
UNPACK_LIMIT = 8 << 30
"""Bytes that a download may unpack to: several times the largest dataset here."""

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted member
)
_NO_HEADER = (
    *(KeyError, ValueError, TypeError, SyntaxError),
    *(tokenize.TokenError, RecursionError, MemoryError),
)
_PIECE = 1 << 22  # bytes: large enough to be fast, small beside any large array
_DEFLATE_LIMIT = 1100  # no deflated byte stands for more bytes than this
_WAY = "check where the file is from, or use a machine with more"
_WORDS = {"iu": "whole numbers", "iufb": "numbers", "f": "floats", "iuf": "numbers"}
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

    def text(self, name: str) -> str:
        """A single word, as scipy keeps a matrix's format."""
        with self._open(name) as (file, (shape, _, dtype)):
            if dtype.kind not in "SU" or shape != () or dtype.itemsize > 1000:
                raise self._wrong(name, "a single word", dtype, shape)
            word = np.frombuffer(file.read(dtype.itemsize), dtype)[0]
            return word.decode("ascii") if isinstance(word, bytes) else str(word)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array by its header alone."""
        with self._open(name) as (_, (shape, _, _)):
            return shape

    def array(
        self, name: str, kinds: str, ndim: int = 1, dtype: type[np.generic] | None = None
    ) -> Array:
        """An array by its name; `kinds` are the numpy type kinds it may have (i, u, f, b).

        With `dtype` it is converted piece by piece. Whole numbers that do not fit are an error.
        Cost: the array in its new type, and pieces of a few MB.
        """
        with self._open(name) as (file, (shape, fortran, found)):
            if found.kind not in kinds or len(shape) != ndim:
                wanted = ("", "a list", "a matrix")[ndim] + f" of {_WORDS[kinds]}"
                raise self._wrong(name, wanted, found, shape)
            count = int(np.prod(shape, dtype=object))
            need(count * np.dtype(dtype or found).itemsize, f"array {name!r} of {self.path}", _WAY)
            flat: Array = np.empty(count, dtype or found)
            place = 0
            for piece in _pieces(file, found, count):
                self._check_fit(piece, flat.dtype, name)
                with np.errstate(over="ignore"):  # too large for float32: infinity
                    flat[place : place + piece.size] = piece
                place += piece.size
        return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], _Header]]:
        if name not in self._members:
            raise InputError(f"{self.path} has no array {name!r}; {self._holds}")
        info = self._members[name]
        what = f"array {name!r} of {self.path}"
        with damage(what, "made of numbers"), self._archive.open(info) as file:
            yield file, _header(file, info)

    def _wrong(
        self, name: str, wanted: str, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> InputError:
        return InputError(
            f"array {name!r} of {self.path} must be {wanted}, not {dtype} of shape {shape}"
        )

    def _check_fit(self, piece: Array, dtype: np.dtype[Any], name: str) -> None:
        wrong = ""
        if dtype.kind == "b" and piece.dtype.kind == "f" and not np.isfinite(piece).all():
            wrong = "NaN or infinity"
        elif dtype.kind in "iu" and not np.can_cast(piece.dtype, dtype) and piece.size:
            limits, low, high = np.iinfo(dtype), int(piece.min()), int(piece.max())
            if low < limits.min or high > limits.max:
                wrong = f"{low if low < limits.min else high}, which is too large"
        if wrong:
            raise InputError(f"array {name!r} of {self.path} holds {wrong}; {FETCH_AGAIN}")


@contextmanager
def open_npz(path: str | Path, holds: str) -> Iterator[Npz]:
    """An `.npz` file, open; `holds` says in an error what arrays such a file should have."""
    path = Path(path)
    check_regular(path)
    with suppress(OSError), path.open("rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise InputError(f"{path} holds a single array; an .npz file of named arrays is needed")
    with open_zip(path, "an .npz file") as archive:
        yield Npz(archive, path, holds)


def _header(file: IO[bytes], info: zipfile.ZipInfo) -> _Header:
    """Shape, order and type of an array, which must agree with the bytes there are."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a header that Python 2 wrote
            shape, fortran, dtype = readers[np.lib.format.read_magic(file)](file)
    except _NO_HEADER as error:
        raise ValueError("no header of an array") from error
    if dtype.hasobject:
        raise ValueError("an object array, which only pickle could read")
    # no memory is taken on the word of a header: it must agree with the size of the member,
    # and that with what its compressed bytes can hold
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if min(shape, default=0) < 0 or size != info.file_size - file.tell():
        raise ValueError("the shape does not fit the bytes")
    if info.file_size > _DEFLATE_LIMIT * max(info.compress_size, 1):
        raise ValueError("larger than its compressed bytes can be")
    return shape, fortran, dtype


def _pieces(file: IO[bytes], dtype: np.dtype[Any], count: int) -> Iterator[Array]:
    left = count * dtype.itemsize
    step = max(1, _PIECE // max(dtype.itemsize, 1)) * dtype.itemsize
    while left:
        data = file.read(min(step, left))
        if len(data) != min(step, left):
            raise EOFError
        yield np.frombuffer(data, dtype)
        left -= len(data)
    if file.read(1):  # also makes zipfile compare the checksum of an empty array
        raise ValueError("more bytes than the shape needs")


def unpack_zip(
    path: str | Path,
    folder: str | Path,
    members: Sequence[str],
    limit_bytes: int = UNPACK_LIMIT,
) -> list[Path]:
    """Unpack these files of a zip into a folder, and return where they are.

    A member is named by its last part. A path that leads out of the folder, or a link, anywhere
    in the zip refuses all of it. Bytes are counted as they are unpacked, whatever the zip says
    of its sizes. No file takes its name before all are unpacked.
    """
    path, folder = Path(path), Path(folder)
    with open_zip(path) as archive, ExitStack() as files:
        for info in archive.infolist():
            _check_entry(info, path)
        chosen = [_member(archive, name, path) for name in members]
        left = limit_bytes
        for name, info in zip(members, chosen, strict=True):
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


def _check_entry(info: zipfile.ZipInfo, path: Path) -> None:
    # the name as it was written: ZipInfo.filename is already cut at a zero byte
    name = info.orig_filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    outside = name.startswith("/") or ".." in parts or ":" in name or "\0" in name
    if outside or stat.S_ISLNK(info.external_attr >> 16):
        what = "a path out of its folder" if outside else "a link"
        raise InputError(
            f"{path} holds {info.orig_filename!r}, {what}, so nothing was unpacked; take the zip "
            "from its official address"
        )


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> zipfile.ZipInfo:
    # no is_dir(): a damaged zip may have a member without a name
    files = [info for info in archive.infolist() if not info.filename.endswith("/")]
    found = [info for info in files if PurePosixPath(info.filename).name == name]
    if len(found) != 1:
        raise InputError(
            f"{path} holds {len(found) or 'no'} {'files' if found else 'file'} {name}, not one; "
            "take the zip from its official address"
        )
    return found[0]


def _chunks(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, path: Path
) -> Iterator[bytes]:
    """A member's bytes, at most `limit` of them."""
    done = 0
    with damage(f"{info.filename!r} in {path}"), archive.open(info) as file:
        while chunk := file.read(_PIECE):
            done += len(chunk)
            if done > limit:
                raise InputError(
                    f"{path} unpacks to more bytes than are allowed ({limit:,} were left for "
                    f"{info.filename!r}), so nothing was kept; take the zip from its official "
                    "address"
                )
            yield chunk
