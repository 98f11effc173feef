"""Odd values in the place of good ones: in JSON, in TOML, in the cells of tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

NAMES = ("", " ", "a" * 5000, "ü", "\u202e", "../x", "/etc/passwd", "nan", "-1", "a\nb", "\ud800")
NUMBERS: tuple[Any, ...] = (0, -1, 1, 2, 3.5, -0.0, 1e308, 10**30, 2**63, 5e-324, 1e999, -1e999)
ODD: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, float("nan"))
CELLS: tuple[str, ...] = (
    "",
    " ",
    "nan",
    "inf",
    "-1",
    "1e999",
    "0x10",
    "1_0",
    "٣",
    "1,5",
    '"',
    "'",
    "\0",
    "a" * 9000,
)
CELLS += (
    "1e-400",
    "007",
    "-0",
    "+1",
    "1.0",
    " 1 ",
    "True",
    "null",
    "ü",
    "2021-02-30",
    "é\n",
    "1;2",
)


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
    return random.choice(
        (near, near, near, random.choice(NAMES), random.choice(NUMBERS), random.choice(ODD), deep)
    )


def change_tree(random: Random, tree: Any) -> str:
    """Change a dict or list somewhere inside; what was done, and where."""
    places = list(_places(tree, ()))
    if not places:
        return "nothing"
    path = random.choice(places)
    holder, key = tree, path[-1]
    for step in path[:-1]:
        holder = holder[step]
    where = ".".join(map(str, path))[:80]
    kind = random.random()
    if kind < 0.15:
        del holder[key]
        return f"{where} gone"
    if kind < 0.25 and isinstance(holder, dict):
        holder[random.choice((*NAMES[:6], f"{key}x"))] = odd_value(random)
        return f"a key beside {where}"
    if kind < 0.25 or (kind < 0.35 and isinstance(holder, list)):
        holder.insert(random.randrange(len(holder) + 1), random.choice(holder))
        return f"{where} repeated"
    if kind < 0.45:
        other = random.choice(places)
        there = tree
        for step in other:
            there = there[step]
        holder[key] = json.loads(_dumped(there))
        return f"{where} takes the value of {'.'.join(map(str, other))[:80]}"
    holder[key] = odd_value(random, holder[key])
    return f"{where} is {_dumped(holder[key])[:60]}"


def change_json(random: Random, text: bytes) -> tuple[bytes, str]:
    """JSON text with something changed inside, or only its looks."""
    tree = json.loads(text)
    if random.random() < 0.1:
        done = "only its looks"
        if isinstance(tree, dict):
            keys = list(tree)
            random.shuffle(keys)
            tree = {key: tree[key] for key in keys}
    else:
        done = change_tree(random, tree)
    indent = random.choice((None, None, 1, 7))
    return _dumped(tree, indent, random.random() < 0.5).encode("utf-8", "surrogatepass"), done


def change_toml(random: Random, text: str) -> tuple[str, str]:
    """A TOML text with a line or a value changed."""
    lines = text.splitlines()
    i = random.randrange(len(lines))
    done: Callable[[str], str] = f"line {i + 1}: {{}}".format
    kind = random.random()
    if kind < 0.1:
        del lines[i]
        told = done("gone")
    elif kind < 0.2:
        lines.insert(random.randrange(len(lines) + 1), lines[i])
        told = done("repeated")
    elif kind < 0.3:
        j = random.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        told = done(f"swapped with {j + 1}")
    elif kind < 0.4:
        lines.insert(i, random.choice(("x = 1", "[x]", "# ü", "[[graph]]", "= 1", "a.b.c = {}")))
        told = done(f"{lines[i]} before it")
    elif "=" in lines[i]:
        key, _, value = lines[i].partition("=")
        if kind < 0.5:
            key = re.sub(r"\w", "x", key, count=1)
        else:
            value = _toml_value(random, value)
        lines[i] = f"{key}={value}"
        told = done(lines[i][:60])
    else:
        lines[i] = random.choice(
            ("[", "[]", "[graph]", "[params]", f"[{lines[i]}]", f"{lines[i]}.x")
        )
        told = done(lines[i][:60])
    return "\n".join(lines) + random.choice(("\n", "", "\r\n")), told


def _toml_value(random: Random, value: str) -> str:
    plain: tuple[str, ...] = (
        "1",
        "0",
        "-1",
        "2.5",
        "true",
        "nan",
        "inf",
        '""',
        '"x"',
        "[]",
        "{}",
        "2021-01-01",
    )
    plain += ("10" * 200, '"' + "a" * 3000 + '"', "[" * 300 + "]" * 300, "1979-05-27T07:32:00Z")
    if random.random() < 0.4:
        return " " + random.choice(plain)
    if random.random() < 0.5:  # another item of its list, or another digit
        found = list(re.finditer(r'"[^"]*"|\d+(\.\d+)?', value))
        if found:
            spot = random.choice(found)
            item = random.choice(
                (*plain, '"cs-cl"', '"adr"', '"0"', "99", spot[0] + ", " + spot[0])
            )
            return value[: spot.start()] + item + value[spot.end() :]
    return f"[{value}, {value}]"


def _places(tree: Any, path: tuple[Any, ...]) -> Any:
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, part in items:
        yield (*path, key)
        yield from _places(part, (*path, key))


def _dumped(tree: Any, indent: int | None = None, plain: bool = True) -> str:
    return json.dumps(tree, indent=indent, ensure_ascii=plain)
