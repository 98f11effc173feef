"""Rows of a query as a table that fits the terminal. Does not import torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from undrift.reporting.terminal.run_tables import plain_table

_LONGEST = 36  # of a cell: hyperparameters and hashes can be longer
_GAP = 2


def shown(name: str, value: object) -> str:
    """A cell as a person reads it.

    >>> shown("a_f", 84.6158), shown("param_gamma", 0.001), shown("stand_in", True)
    ('84.62', '0.001', 'yes')
    >>> shown("params", '{"gamma": 0.1, "hidden": [8, 8]}')
    'gamma=0.1 hidden=8,8'
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        exact = name.startswith("param_") or (value != 0 and abs(value) < 0.01)
        return f"{value:.3g}" if exact else f"{value:.2f}"
    if name == "params":
        return _settings(str(value))
    return str(value)


def fitting(
    names: Sequence[str], cells: Sequence[Sequence[str]], width: int, given_up: Sequence[str] = ()
) -> list[int]:
    """Which columns fit side by side into `width` characters; always at least the first.

    The columns named in `given_up` go first, in that order, and then those at the right.
    """
    room = [
        min(_LONGEST, max([len(name), *(len(row[i]) for row in cells)])) + _GAP
        for i, name in enumerate(names)
    ]
    kept = list(range(len(names)))
    goes = [names.index(name) for name in given_up if name in names]
    goes += [i for i in reversed(kept) if i not in goes]
    for i in goes:
        if sum(room[k] for k in kept) - _GAP <= width or len(kept) == 1:
            break
        kept.remove(i)
    return kept


def query_table(
    names: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool]
) -> Table:
    """The table of these cells; the columns that are `numbers` stand to the right."""
    table = plain_table(None)
    for name, number in zip(names, numbers, strict=True):
        side: Literal["left", "right"] = "right" if number else "left"
        fits: dict[str, Any] = {"overflow": "ellipsis", "max_width": _LONGEST}
        table.add_column(Text(name), justify=side, no_wrap=True, **fits)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _settings(params: str) -> str:
    try:
        settings = json.loads(params)
        return " ".join(f"{name}={_plain(value)}" for name, value in settings.items())
    except (ValueError, AttributeError):  # a query may call anything params
        return params


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_plain(part) for part in value)
    return value if isinstance(value, str) else json.dumps(value)
