"""Paragraphs, lists and tables as Markdown that is also readable as text."""

from collections.abc import Iterable, Sequence
from textwrap import fill

__all__ = ["bullets", "grid", "prose"]

_WIDTH = 120


def grid(header: Sequence[str], sides: str, lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table; `sides` has `l` or `r` for every column.

    >>> print(grid(["a", "b"], "lr", [["x", "1"]]))
    | a | b |
    | :-- | --: |
    | x | 1 |
    """
    rule = ["--:" if side == "r" else ":--" for side in sides]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *lines))


def prose(text: str) -> str:
    r"""Paragraphs in lines of a width that a person reads; a word or a link is never broken.

    >>> print(prose("one\ntwo"))
    one two
    """
    return "\n\n".join(_filled(part) for part in text.strip().split("\n\n"))


def bullets(items: Iterable[str]) -> str:
    """A list, a point an item.

    >>> print(bullets(["one", "two"]))
    - one
    - two
    """
    return "\n".join(_filled(item, "- ") for item in items)


def _filled(text: str, mark: str = "") -> str:
    return fill(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
