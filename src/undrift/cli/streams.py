"""`undrift streams`: what there is to learn from."""

from __future__ import annotations

__all__ = ["streams"]


def streams() -> None:
    """List the streams: their size, their tasks, their source, and whether they are on disk.

    "tasks" reads as number (classes of the first + later tasks x classes of each). Files are
    looked for in the folder named by the environment variable UNDRIFT_DATA.
    """
    from undrift.cli.console import output
    from undrift.reporting.tables import streams_table
    from undrift.streams.benchmarks import STREAMS

    output().print(streams_table(STREAMS.values()))
