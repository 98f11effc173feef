"""How nodes arrive, as a text such as `blurry:disjoint=0.5`. Reading one does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from undrift.errors import InputError, unknown_name

BY_CLASS = "classes"
"""The arrival of a stream as it is: the classes of a task arrive together and do not return."""


@dataclass(frozen=True)
class Option:
    """A number or a word after the colon: its default, how it is read, and what it must be."""

    default: Any
    read: Callable[[str], Any]
    must: str


@dataclass(frozen=True)
class Arrival:
    """One way for nodes to arrive, with every option; `str` leaves the defaults out."""

    name: str
    options: Mapping[str, Any]

    @property
    def returns(self) -> bool:
        """Whether classes may come back in later batches."""
        return self.name != BY_CLASS

    def __str__(self) -> str:
        told = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.options.items()
            if value != ARRIVALS[self.name][name].default
        ]
        return f"{self.name}:{','.join(told)}" if told else self.name


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 <= share <= 1.0:
        raise ValueError
    return share


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if number < least:
            raise ValueError
        return number

    return read


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return read


_BATCHES = Option(None, _at_least(1), "a whole number of at least 1")
_SHARE = "a share from 0 to 1"
_CONTEXT = Option("none", _one_of("none", "seen"), "none or seen")

ARRIVALS: dict[str, dict[str, Option]] = {
    BY_CLASS: {},
    "time": {"periods": _BATCHES, "context": _CONTEXT},
    "blurry": {
        "disjoint": Option(0.5, _share, _SHARE),
        "blurry": Option(0.1, _share, _SHARE),
        "batches": _BATCHES,
        "context": _CONTEXT,
    },
    "domain": {
        "batches": _BATCHES,
        "regions": Option(8, _at_least(1), "a whole number of at least 1"),
        "context": _CONTEXT,
    },
    "online": {
        "batch": Option(64, _at_least(1), "a whole number of at least 1"),
        "order": Option("random", _one_of("random", "given"), "random or given"),
        "context": _CONTEXT,
    },
}
"""Every arrival with its options; docs/arrivals.md says what they mean."""


@lru_cache(maxsize=256)
def parse_arrival(text: str) -> Arrival:
    """An arrival from its text: a name, and options after a colon.

    >>> parse_arrival("blurry:blurry=0.3,disjoint=0.5").options["blurry"]
    0.3
    >>> str(parse_arrival("blurry:blurry=0.3,disjoint=0.5"))
    'blurry:blurry=0.3'
    """
    name, colon, rest = text.strip().partition(":")
    if name not in ARRIVALS:
        raise unknown_name("arrival", name, ARRIVALS)
    known = ARRIVALS[name]
    found = {key: option.default for key, option in known.items()}
    given = rest.split(",") if colon else []
    for part in given:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not key:
            raise InputError(
                f"arrival {text!r} needs name=value after the colon, as in "
                "blurry:disjoint=0.5,blurry=0.1"
            )
        if key not in known:
            if not known:
                raise InputError(f"arrival {name!r} takes no option; leave {part!r} out")
            raise unknown_name(f"option of arrival {name!r}", key, known)
        try:
            found[key] = known[key].read(value)
        except ValueError:
            raise InputError(
                f"{key} of arrival {text!r} must be {known[key].must}, not {value!r}"
            ) from None
    return Arrival(name, found)


def place_of(stream: str, arrive: str) -> str:
    """A stream and how its nodes arrive in one word: the column of a table.

    >>> place_of("cs-cl", "classes"), place_of("cs-cl", "online:batch=8")
    ('cs-cl', 'cs-cl+online:batch=8')
    """
    return stream if arrive == BY_CLASS else f"{stream}+{arrive}"


def split_place(place: str) -> tuple[str, str]:
    """The stream and the arrival of a place.

    >>> split_place("cs-cl"), split_place("my+data/stream.toml+blurry")
    (('cs-cl', 'classes'), ('my+data/stream.toml', 'blurry'))
    """
    stream, plus, arrive = place.rpartition("+")
    if plus and arrive.partition(":")[0] in ARRIVALS:
        return stream, arrive
    return place, BY_CLASS
