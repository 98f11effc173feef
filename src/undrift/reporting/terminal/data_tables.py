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

_COUNTS = ("nodes", "edges")


def data_table(datasets: Iterable[Dataset], folder: Path) -> Table:
    """Every dataset: its graph, its files and their size, on disk or not, licence, source.

    The size is that of the files in the folder, else the published one where it is known.
    """
    rows = []
    for dataset in datasets:
        paths = [folder / name for name in dataset.names]
        there = [path for path in paths if path.is_file()]
        on_disk = "yes" if len(there) == len(paths) else "in part" if there else "no"
        files = ", ".join(dataset.names), _size(dataset, paths if on_disk == "yes" else [])
        counts = (f"{getattr(dataset, name):,}" for name in _COUNTS)
        rows.append([dataset.name, *counts, *files, on_disk, dataset.licence, dataset.source])
    columns = {"name": "name", **dict.fromkeys(_COUNTS, "number"), "files": "text"}
    columns |= {"size": "number", "on disk": "word", "licence": "word", "source": "text"}
    return plain_table("Datasets", columns, rows)


def _size(dataset: Dataset, paths: list[Path]) -> str:
    if paths:
        return size(sum(path.stat().st_size for path in paths))
    published = [file.size for file in dataset.files if file.size is not None]
    return size(sum(published)) if len(published) == len(dataset.files) else "-"


def files_table(files: Iterable[CheckedFile]) -> Table:
    """The files of a dataset that was checked."""
    columns = {"file": "text", "size": "number", "SHA-256": "word", "bytes": "text"}
    rows = [[f.path.name, size(f.size), f"{f.sha256[:16]}...", f.verdict] for f in files]
    return plain_table("Files", columns, rows)
