"""Damage to bytes, as disks, copies and editors do it."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

Damage = Callable[[Random, bytearray], None]

_NUMBERS = (0, 1, -1, 2, 255, 2**15, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
_FOREIGN = (
    b"",
    b"\0" * 64,
    b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }",
    b"PK\x03\x04 this is no zip",
    b"PAR1 nor a table PAR1",
    b"ustar  \0 nor an archive",
    b"\x1f\x8b\x08\x00 nor gzip",
    b"\x80\x04cos\nsystem\n(S'true'\ntR.",  # a pickle that would run a command
    b"<html>404 not found</html>",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    b"{}",
    b"[" * 3000,
)


def damage_bytes(random: Random, data: bytes) -> tuple[bytes, str]:
    """The bytes with one to four things done to them, and which."""
    if random.random() < 0.03:
        return random.choice(_FOREIGN), "another content"
    found = bytearray(data)
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        step = random.choice(_STEPS)
        step(random, found)
        done.append(step.__name__.strip("_"))
    return bytes(found), " and ".join(done)


def damage_file(random: Random, path: Path) -> str:
    """Damage a file; what was done."""
    data, done = damage_bytes(random, path.read_bytes())
    path.write_bytes(data)
    return f"{path.name}: {done}"


def no_file(random: Random, path: Path) -> str:
    """Put something else in the place of a file: a link, a pipe, a folder; what it is."""
    path.unlink()
    kind = random.choice(
        ("a link out", "a link to itself", "a link to a device", "a pipe", "a folder")
    )
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        # nothing is there: a verb that writes through the link makes it, which a case notices
        out = path.parents[2] / "written outside"
        path.symlink_to({"a link out": out, "a link to itself": path}.get(kind, os.devnull))
    return f"{path.name}: {kind}"


def _flip(random: Random, data: bytearray) -> None:
    if data:
        data[_place(random, data)] ^= 1 << random.randrange(8)


def _set(random: Random, data: bytearray) -> None:
    if data:
        data[_place(random, data)] = random.choice((0, 255, 10, 34, 44, random.randrange(256)))


def _number(random: Random, data: bytearray) -> None:
    code = random.choice(["<q", "<i", ">q", ">i", "<h"])
    number = random.choice(_NUMBERS)
    bits = 8 * struct.calcsize(code)
    number = (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    at = _place(random, data) if data else 0
    data[at : at + bits // 8] = struct.pack(code, number)


def _cut(random: Random, data: bytearray) -> None:
    del data[_place(random, data) if data else 0 :]


def _drop(random: Random, data: bytearray) -> None:
    at = _place(random, data) if data else 0
    del data[at : at + random.choice((1, 1, 2, 8, 64))]


def _repeat(random: Random, data: bytearray) -> None:
    at = _place(random, data) if data else 0
    piece = data[at : at + random.choice((1, 4, 32, 256))]
    data[at:at] = piece * random.choice((1, 1, 3))


def _insert(random: Random, data: bytearray) -> None:
    at = _place(random, data) if data else 0
    data[at:at] = random.randbytes(random.choice((1, 4, 16)))


def _swap(random: Random, data: bytearray) -> None:
    size = random.choice((1, 8, 64))
    a, b = sorted((_place(random, data), _place(random, data))) if data else (0, 0)
    if a + size <= b:
        data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def _zeros(random: Random, data: bytearray) -> None:
    at = _place(random, data) if data else 0
    stop = min(len(data), at + random.choice((1, 16, 512, 4096)))  # a sector never written
    data[at:stop] = bytes(stop - at)


def _append(random: Random, data: bytearray) -> None:
    data += random.choice((b"\0", b"\n", b"}", random.randbytes(20), bytes(data[:200])))


_STEPS: tuple[Damage, ...] = (
    _flip,
    _flip,
    _set,
    _number,
    _cut,
    _drop,
    _repeat,
    _insert,
    _swap,
    _zeros,
    _append,
)


def _place(random: Random, data: bytearray) -> int:
    """Anywhere; more often near the ends, where headers and directories are."""
    n = len(data)
    near = min(n, 200)
    return random.choice(
        (random.randrange(n), random.randrange(near), n - 1 - random.randrange(near))
    )
