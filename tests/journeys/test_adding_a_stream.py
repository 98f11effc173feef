"""A dataset with its stream from outside: without an entry point, and with a wrong one.

With a right one it is in every command: `test_outside_package.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from undrift import plugins
from undrift.cli.app import start

PACKAGE = (Path(__file__).parent / "outside_package" / "theirs" / "rings.py").read_text()
ENTRY = "[undrift.streams]\nring-cl = outside_rings:RING\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder as pip would leave it: one module, and one entry in the distribution's list."""
    folder = tmp_path / "site"
    about = folder / "outside_rings-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "outside_rings.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-rings\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY)
    return folder


@pytest.fixture
def reachable(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder is where Python looks, in this process and for this test."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "outside_rings", raising=False)
    plugins._outside.cache_clear()
    yield
    plugins._outside.cache_clear()


@pytest.mark.usefixtures("reachable")
def test_a_stream_is_named_by_its_module_without_an_entry(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "outside_rings-1.0.dist-info" / "entry_points.txt").unlink()
    monkeypatch.chdir(site.parent)
    assert start(["run", "--stream", "outside_rings:RING", "--set", "fourier=0"]) == 0
    assert "propagation on outside_rings:RING" in capsys.readouterr().out
    (path,) = (site.parent / "runs").glob("*/result.json")
    assert json.loads(path.read_text())["spec"]["stream"] == "outside_rings:RING"


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(
    ("package", "entry", "sentence"),
    [
        (PACKAGE, "ring = outside_rings:RING", "'ring', which calls itself 'ring-cl'; give"),
        (PACKAGE, "ring-cl = outside_rings:make_graph", "is a function; give an undrift Dataset"),
        ("import nowhere", "ring-cl = outside_rings:RING", "No module named 'nowhere'"),
        (PACKAGE.replace("nodes=120", "nodes=12"), "ring-cl = outside_rings:RING", "12 of ring; "),
    ],
)
def test_a_wrong_entry_is_one_sentence(
    site: Path, capsys: pytest.CaptureFixture[str], package: str, entry: str, sentence: str
) -> None:
    (site / "outside_rings.py").write_text(package)
    list_of_entries = site / "outside_rings-1.0.dist-info" / "entry_points.txt"
    list_of_entries.write_text(f"[undrift.streams]\n{entry}\n")
    assert start(["streams", "--show", entry.split(maxsplit=1)[0]]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
