"""A dataset with its stream from outside; with an entry point: `test_outside_package.py`."""

import json
import sys
from pathlib import Path

import pytest

from undrift.cli.app import start

RINGS = (Path(__file__).parent / "outside_package" / "theirs" / "rings.py").read_text()


@pytest.fixture
def module(tmp_path, monkeypatch) -> Path:
    """The file of the dataset, where Python looks in this process and for this test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "outside_rings", raising=False)
    (tmp_path / "outside_rings.py").write_text(RINGS)
    return tmp_path / "outside_rings.py"


@pytest.mark.usefixtures("module")
def test_a_stream_is_named_by_its_module_without_an_entry(capsys) -> None:
    assert start(["run", "--stream", "outside_rings:RING", "--set", "fourier=0"]) == 0
    assert "propagation on outside_rings:RING" in capsys.readouterr().out
    (path,) = Path("runs").glob("*/result.json")
    assert json.loads(path.read_text())["spec"]["stream"] == "outside_rings:RING"
