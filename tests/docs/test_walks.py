"""The two walks of CONTRIBUTING.md, against what two small runs do."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp

import undrift
from tests.scale.conftest import write_tables
from undrift.cli.app import start
from undrift.datasets import catalogue
from undrift.graphs import Graph

ROOT = Path(__file__).parents[2]
SOURCE = str(Path(undrift.__file__).parent) + "/"
MOST = 35
_ROW = re.compile(r"^\| `([\w.]+)` \| `([\w/]+\.py)` \| .+ \|$", re.MULTILINE)
Function = tuple[str, str]  # its qualified name and its file


def walk(command: str) -> list[Function]:
    """The rows of the table under the heading that names the command."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (section,) = [part for part in text.split("\n## ") if command in part.partition("\n")[0]]
    return _ROW.findall(section)


def passed(run: Callable[[], object]) -> list[Function]:
    """The functions of undrift that ran, in the order in which they first gave something back."""
    found: dict[Function, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_filename.startswith(SOURCE):
            found.setdefault((code.co_qualname, code.co_filename.removeprefix(SOURCE)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return list(found)


def compare(rows: list[Function], ran: list[Function]) -> None:
    assert 10 <= len(rows) <= MOST
    assert not [row for row in rows if row not in ran], "named, and not called"
    assert rows == sorted(rows, key=ran.index), "in another order than they give something back"


def graph() -> Graph:
    """60 words of 15 classes in 300 nodes, and a ring through the nodes of each class."""
    nodes = np.arange(300)
    words = sp.csr_matrix(np.eye(15, 60)[nodes % 15] + np.eye(60)[nodes % 60])
    ends = np.stack([nodes, (nodes + 15) % 300])
    return Graph.from_arrays(words, ends, nodes % 15, undirected=True)


def test_the_walk_of_a_run(tmp_path, monkeypatch, official) -> None:
    made = graph()
    words = made.features.to_scipy()
    words.resize(300, 6805)  # as wide as the real file, so that columns are sketched
    parts = official.matrix("adj", made.adjacency.to_scipy()) | official.matrix("attr", words)
    np.savez(tmp_path / "ms_academic_cs.npz", labels=made.labelled().numpy(), **parts)
    tiny = replace(catalogue.OWN["cs-cl"], nodes=300, edges=600)
    monkeypatch.setitem(catalogue.OWN, "cs-cl", tiny)
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    command = "undrift run --stream cs-cl --method propagation"
    ran = passed(lambda: start([*command.split()[1:], "--out", str(tmp_path / "runs")]))
    assert list(tmp_path.glob("runs/*/result.json"))
    compare(walk(command), ran)


def test_the_walk_of_a_batch(tmp_path) -> None:
    folder, *files = map(str, (tmp_path / "desk", *write_tables(graph(), tmp_path)))
    assert start(["learner", "new", folder]) == 0
    ran = passed(lambda: start(["learner", "observe", folder, *files]))
    assert len(list((tmp_path / "desk").glob("*.safetensors"))) == 1
    compare(walk("undrift learner observe DIR nodes.csv edges.csv"), ran)
