"""`undrift data`: the files that datasets are read from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import DownloadColumn, TaskID, TimeRemainingColumn, TransferSpeedColumn

from undrift.cli.console import bar_of, output, progress_console, say
from undrift.cli.options import Flag, group
from undrift.formatting import size

if TYPE_CHECKING:
    from rich.console import Console

    from undrift.typing import Progress


def list_() -> None:
    """List the datasets: graph, files, size, on disk or not, licence, source.

    Files are looked for in the folder named by the environment variable UNDRIFT_DATA, else in
    the platform's cache folder. The size is "-" where it is not known before the download.
    Generated stand-ins that are kept in the cache folder are listed with the command that removes
    them.
    """
    from undrift.datasets.catalogue import DATASETS
    from undrift.datasets.folder import VARIABLE, data_folder, kept_stand_ins
    from undrift.reporting.terminal import data_table

    folder = data_folder()
    output().print(data_table(DATASETS.values(), folder), "")
    say(f"folder: {folder} (set {VARIABLE} for another)")
    for kept in kept_stand_ins():
        way_out = f"undrift data remove {kept.name}"
        say(f"generated: {kept.path}, {size(kept.size)} (to remove it: {way_out})")


def fetch(name: str, /, *, force: Flag = False) -> None:
    """Download a dataset from its official address.

    Files that are there and whole are kept. A download that breaks off is gone on with by the
    same command. Size and checksum are compared before a file takes its name.

    :param name: Which dataset; "undrift data list" lists them.
    :param force: Download it again, even if it is there.
    """
    from undrift.datasets.catalogue import DATASETS
    from undrift.datasets.fetch import fetch as fetch_files

    with download_progress(progress_console()) as progress:
        paths = fetch_files(name, progress=progress, force=force)
    for path in paths:
        say(f"{name}: {path}")
    say(f"next: undrift data check {name}, then: undrift run --stream {DATASETS[name].stream_name}")


def check(name: str, /, *, accept: Flag = False) -> None:
    """Compare a dataset's files with their checksums and its graph with the published statistics.

    Nothing is written. Other bytes than the published ones are an error, where those are known.

    :param name: Which dataset; "undrift data list" lists them.
    :param accept: Let other bytes than the published ones pass, as of a file that was saved again.
    """
    from undrift.datasets.catalogue import DATASETS
    from undrift.datasets.fetch import check_dataset
    from undrift.reporting.terminal import files_table

    output().print(files_table(check_dataset(name, accept=accept)), "")
    dataset = DATASETS[name]
    say(
        f"{name} has the published statistics: {dataset.nodes:,} nodes, {dataset.edges:,} edges, "
        f"{dataset.features:,} features, {dataset.classes} classes"
    )


def remove(name: str, /) -> None:
    """Delete what is kept of a generated stand-in; it is made again when it is needed.

    :param name: Which stand-in: cora-full-stand-in, ogbn-arxiv-stand-in or reddit-stand-in.
    """
    from undrift.datasets.folder import remove_stand_in

    found = remove_stand_in(name)
    for kept in found:
        say(f"removed: {kept.path}, {size(kept.size)}")
    if not found:
        say(f"nothing is kept of {name}")


@contextmanager
def download_progress(console: Console) -> Iterator[Progress]:
    """A bar on a terminal; elsewhere a line per tenth of a file."""
    columns = DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with bar_of(console, *columns) as bar:
        rows: dict[str, TaskID] = {}
        said: dict[str, int] = {}

        def report(file: str, done: int, total: int) -> None:
            if file not in rows:
                rows[file] = bar.add_task(file)
            bar.update(rows[file], completed=done, total=total or None)
            tenth = 10 * done // total if total else 0
            if said.get(file) != tenth and not console.is_terminal:
                said[file] = tenth
                console.print(f"{file}: {size(done)}" + (f" of {size(total)}" if total else ""))

        yield report


data = group(
    "data",
    (list_, fetch, check, remove),
    """
list
UNDRIFT_DATA=~/graphs undrift data list
fetch coauthor-cs
UNDRIFT_DATA=~/graphs undrift data fetch reddit
fetch --force ogbn-arxiv
check coauthor-cs
check --accept amazon-photo
remove reddit-stand-in
""",
)
