"""A user without any data file, in a shell, with a server on localhost for the internet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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

    def shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        dropped = ("UNDRIFT_DATA", "XDG_CACHE_HOME", "http_proxy", "no_proxy", "NO_PROXY")
        inherited = {key: value for key, value in os.environ.items() if key not in dropped}
        return subprocess.run(
            [sys.executable, "-c", CODE, site.address, *arguments],
            cwd=tmp_path,
            env=inherited | {"OMP_NUM_THREADS": "1", "HOME": str(tmp_path)} | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return shell


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
    files = [file for dataset in OWN.values() for file in dataset.files]
    assert len(files) > 10
    assert all(file.url.startswith("https://") for file in files)


def test_a_wrong_file_does_not_pass(shell: Any, official: Any, tmp_path: Path) -> None:
    (tmp_path / "arxiv.zip").write_bytes(official.ogb())  # five nodes
    done = shell("data", "check", "ogbn-arxiv", UNDRIFT_DATA=str(tmp_path))
    assert done.returncode == 2
    assert "arxiv.zip has 5 nodes instead of the 169,343 of ogbn-arxiv" in done.stderr
    assert done.stderr.count("\n") == 1
