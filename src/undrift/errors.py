"""Errors a user can act on: each message says what, where and how to fix it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input. The command line prints it as one sentence and exits with 2."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a list: it names the nearest and prints the list.

    >>> print(unknown_name("stream", "cs", ["cs-cl", "synthetic"]))
    unknown stream 'cs' (did you mean 'cs-cl'?); choose one of: cs-cl, synthetic
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return InputError(f"unknown {what} {name!r}{hint}; choose one of: {', '.join(names)}")
