"""Columns matched by name, and classes that keep their number whatever file they come in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from shlex import quote

from undrift.datasets.columns import ignoring
from undrift.errors import InputError

CHANGED = "docs/first-year.md, When columns change"
"""Where it is written what to do about columns that come and go."""

_SHOWN = 4
_NOTHING = frozenset({"nan", "na", "n/a", "null", "none", "nil", "?", "-", "unknown", "unlabelled"})


def matched_columns(
    there: Sequence[str],
    known: Sequence[str] | None,
    where: str,
    neutral: Mapping[str, float] | None = None,
) -> tuple[str, ...]:
    """The columns to read, in the order that was learned; others than those are an error.

    `neutral`: of every column learned, a number that tells nothing; 0 where it is not there.

    >>> matched_columns(["b", "a"], ["a", "b"], "nodes.csv")
    ('a', 'b')
    """
    if known is None:
        return tuple(there)
    lacking = [name for name in known if name not in there]
    strange = [name for name in there if name not in known]
    if lacking or strange:
        parts = []
        if lacking:
            parts.append(
                f"lacks {len(lacking)} of the {len(known)} columns learned: {_few(lacking)}"
            )
        if strange:
            plural = "s" * (len(strange) > 1)
            parts.append(f"has {len(strange)} column{plural} not learned: {_few(strange)}")
        fixes = [_lacking(lacking, strange, neutral or {})] if lacking else []
        if strange:
            fixes.append(f"to go on without what is new, add {ignoring(strange)}")
        raise InputError(
            f"{where} {' and '.join(parts)}; {'; '.join(fixes)}; to learn from other columns, make "
            f"a new learner ({CHANGED})"
        )
    return tuple(known)


def _lacking(lacking: Sequence[str], strange: Sequence[str], neutral: Mapping[str, float]) -> str:
    """What to do to a file that lacks columns: rename one that looks like it, or add it."""
    folded = {_folded(name): name for name in strange}
    for name in lacking:
        near = get_close_matches(_folded(name), folded, n=1, cutoff=0.75)
        if near:
            return f"rename {folded[near[0]]!r} to {name!r}, if they are one"
    cells = [f"{name!r} with {neutral.get(name, 0.0):.9g}" for name in lacking[:_SHOWN]]
    more = f" and {len(lacking) - _SHOWN} more with their centre" * (len(lacking) > _SHOWN)
    return (
        f"if nobody knows the numbers, add {', '.join(cells)}{more} in every row: it tells nothing"
    )


def class_name(text: str) -> str:
    """A label as a name: without blanks around it, whole numbers without a point.

    >>> class_name(" mule "), class_name("3.0"), class_name("1.5")
    ('mule', '3', '1.5')
    """
    text = text.strip()
    whole, point, rest = text.partition(".")
    number = point and whole.removeprefix("-").isdecimal() and rest and not rest.strip("0")
    return whole if number else text


def numbered(
    names: Iterable[str], known: Mapping[str, int], past: Collection[int]
) -> dict[str, int]:
    """The known classes and the new ones: a number is its own id while that is free.

    Any other new name has the next id; no id is used twice, even if its class was forgotten.

    >>> numbered(["mule", "fine"], {"fine": 0}, past=[1])
    {'fine': 0, 'mule': 2}
    >>> numbered(["7", "3"], {}, past=[])
    {'7': 7, '3': 3}
    """
    ids = dict(known)
    for name in names:
        if name not in ids:
            taken = {*ids.values(), *past}
            own = (
                int(name) if name.isdecimal() and len(name) < 16 and str(int(name)) == name else -1
            )
            ids[name] = own if own >= 0 and own not in taken else max(taken, default=-1) + 1
    return ids


def look_alikes(names: Iterable[str], known: Collection[str]) -> list[str]:
    """A sentence for every new class whose name suggests that it is none of its own.

    It differs from a known one in case or spaces only, or is what programs write for no label.

    >>> look_alikes(["Mule "], ["mule"])[0][:45]
    "class 'Mule ' is new and differs from 'mule' "
    """
    found = []
    for name in names:
        if name in known:
            continue
        other = same_but_for_case(name, known)
        if other is not None:
            alias = quote(f"{name}={other}")
            found.append(
                f"class {name!r} is new and differs from {other!r} in case or spaces only; if they "
                f"are one, forget this batch and observe it with --alias {alias}, or correct the "
                "file"
            )
        elif _folded(name) in _NOTHING:
            found.append(
                f"class {name!r} is new; if it means that the label is not known, forget this "
                "batch and observe it with empty cells there"
            )
    return found


def same_but_for_case(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs in case or spaces only.

    >>> same_but_for_case("Money Mule", ["fine", "moneymule"])
    'moneymule'
    """
    return {_folded(other): other for other in known}.get(_folded(name))


def _folded(name: str) -> str:
    return "".join(name.casefold().split())


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
