"""The page "Graphs larger than memory", command by command, on a graph that is not."""

import shlex
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch

from tests.journeys.shell import walk
from undrift.cli.app import start
from undrift.folder.folder import LearnerFolder
from undrift.storage.state import pack

PAGE = Path(__file__).parents[2] / "docs" / "larger-than-memory.md"
Captured = pytest.CaptureFixture[str]


def write_papers(folder: Path) -> None:
    """240 papers of 4 fields with 8 numbers each, every fourth without a field."""
    number = "(hash(i * 8 + {}) % 1000 / 1000.0 + (i % 4 = {})::INT)::FLOAT AS x{}"
    numbers = ", ".join(number.format(j, j % 4, j) for j in range(8))
    known = "CASE WHEN i % 16 < 12 THEN 'field ' || (i % 4) END AS label"
    duckdb.execute(
        f"COPY (SELECT 10000000000 + i AS id, {known}, {numbers} FROM (SELECT range AS i FROM "
        f"range(240))) TO '{folder}/nodes.parquet'"
    )
    duckdb.execute(
        "COPY (SELECT 10000000000 + i AS source, 10000000000 + (i + 4 * k) % 240 AS target "
        f"FROM (SELECT range % 240 AS i, 1 + range // 240 AS k FROM range(800))) TO "
        f"'{folder}/edges.parquet'"
    )


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    write_papers(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "this will take about" in walk(PAGE, capsys)
    first, second = (LearnerFolder(name).learner().learned_ for name in ("desk", "second"))
    torch.testing.assert_close(pack(first)[0], pack(second)[0], rtol=0, atol=0)
    found = duckdb.execute("SELECT id, class FROM 'predictions.parquet'").fetchall()
    assert [row[0] for row in found] == list(range(10000000000, 10000000240))
    assert np.mean([row[1] == f"field {i % 4}" for i, row in enumerate(found)]) > 0.9
    assert sorted(path.name for path in Path("papers").glob("work*")) == []


def test_a_folder_is_a_batch_like_others(tmp_path: Path, monkeypatch, capsys: Captured) -> None:
    write_papers(tmp_path)
    monkeypatch.chdir(tmp_path)

    def undrift(line: str, code: int = 0) -> str:
        assert start(shlex.split(line)) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    undrift("graph import nodes.parquet edges.parquet --out papers")
    for name in ("large", "small"):
        undrift(f"learner new {name} --set fourier=0")
    assert "180 labelled of 240 nodes" in undrift("learner observe large papers")
    undrift("learner observe small nodes.parquet edges.parquet")
    large, small = (LearnerFolder(name).learner().learned_.sums for name in ("large", "small"))
    torch.testing.assert_close(pack(large)[0], pack(small)[0], rtol=1e-9, atol=1e-9)
    for line, sentence in {
        "learner observe large papers": "is in large already",
        "learner observe large nowhere": "there is no file or folder nowhere",
        "learner observe large large": "there is no graph in large",
        "learner predict large papers --out x.parquet --nodes 3": "is predicted whole",
        "learner observe large nodes.parquet edges.parquet --workers 2": "are for graph folders",
        "learner observe small papers --dask tcp://127.0.0.1:1 --workers 2": "not both",
        "graph import nodes.parquet edges.parquet --out papers": "holds a graph already",
    }.items():
        assert sentence in undrift(line, 2)
    assert "4 classes" in undrift("graph show papers")
    (tmp_path / "papers" / "edges-00000-weights.npy").unlink()
    message = undrift("learner predict large papers --out x.parquet", 2)
    assert "edges-00000-weights.npy is missing" in message
