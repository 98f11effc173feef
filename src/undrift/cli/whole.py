"""`Whole`: an option that is a whole number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token


def _whole(kind: type[int], tokens: Sequence[Token]) -> int:
    """The number as it is written: rounded, 1.5 would be a run that nobody asked for."""
    text = tokens[0].value
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


Whole = Annotated[int, Parameter(converter=_whole)]
