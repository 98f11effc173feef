"""Durations, sizes, shares and names as people read them, each in one way everywhere."""

from collections.abc import Iterable, Sequence

_MOST = 1e30  # bytes: no number of a file or a person is taken for more


def duration(seconds: float) -> str:
    """A time in the unit that suits it: `5.2 s`, `2.5 min`, `2.0 h`."""
    if seconds < 99.5:
        return f"{seconds:.{2 if seconds < 0.995 else 1 if seconds < 9.95 else 0}f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def size(count: float) -> str:
    """A number of bytes, in powers of 1000: `12 B`, `4.5 kB`, `270.4 MB`."""
    count = min(count, _MOST)
    if count < 999.5:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:,.1f} TB"


def counted(n: int, one: str, more: str | None = None) -> str:
    """How many of a thing, as in `1 batch` or `1,200 nodes`."""
    return f"{n:,} {one if n == 1 else more or f'{one}s'}"


def some_of(words: Sequence[str], most: int, more: str = "more", between: str = ", ") -> str:
    """Words in a row; of many the first ones, and how many more there are."""
    rest = len(words) - most
    return between.join(words[:most]) + (f" and {rest:,} {more}" if rest > 0 else "")


def percent(share: float, digits: int = 1) -> str:
    """A share of one in percent, as in `12.3 %`."""
    return f"{100 * share:.{digits}f} %"


def class_columns(names: Iterable[str]) -> list[str]:
    """The columns for the probability of each class, none twice: SQL does not tell `a` from `A`."""
    columns: dict[str, str] = {}
    for name in names:
        column, number = f"p_{name}", 2
        while column.lower() in columns:
            column, number = f"p_{name}_{number}", number + 1
        columns[column.lower()] = column
    return list(columns.values())
