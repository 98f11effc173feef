"""`undrift data list | fetch NAME | check NAME`, in this process."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from undrift.cli.app import start
from undrift.cli.data import download_progress
from undrift.datasets import Dataset, RemoteFile
from undrift.datasets.catalogue import DATASETS, OWN


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def tiny(site, official, monkeypatch) -> Dataset:
    """A dataset that the server on localhost has."""
    file = RemoteFile("tiny.npz", site.put("/tiny.npz", official.gnn_benchmark()))
    dataset = Dataset("tiny", "Tiny", (file,), 4, 4, 3, 2, "MIT", "localhost")
    monkeypatch.setitem(OWN, "tiny", dataset)
    return dataset


def test_fetch_names_a_file_check_its_size(folder: Path, tiny: Dataset, capsys) -> None:
    assert start(["data", "fetch", "tiny"]) == 0
    shown = capsys.readouterr()
    then = "undrift data check tiny, then: undrift run --stream tiny"
    assert shown.out == f"tiny: {folder / 'tiny.npz'}\nnext: {then}\n"
    lines = shown.err.splitlines()  # progress, which is no result
    assert lines[0].startswith("tiny.npz: 0 B of ")
    assert len(lines) == 2
    assert start(["data", "check", "tiny"]) == 0
    shown = capsys.readouterr().out
    assert "as recorded" in shown
    assert "tiny has the published statistics: 4 nodes, 4 edges, 3 features, 2 classes" in shown


def test_a_changed_file_fails_the_check(folder: Path, tiny: Dataset, refused) -> None:
    start(["data", "fetch", "tiny"])
    path = folder / "tiny.npz"
    path.write_bytes(path.read_bytes() + b"\0")
    refused("data check tiny", "has changed since it was fetched")
    assert start(["data", "fetch", "tiny"]) == 0
    assert start(["data", "check", "tiny"]) == 0


def test_elsewhere_than_on_a_terminal_progress_is_a_line_per_tenth() -> None:
    file = io.StringIO()
    with download_progress(Console(file=file, width=80)) as report:
        for done in range(1001):
            report("a.npz", done, 1000)
        report("b.npz", 0, 0)  # no length is known
        report("b.npz", 5000, 0)
    lines = file.getvalue().splitlines()
    assert lines[0] == "a.npz: 0 B of 1.0 kB"
    assert lines[10] == "a.npz: 1.0 kB of 1.0 kB"
    assert lines[11:] == ["b.npz: 0 B"]


def test_on_a_terminal_progress_is_a_bar() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True)
    with download_progress(console) as report:
        report("a.npz", 0, 1000)
        report("a.npz", 500, 1000)
        report("b.npz", 7, 0)
    assert all(text in file.getvalue() for text in ("a.npz", "0.5/1.0 kB", "b.npz"))


@pytest.fixture
def kept(folder: Path, monkeypatch) -> list[Path]:
    """Parts of stand-ins in the cache folder."""
    monkeypatch.setattr("undrift.datasets.folder._platform_cache", lambda: folder / "cache")
    place = folder / "cache" / "undrift" / "stand-ins"
    place.mkdir(parents=True)
    names = "reddit-0-57307946", "reddit-0-100", "ogbn-arxiv-0"
    paths = [place / f"{name}-1234abcd-v1.npz" for name in names]
    for path in paths:
        path.write_bytes(bytes(1500))
    return paths


def test_every_dataset_is_listed_and_what_is_kept_of_a_stand_in_can_be_removed(
    folder: Path, kept: list[Path], capsys
) -> None:
    assert start(["data", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in DATASETS)
    assert f"folder: {folder} (set UNDRIFT_DATA for another)" in shown
    lines = shown.splitlines()
    for path, name in zip(kept, ("reddit", "reddit", "ogbn-arxiv"), strict=True):
        (line,) = [line for line in lines if str(path) in line]
        assert "1.5 kB" in line
        assert f"undrift data remove {name}-stand-in" in line
    assert start(["data", "remove", "reddit-stand-in"]) == 0
    shown = capsys.readouterr().out
    assert [path.exists() for path in kept] == [False, False, True]
    assert all(str(path) in shown for path in kept[:2])
    assert start(["data", "remove", "reddit-stand-in"]) == 0
    assert "nothing is kept" in capsys.readouterr().out


def test_only_what_was_generated_is_removed(kept: list[Path], refused) -> None:
    refused("data remove reddit", "yours to delete:  ... reddit_graph")
    refused("data remove x", "reddit-stand-in")
    assert all(path.exists() for path in kept)
