"""`undrift streams`: what there is to learn from."""

from pkgutil import resolve_name
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from undrift.cli.console import output, progress_console
from undrift.cli.options import Whole
from undrift.streams.arrival import BY_CLASS, parse_arrival


def streams(
    *,
    show: Annotated[str | None, Parameter(show_default=False)] = None,
    arrive: str = BY_CLASS,
    seed: Whole = 0,
) -> None:
    """List the streams: size, tasks, source, on disk or not; or show one.

    Tasks read as: how many (classes of the first + later tasks x classes of each). A stand-in is
    generated data of the size and shape of a benchmark. A clone of the repository brings three.
    Files are looked for in the folder named by the environment variable UNDRIFT_DATA.

    For example:

        undrift streams
        UNDRIFT_DATA=~/graphs undrift streams
        undrift streams --show cs-cl
        undrift streams --show arxiv-cl@directed          citations go one way

    :param show: A stream, by its name or as the path of a stream.toml: print its tasks with their
        classes, nodes per split, edges kept and dropped, and class imbalance rho_t; or its periods
        with their sessions, clicks, items, new items and cases.
    :param arrive: How the nodes of the stream that is shown arrive, as in undrift run.
    :param seed: Decides the split that is shown.
    """
    from undrift.reporting.terminal import streams_table
    from undrift.streams.benchmarks import load_stream, stream_info, usable_streams
    from undrift.streams.file import is_stream_file, load_stream_file

    console, arrival = output(), parse_arrival(arrive)
    if show is None:
        console.print(streams_table(usable_streams()))
        return
    with progress_console().status(f"loading {show}"):
        own = is_stream_file(show)
        stream = (load_stream_file if own else load_stream)(show, seed)
        published = None if own else stream_info(show).counts["edges"]
        shown = stream.arranged(arrival)
        parts = resolve_name(shown.overview)(shown, shown.describe(), published)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
