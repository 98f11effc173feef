"""`undrift leakage`, within this process."""

import json
from pathlib import Path

import pytest

from undrift.cli.app import start
from undrift.experiments import run as experiment
from undrift.testing.graphs import tiny_stream

QUICK = ["--method", "bare", "--set", "epochs=2", "--set", "hidden=4"]


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> Path:
    """Every stream is the one called tiny, and results go to a folder of the test."""
    monkeypatch.setattr(experiment, "load_stream", lambda name, seed: tiny_stream(seed))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_has_the_numbers_of_the_file(tiny: Path, capsys) -> None:
    assert start(["leakage", *QUICK, "--hops", "1", "--out", "here"]) == 0
    shown = capsys.readouterr().out
    data = json.loads((tiny / "here" / "leakage-tiny-bare-0.json").read_text())
    assert data["leakage"]["hops"] == 1
    assert data["params"] == {"epochs": 2, "hidden": 4}
    for protocol, lift in data["lift"].items():
        (row,) = (line for line in shown.splitlines() if line.startswith(protocol))
        values = [lift["plain"], lift["graph"], lift["node"], lift["oracle"]]
        assert row.split()[1:] == [f"{value:.2f}" for value in values]
    assert f"none     {data['leakage']['chance'][-1]:.2f}" in shown
    assert shown.splitlines()[-1] == "result: here/leakage-tiny-bare-0.json"


def test_the_figure_shows_every_study_in_the_folder(tiny: Path, capsys) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")
    assert start(["leakage", *QUICK]) == 0
    adr = ["--method", "adr", "--set", "epochs=2", "--set", "hidden=4"]
    assert start(["leakage", *adr, "--figure", "f.svg"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "figure: f.svg"
    assert (tiny / "f.svg").read_bytes().startswith(b"<?xml")
    assert len(list((tiny / "runs").glob("leakage-*.json"))) == 2
