"""`undrift data`: the files that datasets are read from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from undrift.typing import Progress


def list_datasets() -> None:
    """List the datasets: graph, files, size, on disk or not, licence, source.

    Files are looked for in the folder named by the environment variable UNDRIFT_DATA, else in
    the platform's cache folder. The size is "-" where it is not known before the download.
    Generated stand-ins that are kept in the cache folder are listed with the command that removes
    them.
    """
    from undrift.cli.console import output
    from undrift.datasets.catalogue import DATASETS
    from undrift.datasets.folder import VARIABLE, data_folder, kept_stand_ins
    from undrift.formatting import size
    from undrift.reporting.terminal import data_table

    folder = data_folder()
    console = output()
    console.print(data_table(DATASETS.values(), folder), "")
    console.print(f"folder: {folder} (set {VARIABLE} for another)", soft_wrap=True)
    for kept in kept_stand_ins():
        way_out = f"undrift data remove {kept.name}"
        console.print(
            f"generated: {kept.path}, {size(kept.size)} (to remove it: {way_out})", soft_wrap=True
        )


def fetch(
    name: str,
    /,
    *,
    force: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    traceback: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> None:
    """Download a dataset from its official address.

    Files that are there and whole are kept. A download that breaks off is gone on with by the
    same command. Size and checksum are compared before a file takes its name.

    Parameters
    ----------
    name
        Which dataset; "undrift data list" lists them.
    force
        Download it again, even if it is there.
    traceback
        When the download fails, print where.
    """
    from undrift.cli.console import output, progress_console
    from undrift.datasets.catalogue import DATASETS
    from undrift.datasets.fetch import fetch as fetch_files

    with download_progress(progress_console()) as progress:
        paths = fetch_files(name, progress=progress, force=force)
    console = output()
    for path in paths:
        console.print(f"{name}: {path}", soft_wrap=True)
    then = f"undrift data check {name}, then: undrift run --stream {DATASETS[name].stream_name}"
    console.print(f"next: {then}", soft_wrap=True)


def check(
    name: str,
    /,
    *,
    accept: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    traceback: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> None:
    """Compare a dataset's files with their checksums and its graph with the published statistics.

    Nothing is written. Other bytes than the published ones are an error, where those are known.

    Parameters
    ----------
    name
        Which dataset; "undrift data list" lists them.
    accept
        Let other bytes than the published ones pass, as of a file that was saved again.
    traceback
        When the check fails unexpectedly, print where.
    """
    from undrift.cli.console import output
    from undrift.datasets.catalogue import DATASETS
    from undrift.datasets.fetch import check_dataset
    from undrift.reporting.terminal import files_table

    files = check_dataset(name, accept=accept)
    dataset = DATASETS[name]
    console = output()
    console.print(files_table(files), "")
    console.print(
        f"{name} has the published statistics: {dataset.nodes:,} nodes, {dataset.edges:,} edges, "
        f"{dataset.features:,} features, {dataset.classes} classes",
        soft_wrap=True,
    )


def remove(name: str, /) -> None:
    """Delete what is kept of a generated stand-in; it is made again when it is needed.

    Parameters
    ----------
    name
        Which stand-in: cora-full-stand-in, ogbn-arxiv-stand-in or reddit-stand-in.
    """
    from undrift.cli.console import output
    from undrift.datasets.folder import remove_stand_in
    from undrift.formatting import size

    console = output()
    found = remove_stand_in(name)
    for kept in found:
        console.print(f"removed: {kept.path}, {size(kept.size)}", soft_wrap=True)
    if not found:
        console.print(f"nothing is kept of {name}")


@contextmanager
def download_progress(console: Console) -> Iterator[Progress]:
    """A bar on a terminal; elsewhere a line per tenth of a file."""
    if not console.is_terminal:
        yield partial(_line, console, {})
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=None),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as bar:
        rows: dict[str, rich.TaskID] = {}

        def report(file: str, done: int, total: int) -> None:
            if file not in rows:
                rows[file] = bar.add_task(file)
            bar.update(rows[file], completed=done, total=total or None)

        yield report


def _line(console: Console, said: dict[str, int], file: str, done: int, total: int) -> None:
    from undrift.formatting import size

    tenth = 10 * done // total if total else 0
    if said.get(file) != tenth:
        said[file] = tenth
        console.print(f"{file}: {size(done)}" + (f" of {size(total)}" if total else ""))


def _examples(*commands: str) -> str:
    return "For example:\n\n" + "".join(f"    {command}\n" for command in commands)


_FOLDER = """
Files lie in the folder named by UNDRIFT_DATA, else in the platform's cache
folder. Generated stand-ins lie in the cache folder.
"""
_WORDS = ("list", "fetch", "check", "remove")
_LIST, _FETCH, _CHECK, _REMOVE = (f"undrift data {word}" for word in _WORDS)
_OF_CS = (f"{_FETCH} coauthor-cs", f"{_CHECK} coauthor-cs")
data = App(name="data", help_epilogue=_examples(_LIST, *_OF_CS) + _FOLDER, help_format="plaintext")
data.command(
    list_datasets, name="list", help_epilogue=_examples(_LIST, f"UNDRIFT_DATA=~/graphs {_LIST}")
)
data.command(
    fetch,
    name="fetch",
    help_epilogue=_examples(
        _OF_CS[0], f"UNDRIFT_DATA=~/graphs {_FETCH} reddit", f"{_FETCH} --force ogbn-arxiv"
    ),
)
data.command(
    check, name="check", help_epilogue=_examples(_OF_CS[1], f"{_CHECK} --accept amazon-photo")
)
data.command(remove, name="remove", help_epilogue=_examples(f"{_REMOVE} reddit-stand-in"))
