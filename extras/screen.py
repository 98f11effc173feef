"""What `undrift results` shows on a terminal: cells, and the columns that fit."""

import json
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from undrift.reporting.terminal import plain_table

_LONGEST = 36  # of a cell: hyperparameters and hashes can be longer
_GAP = 2


def shown(name: str, value: object) -> str:
    """A cell as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        exact = name.startswith("param_") or (value != 0 and abs(value) < 0.01)
        return f"{value:.3g}" if exact else f"{value:.2f}"
    if name == "params":
        try:
            return " ".join(f"{k}={_plain(v)}" for k, v in json.loads(str(value)).items())
        except (ValueError, AttributeError):  # a query may call anything params
            pass
    return str(value)


def fitting(
    names: Sequence[str], cells: Sequence[Sequence[str]], width: int, given_up: Sequence[str] = ()
) -> list[int]:
    """Which columns fit into `width` characters, at least one; `given_up` go first, in order."""
    widths = [
        min(_LONGEST, max([len(name), *(len(row[i]) for row in cells)])) + _GAP
        for i, name in enumerate(names)
    ]
    kept = list(range(len(names)))
    goes = [names.index(name) for name in given_up if name in names]
    goes += [i for i in reversed(kept) if i not in goes]
    for i in goes:
        if sum(widths[k] for k in kept) - _GAP <= width or len(kept) == 1:
            break
        kept.remove(i)
    return kept


def query_table(
    names: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool]
) -> Table:
    """The table of these cells; the columns that are `numbers` stand to the right."""
    table = plain_table(None)
    for name, number in zip(names, numbers, strict=True):
        kind: dict[str, Any] = {"justify": "right" if number else "left", "no_wrap": True}
        table.add_column(Text(name), overflow="ellipsis", max_width=_LONGEST, **kind)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_plain(part) for part in value)
    return value if isinstance(value, str) else json.dumps(value)
