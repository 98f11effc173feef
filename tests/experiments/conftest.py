"""A stream file that worker processes can read, and a tiny stream in the place of every other."""

from pathlib import Path
from typing import Any

import pytest

from undrift.experiments import run as module
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4)}


@pytest.fixture
def tiny(monkeypatch) -> None:
    """Every named stream is the tiny one, so that a run takes a moment."""
    monkeypatch.setattr(module, "load_stream", lambda name, seed: tiny_stream(seed))


@pytest.fixture
def stream_file(tmp_path) -> Path:
    """Thirty nodes in three classes, as two tables and a stream.toml."""
    folder = tmp_path / "mine"
    folder.mkdir()
    rows = [f"{i},{i % 3},{i % 3 + 0.01 * i},{i % 2}" for i in range(30)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,a,b", *rows]))
    edges = [f"{i},{(i + 3) % 30}" for i in range(30)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    path = folder / "stream.toml"
    path.write_text(
        'name = "mine"\n[graph]\nnodes = "nodes.csv"\nedges = "edges.csv"\n'
        "[tasks]\nbase = 1\nincrement = 1\n"
    )
    return path
