"""The arrays in an `.npz` file, read one at a time and never through pickle.

`np.load` reads an array whole and in the type it has on disk. Here it is read in pieces that are
converted as they come, so that 115 million int64 numbers become int32 without both being in
memory. Object arrays, which only pickle could read, are refused unread.
"""

from __future__ import annotations

import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from undrift.checks import check_regular
from undrift.errors import InputError
from undrift.memory import need

Array = np.ndarray[Any, np.dtype[Any]]

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted member
)
"""What reading a damaged zip can raise."""

_PIECE = 1 << 22  # bytes: large enough to be fast, small beside any array worth it
_DEFLATE_LIMIT = 1100  # no deflated byte stands for more bytes than this
_WAY = "check where the file is from, or use a machine with more"
_WORDS = {"iu": "whole numbers", "iufb": "numbers", "f": "floats", "iuf": "numbers"}


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
        with self._open(name) as (file, shape, dtype, _):
            if dtype.kind not in "SU" or shape != () or dtype.itemsize > 1000:
                raise self._wrong(name, "a single word", dtype, shape)
            word = np.frombuffer(file.read(dtype.itemsize), dtype)[0]
            return word.decode("ascii") if isinstance(word, bytes) else str(word)

    def array(
        self, name: str, kinds: str, ndim: int = 1, dtype: type[np.generic] | None = None
    ) -> Array:
        """An array by its name; `kinds` are the numpy type kinds it may have (i, u, f, b).

        With `dtype` it is converted piece by piece. Whole numbers that do not fit are an error.
        Cost: the array in its new type, and pieces of a few MB.
        """
        with self._open(name) as (file, shape, found, fortran):
            if found.kind not in kinds or len(shape) != ndim:
                wanted = ("", "a list", "a matrix")[ndim] + f" of {_WORDS[kinds]}"
                raise self._wrong(name, wanted, found, shape)
            count = int(np.prod(shape, dtype=object))
            need(count * np.dtype(dtype or found).itemsize, f"array {name!r} of {self.path}", _WAY)
            flat: Array = np.empty(count, dtype or found)
            place = 0
            for piece in _pieces(file, found, flat.size):
                self._check_fit(piece, flat.dtype, name)
                with np.errstate(over="ignore"):  # too large for float32: infinity
                    flat[place : place + piece.size] = piece
                place += piece.size
        return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array by its header alone."""
        with self._open(name) as (_, shape, _, _):
            return shape

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype[Any], bool]]:
        if name not in self._members:
            raise InputError(f"{self.path} has no array {name!r}; {self._holds}")
        info = self._members[name]
        try:
            with self._archive.open(info) as file:
                shape, fortran, dtype = _header(file, info)
                yield file, shape, dtype, fortran
        except InputError:
            raise
        except DAMAGE as error:
            raise InputError(
                f"array {name!r} of {self.path} is damaged or not made of numbers; fetch the file "
                "again from its source"
            ) from error

    def _wrong(
        self, name: str, wanted: str, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> InputError:
        return InputError(
            f"array {name!r} of {self.path} must be {wanted}, not {dtype} of shape {shape}"
        )

    def _check_fit(self, piece: Array, dtype: np.dtype[Any], name: str) -> None:
        if dtype.kind == "b" and piece.dtype.kind == "f" and not np.isfinite(piece).all():
            raise InputError(
                f"array {name!r} of {self.path} holds NaN or infinity; fetch the file again from "
                "its source"
            )
        if dtype.kind not in "iu" or np.can_cast(piece.dtype, dtype) or not piece.size:
            return
        limits = np.iinfo(dtype)
        low, high = int(piece.min()), int(piece.max())
        if low < limits.min or high > limits.max:
            raise InputError(
                f"array {name!r} of {self.path} holds {low if low < limits.min else high}, which "
                "is too large; fetch the file again from its source"
            )


def open_zip(path: Path, kind: str = "a zip file") -> zipfile.ZipFile:
    """A zip, open; one that cannot be is an error that names its path."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path")
    try:
        return zipfile.ZipFile(path)
    except DAMAGE as error:
        raise InputError(
            f"{path} is damaged or not {kind}; fetch it again from its source"
        ) from error


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


def _header(file: IO[bytes], info: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array, which must agree with the bytes there are."""
    shape, fortran, dtype = _told(file)
    if dtype.hasobject:
        raise ValueError("an object array, which only pickle could read")
    # nothing is allocated on the word of a header: it must agree with the size of the member,
    # and that with what its compressed bytes can hold
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if min(shape, default=0) < 0 or size != info.file_size - file.tell():
        raise ValueError("the shape does not fit the bytes")
    if info.file_size > _DEFLATE_LIMIT * max(info.compress_size, 1):
        raise ValueError("larger than its compressed bytes can be")
    return shape, fortran, dtype


def _told(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """What a header says; a `ValueError` where it says nothing, whatever NumPy makes of that."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("a version for named fields only")
    read = np.lib.format.read_array_header_1_0
    if version == (2, 0):
        read = np.lib.format.read_array_header_2_0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a header that Python 2 wrote
            return read(file)
    except (SyntaxError, tokenize.TokenError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError("no header of an array") from error


def _pieces(file: IO[bytes], dtype: np.dtype[Any], count: int) -> Iterator[Array]:
    step = max(1, _PIECE // max(dtype.itemsize, 1))
    left = count
    while left:
        wanted = min(step, left) * dtype.itemsize
        data = file.read(wanted)
        if len(data) != wanted:
            raise EOFError
        yield np.frombuffer(data, dtype)
        left -= len(data) // dtype.itemsize
    if file.read(1):  # also makes zipfile compare the checksum of an empty array
        raise ValueError("more bytes than the shape needs")
