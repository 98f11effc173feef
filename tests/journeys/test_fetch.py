"""A user without any data file, in a shell, with a server on localhost for the internet."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.shell import shell as run
from undrift.datasets.catalogue import OWN

CODE = """
import sys
from undrift.cli import main
from undrift.datasets import Dataset, RemoteFile
from undrift.datasets.catalogue import OWN

address = sys.argv.pop(1)
readers = "undrift.datasets."
reddit = readers + "reddit:read_reddit"
npz = RemoteFile("tiny.npz", address + "/tiny.npz")
ogb = RemoteFile("ogb.zip", address + "/ogb.zip")
pair = RemoteFile("pair.zip", address + "/pair.zip", members=("a.npz", "b.npz"))
for dataset in (
    Dataset("tiny", "Tiny", (npz,), 4, 4, 3, 2, "MIT", "localhost"),
    Dataset("ogb", "Ogb", (ogb,), 5, 5, 2, 3, "MIT", "localhost", readers + "readers:read_ogb"),
    Dataset("pair", "Pair", (pair,), 5, 6, 2, 3, "MIT", "localhost", reddit),
):
    OWN[dataset.name] = dataset
main()
"""


@pytest.fixture
def shell(site: Any, tmp_path: Path) -> Any:
    """Runs `undrift` with three more datasets, which the server on localhost has."""

    return partial(run, site.address, folder=tmp_path, program=CODE)


def test_looking_fetching_checking(shell: Any, site: Any, official: Any, tmp_path: Path) -> None:
    """All three formats; the second download breaks off once, and then the user is offline."""
    data = str(tmp_path / "graphs")
    pair = {"a.npz": official.reddit_data(), "b.npz": official.reddit_graph()}
    site.put("/tiny.npz", official.gnn_benchmark())
    site.put("/ogb.zip", official.ogb(), break_after=[500])
    site.put("/pair.zip", official.zip(pair))
    for name in ("tiny", "ogb", "pair"):
        done = shell("data", "fetch", name, UNDRIFT_DATA=data)
        assert done.returncode == 0, done.stderr
        assert f"next: undrift data check {name}" in done.stdout
    assert site.asked("Range") == [None, None, "bytes=500-", None]

    site.files.clear()  # offline from here on
    assert shell("data", "fetch", "pair", UNDRIFT_DATA=data).returncode == 0
    done = shell("data", "check", "ogb", UNDRIFT_DATA=data)
    assert done.returncode == 0, done.stderr
    assert "ogb has the published statistics: 5 nodes, 5 edges" in done.stdout
    kept = {path.name for path in (tmp_path / "graphs").iterdir() if path.suffix != ".sha256"}
    assert kept == {"tiny.npz", "ogb.zip", "a.npz", "b.npz", "prepared"}


def test_without_the_variable_files_go_to_the_cache_folder(
    shell: Any, site: Any, official: Any, tmp_path: Path
) -> None:
    if sys.platform != "linux":
        pytest.skip("looks at the place Linux has for caches; run it on Linux")
    site.put("/tiny.npz", official.gnn_benchmark())
    done = shell("data", "fetch", "tiny", XDG_CACHE_HOME=str(tmp_path / "caches"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "caches" / "undrift" / "tiny.npz").is_file()
    assert shell("data", "fetch", "tiny").returncode == 0
    assert (tmp_path / ".cache" / "undrift" / "tiny.npz").is_file()


def test_every_official_address_is_https() -> None:
    addresses = [file.url for dataset in OWN.values() for file in dataset.files if file.url]
    assert len(addresses) > 10
    assert all(url.startswith("https://") for url in addresses)
