"""The words that tables print for metrics, streams and rows. Does not import torch."""

from __future__ import annotations

from undrift.errors import InputError, unknown_name
from undrift.learners.registry import METHODS
from undrift.streams.benchmarks import stream_info

__all__ = ["LOWER_IS_BETTER", "METRICS", "check_metric", "row_label", "stream_title"]

METRICS = {"a_avg": "A_avg", "a_f": "A_f", "a_l": "A_l", "forgetting": "forgetting"}
LOWER_IS_BETTER = frozenset({"forgetting"})

_MERGES = {
    "none": "ADR without HAM",
    "average": "ADR with averaging",
    "fisher": "ADR with Fisher merging",
    "magmax": "ADR with MagMax",
    "ties": "ADR with TIES",
    "regmean": "ADR with RegMean",
    "ham": "ADR (HAM)",
}


def check_metric(name: str) -> None:
    """An unknown metric is an `InputError` that prints the list."""
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)


def stream_title(stream: str, *, stand_in: bool = False) -> str:
    """How a table names a stream; a stand-in always says so.

    A stream file goes by the end of its path.

    >>> stream_title("cs-cl"), stream_title("arxiv-cl-stand-in", stand_in=True)
    ('CS-CL', 'Arxiv-CL stand-in')
    >>> stream_title("reddit-cl-stand-in@0.01"), stream_title("data/papers/stream.toml")
    ('Reddit-CL stand-in@0.01', 'papers/stream.toml')
    >>> stream_title("data/papers/stream.toml", stand_in=True)
    'papers/stream.toml (stand-in)'
    """
    try:
        _, at, option = stream.partition("@")
        title = stream_info(stream).title + at + option
    except InputError:
        title = "/".join(stream.split("/")[-2:])
    return f"{title} (stand-in)" if stand_in and "stand-in" not in title.lower() else title


def row_label(row: str, method: str) -> str:
    """How a table names a row: a method's display name, with what the row changes about it.

    >>> row_label("ds-al", "ds-al"), row_label("none", "adr"), row_label("adr alpha=4", "adr")
    ('DS-AL', 'ADR without HAM', 'ADR alpha=4')
    >>> row_label("mine", "adr")
    'mine'
    """
    display = METHODS[method].display if method in METHODS else method
    if row == method:
        return display
    if method == "adr" and row in _MERGES:
        return _MERGES[row]
    if row.startswith(f"{method} "):
        return display + row.removeprefix(method)
    return row
