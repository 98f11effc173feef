"""Errors a user can act on: each message says what, where and how to fix it."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_WORD = 300  # characters: longer than the path of any file that people name
_TEXT = 2000
_CALLED = {"learning_rate": "lr", "hidden_channels": "hidden", "hidden_dim": "hidden"}  # elsewhere


class InputError(ValueError):
    r"""Bad input. The command line prints it as one sentence and exits with 2.

    It may quote a file: signs that a terminal would obey are escaped, and a very long word or
    text is shown in part.

    >>> print(InputError("there is no column 'a\x1b[2J'; name another"))
    there is no column 'a\x1b[2J'; name another
    """

    def __init__(self, sentence: object = "") -> None:
        text = re.sub(r" *[\r\n]+ *", " ", str(sentence))
        signs = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        words = (_part(word, _WORD) for word in "".join(signs).split(" "))
        super().__init__(_part(" ".join(words), _TEXT))


def _part(text: str, most: int) -> str:
    """The text, without its middle where it is too long: the end says how to fix it."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def not_installed(what: str, extra: str) -> InputError:
    """The error for what an optional package does: it says how to install it."""
    return InputError(f"{what}; install it with: pip install 'undrift[{extra}]'")


def unknown_name(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a list: it names the nearest and prints the list."""
    names = sorted(known)
    plain = {each.lower(): each for each in names}
    near = get_close_matches(_CALLED.get(name, name).lower(), plain, n=1, cutoff=0.55)
    hint = f" (did you mean {plain[near[0]]!r}?)" if near else ""
    return InputError(f"unknown {what} {name!r}{hint}; choose one of: {', '.join(names)}")
