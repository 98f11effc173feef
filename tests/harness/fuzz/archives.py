"""Changes to what is inside zips, `.npy` and safetensors files, written whole again."""

import gzip
import io
import struct
import warnings
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.harness.fuzz.changes import change_json, damage_bytes

_KINDS = ["<i1", "<i2", "<i4", "<i8", "<u1", "<u8", ">i4", "<f2", "<f4", "<f8", ">f8", "|b1"]
_KINDS += ["<c16", "<U3", "|S4", "<M8[D]", "|V3"]
_ODD = (0, 1, -1, 2, 5, 2**31 - 1, -(2**31), 2**62, np.nan, np.inf, -np.inf, 1e308, 0.5)
_PATHS = ("../out", "/abs", "a/../../out", "C:\\out", "..\\out", "a/b/c", "", ".", "x\0.npy")
_PACKED = (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_LINES = (b"", b"x", b"1e999", b"nan", b"-1", b"1,2,3,4,5", b"\xff", b"9" * 40)


def change_zip(random: Random, path: Path, inside: Any) -> str:
    """Write a zip again with one member changed by `inside(random, data)`, or its list of them."""
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    i = random.randrange(len(members))
    name, data = members[i]
    kind = random.random()
    if kind < 0.6:
        data, done = inside(random, data)
        members[i] = (name, data)
    elif kind < 0.7:
        del members[i]
        done = "gone"
    elif kind < 0.8:
        members.insert(random.randrange(len(members)), members[i])
        done = "twice"
    else:
        other = random.choice((*_PATHS, f"../{name}", f"a/{name}", name.upper()))
        members[i : i + (kind < 0.9)] = [(other, data)]
        done = f"also or only {other!r}"
    path.write_bytes(_zipped(random, members))
    return f"{path.name}, {name}: {done}"


def _zipped(random: Random, members: list[tuple[str, bytes]]) -> bytes:
    file, how = io.BytesIO(), random.choice(_PACKED)
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")  # a name that stands twice
        for name, data in members:
            info = zipfile.ZipInfo(name or "x")
            info.compress_type = how
            if random.random() < 0.03:
                info.external_attr = 0o120777 << 16  # a link
            archive.writestr(info, data)
    made = bytearray(file.getvalue())
    if random.random() < 0.15:  # the directory says something else than the members
        at = made.rfind(b"PK\x01\x02")
        field = random.choice((8, 10, 16, 20, 24, 28, 42))  # flags, method, CRC, sizes, offset
        size = 2 if field in (8, 10, 28) else 4
        made[at + field : at + field + size] = random.randbytes(size)
    return bytes(made)


def change_npy(random: Random, data: bytes) -> tuple[bytes, str]:
    """An array with some values, its type, its shape or its header changed."""
    kind = random.random()
    if kind < 0.2:
        return damage_bytes(random, data)
    if kind < 0.4:
        return _other_header(random, data)
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except ValueError:
        return damage_bytes(random, data)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array, done = _other_array(random, array)
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue(), done


def _other_array(random: Random, array: Any) -> tuple[Any, str]:
    kind, line = random.random(), np.atleast_1d(array)
    if kind < 0.35 and array.size and array.dtype.kind in "iufb":
        at = random.randrange(array.size)
        value = random.choice((*_ODD, array.flat[random.randrange(array.size)]))
        try:
            array = array.copy()
            array.flat[at] = value
        except (ValueError, OverflowError):
            array = array.astype(np.float64)
            array.flat[at] = value
        return array, f"value {value} at {at}"
    if kind < 0.55:
        name = random.choice(_KINDS)
        try:
            return array.astype(name), f"as {name}"
        except (ValueError, TypeError):
            return np.zeros(array.shape, name), f"zeros as {name}"
    if kind < 0.7:
        cut = random.choice((0, 1, max(0, len(line) - 1)))
        return line[:cut], f"the first {cut}"
    if kind < 0.8:
        return np.concatenate([line] * 2), "twice as long"
    if kind < 0.9:
        shape = random.choice(((-1, 1), (1, -1), (-1,), (1, 1, -1)))
        return array.reshape(shape), f"of shape {shape}"
    if kind < 0.95:
        return np.asfortranarray(array.T), "turned"
    return np.array([{"an": "object"}, None], dtype=object), "objects"


def _other_header(random: Random, data: bytes) -> tuple[bytes, str]:
    """The text of the header changed: what it says of type, order and shape."""
    size = struct.unpack("<H", data[8:10])[0]
    text = data[10 : 10 + size].decode("latin-1").rstrip()
    shape, huge = "'shape': (", 10 ** random.randrange(1, 30)
    changes = [(shape, f"{shape}{more}, ") for more in ("2", huge, "-1", "True")]
    changes += [("'descr': '<", "'descr': '>"), ("'descr': '", "'descr': '|O', 'x': '")]
    changes += [("False", "True"), ("'descr'", "'x'"), ("{", "{" * 200)]
    changes += [("(", "(__import__('os').getpid(), "), ("i8", "f8"), ("f4", "i4")]
    old, new = random.choice(changes)
    text = text.replace(old, new, 1)
    padded = text.encode() + b" " * (-(len(text) + 11) % 64) + b"\n"
    version = random.choice((b"\x01\x00",) * 4 + (b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(padded))
    made = b"\x93NUMPY" + version + length + padded + data[10 + size :]
    return made, f"header {old} -> {new[:40]}"


def change_csv_gz(random: Random, data: bytes) -> tuple[bytes, str]:
    """A gzipped text with a line changed."""
    lines = gzip.decompress(data).split(b"\n")
    i = random.randrange(len(lines))
    kind = random.random()
    if kind < 0.2:
        return damage_bytes(random, data)
    if kind < 0.4:
        lines[i] = random.choice(_LINES)
    elif kind < 0.6:
        lines.insert(i, lines[i])
    elif kind < 0.8:
        del lines[i]
    else:
        lines[i], _ = damage_bytes(random, lines[i])
    return gzip.compress(b"\n".join(lines), mtime=0), f"line {i + 1}"


def change_safetensors(random: Random, data: bytes) -> tuple[bytes, str]:
    """The header of a safetensors file changed: names, types, shapes, places, texts."""
    size = struct.unpack("<Q", data[:8])[0]
    header, done = change_json(random, data[8 : 8 + size])
    told = len(header)
    if random.random() < 0.1:
        told = random.choice((0, 1, told - 1, 2**40, 2**63))
    return struct.pack("<Q", told) + header + data[8 + size :], f"header: {done}"
