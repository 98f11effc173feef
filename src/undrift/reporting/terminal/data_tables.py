"""Tables about data files. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from undrift.formatting import size
from undrift.reporting.terminal.run_tables import plain_table

if TYPE_CHECKING:
    from undrift.datasets import Dataset
    from undrift.datasets.fetch import CheckedFile

__all__ = ["data_table", "files_table"]

_COUNTS = ("nodes", "edges")


def data_table(datasets: Iterable[Dataset], folder: Path) -> Table:
    """Every dataset: its graph, its files and their size, on disk or not, licence, source.

    The size is that of the files in the folder, else the published one where it is known.
    """
    table = plain_table("Datasets")
    table.add_column("name", no_wrap=True, style="bold")
    for name in _COUNTS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("files", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("on disk", no_wrap=True)
    table.add_column("licence", no_wrap=True)
    table.add_column("source", overflow="fold")
    for dataset in datasets:
        paths = [folder / name for name in dataset.names]
        there = [path for path in paths if path.is_file()]
        on_disk = "yes" if len(there) == len(paths) else "in part" if there else "no"
        table.add_row(
            dataset.name,
            *(f"{getattr(dataset, name):,}" for name in _COUNTS),
            ", ".join(dataset.names),
            _size(dataset, paths if on_disk == "yes" else []),
            on_disk,
            dataset.licence,
            dataset.source,
        )
    return table


def _size(dataset: Dataset, paths: list[Path]) -> str:
    if paths:
        return size(sum(path.stat().st_size for path in paths))
    published = [file.size for file in dataset.files if file.size is not None]
    return size(sum(published)) if len(published) == len(dataset.files) else "-"


def files_table(files: Iterable[CheckedFile]) -> Table:
    """The files of a dataset that was checked."""
    table = plain_table("Files")
    table.add_column("file", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("SHA-256", no_wrap=True)
    table.add_column("bytes", overflow="fold")
    for file in files:
        table.add_row(file.path.name, size(file.size), f"{file.sha256[:16]}...", file.verdict)
    return table
