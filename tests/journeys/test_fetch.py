"""A user without any data file, with a server on localhost for the internet."""

import sys

import pytest

from undrift.cli.app import start
from undrift.datasets import Dataset, RemoteFile
from undrift.datasets.catalogue import OWN

READERS = "undrift.datasets."


@pytest.fixture
def three_more(site, tmp_path, monkeypatch) -> None:
    """Three more datasets, which the server on localhost has, and no other data."""
    for name in ("UNDRIFT_DATA", "XDG_CACHE_HOME", "http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    npz, ogb = (RemoteFile(name, f"{site.address}/{name}") for name in ("tiny.npz", "ogb.zip"))
    pair = RemoteFile("pair.zip", site.address + "/pair.zip", members=("a.npz", "b.npz"))
    readers = [READERS + "readers:read_ogb", READERS + "reddit:read_reddit"]
    for dataset in (
        Dataset("tiny", "Tiny", (npz,), 4, 4, 3, 2, "MIT", "localhost"),
        Dataset("ogb", "Ogb", (ogb,), 5, 5, 2, 3, "MIT", "localhost", readers[0]),
        Dataset("pair", "Pair", (pair,), 5, 6, 2, 3, "MIT", "localhost", readers[1]),
    ):
        monkeypatch.setitem(OWN, dataset.name, dataset)


@pytest.mark.usefixtures("three_more")
def test_looking_fetching_checking(site, official, tmp_path, monkeypatch, capsys) -> None:
    """All three formats; the second download breaks off once, and then the user is offline."""
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path / "graphs"))
    pair = {"a.npz": official.reddit_data(), "b.npz": official.reddit_graph()}
    site.put("/tiny.npz", official.gnn_benchmark())
    site.put("/ogb.zip", official.ogb(), break_after=[500])
    site.put("/pair.zip", official.zip(pair))
    for name in ("tiny", "ogb", "pair"):
        assert start(["data", "fetch", name]) == 0
        assert f"next: undrift data check {name}" in capsys.readouterr().out
    assert site.asked("Range") == [None, None, "bytes=500-", None]

    site.files.clear()  # offline from here on
    assert start(["data", "fetch", "pair"]) == 0
    assert start(["data", "check", "ogb"]) == 0
    assert "ogb has the published statistics: 5 nodes, 5 edges" in capsys.readouterr().out
    kept = {path.name for path in (tmp_path / "graphs").iterdir() if path.suffix != ".sha256"}
    assert kept == {"tiny.npz", "ogb.zip", "a.npz", "b.npz", "prepared"}


@pytest.mark.usefixtures("three_more")
@pytest.mark.skipif(sys.platform != "linux", reason="the place that Linux has for caches")
def test_without_the_variable_files_go_to_the_cache_folder(site, official, tmp_path, monkeypatch):
    site.put("/tiny.npz", official.gnn_benchmark())
    assert start(["data", "fetch", "tiny"]) == 0
    assert (tmp_path / ".cache" / "undrift" / "tiny.npz").is_file()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert start(["data", "fetch", "tiny"]) == 0
    assert (tmp_path / "caches" / "undrift" / "tiny.npz").is_file()


def test_every_official_address_is_https() -> None:
    addresses = [file.url for dataset in OWN.values() for file in dataset.files if file.url]
    assert len(addresses) > 10
    assert all(url.startswith("https://") for url in addresses)
