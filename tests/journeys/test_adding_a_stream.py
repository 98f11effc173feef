"""A dataset with its stream from outside: without an entry point, and with a wrong one.

With a right one it is in every command: `test_outside_package.py`.
"""

import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from undrift import plugins
from undrift.cli.app import start

RINGS = (Path(__file__).parent / "outside_package" / "theirs" / "rings.py").read_text()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


@pytest.mark.parametrize(
    ("text", "name", "value", "sentence"),
    [
        (RINGS, "ring", "outside_rings:RING", "'ring', which calls itself 'ring-cl'; give"),
        (RINGS, "ring-cl", "outside_rings:make_graph", "is a function; give an undrift Dataset"),
        ("import nowhere", "ring-cl", "outside_rings:RING", "No module named 'nowhere'"),
        (RINGS.replace("=120", "=12"), "ring-cl", "outside_rings:RING", "12 of ring; "),
    ],
)
def test_a_wrong_entry_is_one_sentence(module, monkeypatch, capsys, text, name, value, sentence):
    module.write_text(text)
    monkeypatch.setattr(plugins, "_outside", lambda group: {name: EntryPoint(name, value, group)})
    assert start(["streams", "--show", name]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
