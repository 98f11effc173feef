"""How nodes arrive, as a text such as `blurry:disjoint=0.5`. Reading one does not import torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from undrift.errors import InputError, unknown_name

BY_CLASS = "classes"
"""The arrival of a stream as it is: the classes of a task arrive together and do not return."""


@dataclass(frozen=True)
class Option:
    """What may stand after the colon: its default, what it must be, and which values are."""

    default: Any
    must: str
    fits: Callable[[Any], bool]
    kind: type = str


_COUNT = Option(None, "a whole number of at least 1", lambda n: n >= 1, int)
_SHARE = Option(0.5, "a share from 0 to 1", lambda share: 0.0 <= share <= 1.0, float)
_CONTEXT = {"context": Option("none", "none or seen", ("none", "seen").__contains__)}
_BLURRY = {"disjoint": _SHARE, "blurry": replace(_SHARE, default=0.1)}
_ORDER = Option("random", "random or given", ("random", "given").__contains__)
ARRIVALS: dict[str, dict[str, Option]] = {
    BY_CLASS: {},
    "time": {"periods": _COUNT, **_CONTEXT},
    "blurry": {**_BLURRY, "batches": _COUNT, **_CONTEXT},
    "domain": {"batches": _COUNT, "regions": replace(_COUNT, default=8), **_CONTEXT},
    "online": {"batch": replace(_COUNT, default=64), "order": _ORDER, **_CONTEXT},
}
"""Every arrival with its options; docs/arrivals.md says what they mean."""


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
        options = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.options.items()
            if value != ARRIVALS[self.name][name].default
        ]
        return f"{self.name}:{','.join(options)}" if options else self.name


@lru_cache(maxsize=256)
def parse_arrival(text: str) -> Arrival:
    """An arrival from its text: a name, and options after a colon."""
    name, colon, rest = text.strip().partition(":")
    if name not in ARRIVALS:
        raise unknown_name("arrival", name, ARRIVALS)
    known = ARRIVALS[name]
    found = {key: option.default for key, option in known.items()}
    for part in rest.split(",") if colon else []:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not key:
            raise InputError(f"arrival {text!r} needs name=value after the colon, as disjoint=0.5")
        if not known:
            raise InputError(f"arrival {name!r} takes no option; leave {part!r} out")
        if key not in known:
            raise unknown_name(f"option of arrival {name!r}", key, known)
        try:
            found[key] = known[key].kind(value)
            fits = known[key].fits(found[key])
        except ValueError:
            fits = False
        if not fits:
            raise InputError(f"{key} of arrival {text!r} must be {known[key].must}, not {value!r}")
    return Arrival(name, found)


def place_of(stream: str, arrive: str) -> str:
    """A stream and how its nodes arrive in one word, as in `cs-cl+online:batch=8`."""
    return stream if arrive == BY_CLASS else f"{stream}+{arrive}"


def split_place(place: str) -> tuple[str, str]:
    """The stream and the arrival of a place (`place_of`)."""
    stream, plus, arrive = place.rpartition("+")
    known = plus and arrive.partition(":")[0] in ARRIVALS
    return (stream, arrive) if known else (place, BY_CLASS)
