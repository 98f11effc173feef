"""`undrift streams`: what there is to learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from undrift.cli.options import Whole
from undrift.streams.arrival import BY_CLASS, parse_arrival

if TYPE_CHECKING:
    from undrift.streams.stream import TaskStream


def streams(
    *,
    show: Annotated[str | None, Parameter(show_default=False)] = None,
    arrive: str = BY_CLASS,
    seed: Whole = 0,
) -> None:
    """List the streams: their size, their tasks, their source, and whether they are on disk.

    "tasks" reads as number (classes of the first + later tasks x classes of each). Files are
    looked for in the folder named by the environment variable UNDRIFT_DATA.

    Parameters
    ----------
    show
        A stream, by its name or as the path of a stream.toml: print its tasks with their
        classes, nodes per split, edges kept and dropped, and class imbalance rho_t.
    arrive
        How the nodes of the stream that is shown arrive, as in undrift run.
    seed
        Decides the split that is shown.
    """
    from undrift.cli.console import output

    console = output()
    if show is None:
        from undrift.reporting.terminal import streams_table
        from undrift.streams.benchmarks import usable_streams

        console.print(streams_table(usable_streams()))
        return
    from undrift.cli.console import progress_console
    from undrift.reporting.terminal import stream_header, tasks_table
    from undrift.streams.arrange import arrange

    with progress_console().status(f"loading {show}"):
        arrival = parse_arrival(arrive)
        stream, published_edges = _load(show, seed)
        stream = arrange(stream, arrival)
        rows = stream.describe()
    for line in stream_header(stream, rows, published_edges):
        console.print(line, markup=False, soft_wrap=True)
    console.print("", tasks_table(rows))


def _load(name: str, seed: int) -> tuple[TaskStream, int | None]:
    """The stream, and its number of edges as published where it is a dataset's."""
    from undrift.streams.benchmarks import load_stream, stream_info
    from undrift.streams.file import is_stream_file, load_stream_file

    if is_stream_file(name):
        return load_stream_file(name, seed), None
    return load_stream(name, seed), stream_info(name).edges
