"""A dataset with its stream from outside: one entry of another package, in every command."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from undrift import doors
from undrift.cli.app import start

PACKAGE = """
import numpy as np

from undrift.datasets import Dataset
from undrift.graphs import Graph


def make_graph():
    labels = np.arange(120) % 6
    rng = np.random.default_rng(0)
    features = np.eye(6)[labels] + 0.1 * rng.standard_normal((120, 6))
    step = np.arange(120)
    return Graph.from_arrays(features, np.stack([step, (step + 6) % 120]), labels, undirected=True)


RING = Dataset(
    name="ring",
    title="Ring",
    files=(),
    nodes=120,
    edges=240,
    features=6,
    classes=6,
    licence="MIT",
    source="rings of the outside package",
    reader=make_graph,
    stream="Ring-CL",
    base=2,
    increment=2,
)
"""
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


def undrift(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-c", "from undrift.cli import main; main()", *arguments],
        cwd=site.parent,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
        | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def done(site: Path, *arguments: str) -> str:
    ran = undrift(site, *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


PLAN = """
name = "mine"
streams = ["ring-cl"]
methods = ["bare"]
seeds = [0]
search = false

[params.bare]
epochs = 2
"""


def test_one_module_and_one_entry_reach_every_command(site: Path) -> None:
    assert len(list(site.glob("*.py"))) == 1
    assert ENTRY.count("=") == 1

    (line,) = [line for line in done(site, "streams").splitlines() if "ring-cl" in line]
    assert line.split()[:6] == ["ring-cl", "120", "240", "6", "6", "3"]
    assert "rings of the outside package" in line
    assert "generator: outside_rings.make_graph()" in done(site, "streams", "--show", "ring-cl")

    said = done(site, "run", "--stream", "ring-cl", "--set", "fourier=0")
    assert "propagation on ring-cl" in said
    (path,) = (site.parent / "runs").glob("*/result.json")
    result = json.loads(path.read_text())
    assert result["spec"]["stream"] == "ring-cl"
    assert result["provenance"]["generator"] == "outside_rings.make_graph()"
    assert len(result["matrix"]["class"]) == 3

    (site.parent / "mine.toml").write_text(PLAN)
    done(site, "bench", "mine.toml", "--workers", "1")
    done(site, "report", "runs")
    page = (site.parent / "report" / "index.html").read_text()
    assert "Ring-CL" in page
    tables = list((site.parent / "report" / "tables").glob("*.csv"))
    rows = [row for table in tables for row in csv.DictReader(table.read_text().splitlines())]
    assert "ring-cl" in {row["stream"] for row in rows}


def test_a_stream_is_named_by_its_module_without_an_entry(site: Path) -> None:
    (site / "outside_rings-1.0.dist-info" / "entry_points.txt").unlink()
    assert "propagation on outside_rings:RING" in done(
        site, "run", "--stream", "outside_rings:RING"
    )
    (path,) = (site.parent / "runs").glob("*/result.json")
    assert json.loads(path.read_text())["spec"]["stream"] == "outside_rings:RING"


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
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    package: str,
    entry: str,
    sentence: str,
) -> None:
    (site / "outside_rings.py").write_text(package)
    list_of_entries = site / "outside_rings-1.0.dist-info" / "entry_points.txt"
    list_of_entries.write_text(f"[undrift.streams]\n{entry}\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "outside_rings", raising=False)
    doors._outside.cache_clear()
    try:
        assert start(["streams", "--show", entry.split(maxsplit=1)[0]]) == 2
    finally:
        doors._outside.cache_clear()
    assert sentence in " ".join(capsys.readouterr().err.split())
