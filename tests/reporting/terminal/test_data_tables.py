from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from undrift.datasets import Dataset, RemoteFile
from undrift.datasets.catalogue import DATASETS
from undrift.datasets.fetch import CheckedFile
from undrift.reporting.terminal import data_table, files_table


def shown(table: Table) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=200).print(table)
    return file.getvalue().splitlines()


def row(table: Table, name: str) -> str:
    return " ".join(next(line for line in shown(table) if line.startswith(name)).split())


FILES = (RemoteFile("a.npz", "u", size=1500), RemoteFile("b.npz", "v"))
TWO = Dataset("two", "Two", FILES, 12_345, 67_890, 3, 4, "MIT", "example.org")


def test_every_dataset_has_a_row(tmp_path: Path) -> None:
    lines = shown(data_table(DATASETS.values(), tmp_path))
    for dataset in DATASETS.values():
        (line,) = [line for line in lines if line.startswith(f"{dataset.name} ")]
        assert f"{dataset.edges:,}" in line
        assert dataset.licence in line
        assert " no " in line


def test_size_and_on_disk_follow_the_files(tmp_path: Path) -> None:
    start = "two 12,345 67,890 a.npz, b.npz"
    assert row(data_table([TWO], tmp_path), "two") == f"{start} - no MIT example.org"
    (tmp_path / "a.npz").write_bytes(bytes(1000))
    assert row(data_table([TWO], tmp_path), "two") == f"{start} - in part MIT example.org"
    (tmp_path / "b.npz").write_bytes(bytes(2000))
    assert row(data_table([TWO], tmp_path), "two") == f"{start} 3.0 kB yes MIT example.org"


def test_a_published_size_stands_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    one = replace(TWO, files=FILES[:1])
    assert "a.npz 1.5 kB no MIT" in row(data_table([one], tmp_path), "two")


def test_files_with_their_verdict() -> None:
    file = CheckedFile(Path("/x/a.npz"), 1500, "ab" * 32, "as recorded")
    assert row(files_table([file]), "a.npz") == "a.npz 1.5 kB abababababababab... as recorded"
