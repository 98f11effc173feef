"""Changes at random: to bytes, as disks and editors make them, and to what JSON and TOML say."""

import json
import os
import re
import struct
from pathlib import Path
from random import Random
from typing import Any

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
_STEPS = ["flip", "flip", "set", "number", "cut", "drop", "repeat", "insert", "swap", "zeros"]
_STEPS += ["append"]


def damage_bytes(random: Random, data: bytes) -> tuple[bytes, str]:
    """The bytes with one to four things done to them, and which."""
    if random.random() < 0.03:
        return random.choice(_FOREIGN), "another content"
    found = bytearray(data)
    done = random.choices(_STEPS, k=random.choice((1, 1, 1, 2, 4)))
    for step in done:
        _damage(random, step, found)
    return bytes(found), " and ".join(done)


def _damage(random: Random, step: str, data: bytearray) -> None:
    at = _place(random, data)
    if step == "flip" and data:
        data[at] ^= 1 << random.randrange(8)
    elif step == "set" and data:
        data[at] = random.choice((0, 255, 10, 34, 44, random.randrange(256)))
    elif step == "number":
        code = random.choice(["<q", "<i", ">q", ">i", "<h"])
        bits = 8 * struct.calcsize(code)
        number = (random.choice(_NUMBERS) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
        data[at : at + bits // 8] = struct.pack(code, number)
    elif step == "cut":
        del data[at:]
    elif step == "drop":
        del data[at : at + random.choice((1, 1, 2, 8, 64))]
    elif step == "repeat":
        piece = data[at : at + random.choice((1, 4, 32, 256))]
        data[at:at] = piece * random.choice((1, 1, 3))
    elif step == "insert":
        data[at:at] = random.randbytes(random.choice((1, 4, 16)))
    elif step == "swap":
        size = random.choice((1, 8, 64))
        a, b = sorted((at, _place(random, data)))
        if a + size <= b:
            data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]
    elif step == "zeros":
        stop = min(len(data), at + random.choice((1, 16, 512, 4096)))  # a sector never written
        data[at:stop] = bytes(stop - at)
    else:
        data += random.choice((b"\0", b"\n", b"}", random.randbytes(20), bytes(data[:200])))


def _place(random: Random, data: bytearray) -> int:
    """Anywhere; more often near the ends, where headers and directories are."""
    n = len(data)
    if not n:
        return 0
    near = random.randrange(min(n, 200))
    return random.choice((random.randrange(n), near, n - 1 - near))


def damage_file(random: Random, path: Path) -> str:
    """Damage a file; what was done."""
    return change_file(random, path, damage_bytes)


def change_file(random: Random, path: Path, change: Any) -> str:
    """Write what `change(random, data)` makes of a file; what was done."""
    data, done = change(random, path.read_bytes())
    path.write_bytes(data)
    return f"{path.name}: {done}"


def changing(pattern: str, damaged: float, *ways: Any) -> Any:
    """A change of one file of a folder: a share of `damaged` bytes, else a `way(random, path)`."""

    def change(random: Random, folder: Path) -> str:
        path = random.choice(sorted(folder.glob(pattern)))
        if random.random() < damaged:
            return damage_file(random, path)
        found: str = random.choice(ways)(random, path)
        return found

    return change


def no_file(random: Random, path: Path) -> str:
    """Put something else in the place of a file: a link, a pipe, a folder; what it is."""
    path.unlink()
    kind = random.choice(("a link out", "a link to itself", "a device", "a pipe", "a folder"))
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        # nothing is there: a verb that writes through the link makes it, which a case notices
        out = path.parents[2] / "written outside"
        path.symlink_to({"a link out": out, "a link to itself": path}.get(kind, os.devnull))
    return f"{path.name}: {kind}"


NAMES = ("", " ", "a" * 5000, "ü", "\u202e", "../x", "/etc/passwd", "nan", "-1", "a\nb", "\ud800")
NUMBERS: tuple[Any, ...] = (0, -1, 1, 2, 3.5, -0.0, 1e308, 10**30, 2**63, 5e-324, 1e999, -1e999)
ODD: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, float("nan"))
_TOML = ["1", "0", "-1", "2.5", "true", "nan", "inf", '""', '"x"', "[]", "{}", "2021-01-01"]
_TOML += ["1979-05-27T07:32:00Z", "10" * 200, '"' + "a" * 3000 + '"', "[" * 300 + "]" * 300]


def odd_value(random: Random, before: Any = None) -> Any:
    """Something else: near what was there, or nothing like it."""
    if isinstance(before, bool):
        near: Any = not before
    elif isinstance(before, int | float):
        near = random.choice((before + 1, before - 1, -before, before * 1000, str(before)))
    elif isinstance(before, str) and before:
        at = random.randrange(len(before))
        near = before[:at] + random.choice(("", "0", "x", before[at] * 2)) + before[at + 1 :]
    else:
        near = [before, before]
    deep: Any = 0
    for _ in range(random.choice((2, 50))):
        deep = [deep]
    others = (random.choice(NAMES), random.choice(NUMBERS), random.choice(ODD), deep)
    return random.choice((near, near, near, *others))


def change_tree(random: Random, tree: Any) -> str:
    """Change a dict or list somewhere inside; what was done, and where."""
    places = list(_places(tree, ()))
    if not places:
        return "nothing"
    path = random.choice(places)
    holder, key = _at(tree, path[:-1]), path[-1]
    where = ".".join(map(str, path))[:80]
    kind = random.random()
    if kind < 0.15:
        del holder[key]
        return f"{where} gone"
    if kind < 0.25 and isinstance(holder, dict):
        holder[random.choice((*NAMES[:6], f"{key}x"))] = odd_value(random)
        return f"a key beside {where}"
    if kind < 0.35 and isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), random.choice(holder))
        return f"{where} repeated"
    if kind < 0.45:
        other = random.choice(places)
        holder[key] = json.loads(json.dumps(_at(tree, other)))
        return f"{where} takes the value of {'.'.join(map(str, other))[:80]}"
    holder[key] = odd_value(random, holder[key])
    return f"{where} is {json.dumps(holder[key])[:60]}"


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _places(tree: Any, path: tuple[Any, ...]) -> Any:
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield (*path, key)
        yield from _places(tree[key], (*path, key))


def change_json(random: Random, text: bytes) -> tuple[bytes, str]:
    """JSON text with something changed inside, or only its looks."""
    tree = json.loads(text)
    if random.random() < 0.1:
        done = "only its looks"
        if isinstance(tree, dict):
            tree = dict(random.sample(list(tree.items()), len(tree)))
    else:
        done = change_tree(random, tree)
    plain = random.random() < 0.5
    made = json.dumps(tree, indent=random.choice((None, None, 1, 7)), ensure_ascii=plain)
    return made.encode("utf-8", "surrogatepass"), done


def change_toml(random: Random, text: str) -> tuple[str, str]:
    """A TOML text with a line or a value changed."""
    lines = text.splitlines()
    i, j = random.randrange(len(lines)), random.randrange(len(lines))
    told, kind = "", random.random()
    if kind < 0.1:
        told = f"{lines.pop(i)} gone"
    elif kind < 0.2:
        lines.insert(j, lines[i])
    elif kind < 0.3:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind < 0.4:
        lines.insert(i, random.choice(("x = 1", "[x]", "# ü", "[[graph]]", "= 1", "a.b.c = {}")))
    elif "=" in lines[i]:
        key, _, value = lines[i].partition("=")
        if kind < 0.5:
            key = re.sub(r"\w", "x", key, count=1)
        else:
            value = _toml_value(random, value)
        lines[i] = f"{key}={value}"
    else:
        odd = ("[", "[]", "[graph]", "[params]", f"[{lines[i]}]", f"{lines[i]}.x")
        lines[i] = random.choice(odd)
    told = told or f"now {lines[i][:60]}, beside line {j + 1}"
    return "\n".join(lines) + random.choice(("\n", "", "\r\n")), f"line {i + 1}: {told}"


def _toml_value(random: Random, value: str) -> str:
    if random.random() < 0.4:
        return " " + random.choice(_TOML)
    found = list(re.finditer(r'"[^"]*"|\d+(\.\d+)?', value))
    if found and random.random() < 0.5:  # another item of its list, or another digit
        spot = random.choice(found)
        item = random.choice((*_TOML, '"cs-cl"', '"adr"', '"0"', "99", f"{spot[0]}, {spot[0]}"))
        return value[: spot.start()] + item + value[spot.end() :]
    return f"[{value}, {value}]"
