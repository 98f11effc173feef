"""The page "Graphs larger than memory", command by command, on a graph that is not."""

from pathlib import Path

import duckdb
import numpy as np
import torch

from tests.journeys.shell import walk
from undrift.folder.folder import LearnerFolder
from undrift.storage.state import pack

PAGE = Path(__file__).parents[2] / "docs" / "larger-than-memory.md"


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


def test_the_page_runs(tmp_path, monkeypatch, capsys) -> None:
    write_papers(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "this will take about" in walk(PAGE, capsys)
    first, second = (LearnerFolder(name).learner().learned_ for name in ("desk", "second"))
    torch.testing.assert_close(pack(first)[0], pack(second)[0], rtol=0, atol=0)
    found = duckdb.execute("SELECT id, class FROM 'predictions.parquet'").fetchall()
    assert [row[0] for row in found] == list(range(10000000000, 10000000240))
    assert np.mean([row[1] == f"field {i % 4}" for i, row in enumerate(found)]) > 0.9
    assert sorted(path.name for path in Path("papers").glob("work*")) == []
