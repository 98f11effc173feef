"""A user with a graph of their own, who follows docs/your-own-graph.md to the letter."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from undrift import TaskStream, load_stream_file
from undrift.cli.app import start
from undrift.experiments.result import load_result
from undrift.storage.splits import load_split
from undrift.testing import tiny_graph

PAGE = Path(__file__).parents[2] / "docs" / "your-own-graph.md"
TOPICS = ["AI", "DB", "HCI", "OS", "PL", "VIS"]
QUICK = ["--method", "bare", "--set", "epochs=2", "--set", "hidden=4,4"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def papers(tmp_path, monkeypatch) -> Path:
    """A folder `papers` with the files that the page speaks of; the user stands beside it."""
    graph = tiny_graph()
    x, links = np.asarray(graph.features)[:, :4], graph.adjacency.to_scipy()
    folder = tmp_path / "papers"
    folder.mkdir()
    rows = ["id,label,year,x0,x1,x2,x3"]
    for i, c in enumerate(graph.labels.tolist()):
        rows.append(f"p{i},{TOPICS[c]},{2010 - c}," + ",".join(f"{v:.2f}" for v in x[i]))
    (folder / "nodes.csv").write_text("\n".join(rows))
    half = sp.triu(links).tocoo()
    pairs = [f"p{u},p{v}" for u, v in zip(half.row.tolist(), half.col.tolist(), strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *pairs, pairs[0], "p1,p1"]))
    parts: dict[str, Any] = {"labels": graph.labels.numpy()}
    for prefix, matrix in (("adj", links), ("attr", sp.csr_matrix(np.abs(x)))):
        parts |= {f"{prefix}_data": matrix.data, f"{prefix}_indices": matrix.indices}
        parts |= {f"{prefix}_indptr": matrix.indptr, f"{prefix}_shape": np.array(matrix.shape)}
    np.savez(folder / "graph.npz", **parts)
    monkeypatch.chdir(tmp_path)
    return folder


def test_every_python_example_of_the_page_runs(papers: Path, capsys) -> None:
    pytest.importorskip("torch_geometric", reason="needs PyG: pip install 'undrift[pyg]'")
    names: dict[str, Any] = {}
    examples = blocks("python")
    assert len(examples) == 14
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "TaskStream('custom', 3 tasks of 2+2+2 classes" in shown
    assert "{0: 'AI', 1: 'DB', 2: 'HCI'" in shown
    assert "1 duplicate edge and 1 self-loop left out" in shown
    assert "((4, 5), (2, 3), (0, 1)) 3 periods, starting at 2005, 2007, 2009" in shown
    assert shown.rstrip().endswith("True\nring-cl")


def test_the_stream_files_of_the_page_run_from_the_shell(papers: Path, capsys) -> None:
    first, by_year, entry = blocks("toml")
    assert tomllib.loads(entry)["project"]["entry-points"]["undrift.streams"].keys() == {"ring-cl"}
    (papers / "stream.toml").write_text(first)
    (papers / "by-year.toml").write_text(by_year)
    (command,) = blocks("sh")
    program, *arguments = shlex.split(command)
    assert program == "undrift"
    assert start(arguments) == 0
    shown = capsys.readouterr()
    assert shown.err.count("task ") == 3
    assert "adr on papers/stream.toml" in shown.out
    assert "repairs: 1 duplicate edge and 1 self-loop left out" in shown.out

    assert start(["run", "--stream", "papers/by-year.toml", *QUICK]) == 0
    shown = capsys.readouterr()
    assert "task 3/3" in shown.err
    assert "periods: 3 periods, starting at 2005, 2007, 2009" in shown.out


def test_every_key_of_the_page_is_one_of_the_settings() -> None:
    from undrift.streams.file import GraphSection, SessionsSection, SplitSection, TasksSection

    table = "\n".join(line for line in PAGE.read_text().splitlines() if line.startswith("| `"))
    first = "\n".join(row.split("|")[1] for row in table.split("\n"))
    sections = (GraphSection, TasksSection, SplitSection, SessionsSection)
    known = {"name"}.union(*(section.model_fields for section in sections))
    assert set(re.findall(r"`(?:\w*\.)?(\w+)`", first)) == known


def test_a_run_is_repeated_on_another_machine(papers: Path, capsys) -> None:
    (papers / "stream.toml").write_text(blocks("toml")[0].replace('"label"', '"random"', 1))
    assert start(["run", "--stream", "papers/stream.toml", "--seed", "3", *QUICK]) == 0
    here = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("result: "))
    result = load_result(here)
    assert result.spec.stream == "papers/stream.toml"
    assert here.parent.name == result.spec.id
    split = load_split(here.with_name("split.npz"), str(result.provenance["split_sha256"]))

    there = papers.rename(papers.with_name("elsewhere"))
    assert start(["run", "--stream", f"{there}/stream.toml", "--seed", "3", *QUICK]) == 0
    again = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("result: "))
    assert again == here  # the same content, so the same run
    assert load_result(again).matrix == result.matrix

    graph = load_stream_file(there / "stream.toml").graph
    assert TaskStream.with_split(graph, split).classes == split.classes
