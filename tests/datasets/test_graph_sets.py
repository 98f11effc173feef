"""Files of many graphs, written here in exactly the public formats: all of them are generated."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift import (
    InputError,
    LearnerFolder,
    Propagation,
    arrange,
    as_graph_set,
    evaluate,
    load_stream,
)
from undrift.cli.app import start
from undrift.datasets import RemoteFile
from undrift.datasets.catalogue import DATASETS, OWN
from undrift.datasets.fetch import check_dataset, fetch
from undrift.datasets.readers import read_molecules, read_molecules_unflagged
from undrift.evaluation.loop import evaluate_tasks
from undrift.graphs import Pooling


def generated(graphs: int = 60, **changes: str | None) -> dict[str, bytes]:
    """Paths whose class, 1 to 6, is how many nodes are of kind 2, as the files of a TUDataset."""
    rng, names = np.random.default_rng(0), ("A", "graph_indicator", "node_labels")
    lines: dict[str, list[str]] = {name: [] for name in names}
    for graph in range(graphs):
        start, marked, more = len(lines["node_labels"]), graph % 6 + 1, int(rng.integers(1, 5))
        lines["node_labels"] += ["2"] * marked + rng.choice(["1", "3"], more).tolist()
        lines["graph_indicator"] += [str(graph + 1)] * (marked + more)
        for node in range(start + 1, start + marked + more):
            lines["A"] += [f"{node}, {node + 1}", f"{node + 1}, {node}"]
    lines["graph_labels"] = [str(graph % 6 + 1) for graph in range(graphs)]
    lines["node_attributes"] = [f"{x:.4f}, 1" for x in rng.normal(size=len(lines["node_labels"]))]
    texts = {name: "\n".join(each) for name, each in lines.items()} | changes
    kept = {name: f"{text}\n" for name, text in texts.items() if text is not None}
    return {f"GENERATED_{name}.txt": text.encode() for name, text in kept.items()}


def written(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_folder_and_a_zip_are_the_same_graphs(tmp_path, official) -> None:
    files = generated()
    (tmp_path / "x.zip").write_bytes(official.zip({f"G/{name}": b for name, b in files.items()}))
    for many in (as_graph_set(tmp_path / "x.zip"), as_graph_set(str(written(tmp_path, files)))):
        features = many.graph.features.to_dense()
        assert (len(many), features.shape[1], features[0, :4].tolist()) == (60, 6, [0, 0, 1, 0])
        counts = torch.zeros(60).index_add(0, many.index, features[:, 2])  # of kind 2
        assert many.labels.tolist() == counts.tolist() == [k % 6 + 1 for k in range(60)]
    bare = {"A": "", "node_labels": None, "node_attributes": None, "graph_labels": None}
    found = as_graph_set(written(tmp_path / "x", generated(**bare)))
    assert found.graph.features.to_dense().unique().tolist() == [1.0]
    assert (found.graph.num_edges, found.labels) == (0, None)


def small(kinds: str, labels: str) -> dict[str, bytes]:
    """Graphs of two nodes each, by the labels of their nodes and their own."""
    names = [str(k // 2 + 1) for k in range(len(kinds.split()))]
    texts = {"A": "1, 2\n2, 1", "graph_indicator": "\n".join(names)}
    texts |= {"node_labels": "\n".join(kinds.split()), "graph_labels": "\n".join(labels.split())}
    return {f"S_{name}.txt": text.encode() for name, text in texts.items()}


def test_numbers_mean_the_same_in_every_file(tmp_path, official) -> None:
    """What a Mac writes into its zips is passed over, and so is a mark of UTF-8."""
    first = as_graph_set(written(tmp_path / "first", small("0 1 2 1", "-1 1")))
    files = {f"S/{name}": b"\xef\xbb\xbf" + b for name, b in small("1 0 1 1", "1 2").items()}
    odd = {"__MACOSX/S/._S_A.txt": b"\0\5junk", **files}
    (tmp_path / "second.zip").write_bytes(official.zip(odd))
    second = as_graph_set(tmp_path / "second.zip", like=first)
    assert [each.labels.tolist() for each in (first, second)] == [[0, 1], [1, 2]]  # type: ignore[union-attr]
    assert second.graph.features.to_dense().tolist() == np.eye(3)[[1, 0, 1, 1]].tolist()
    assert Propagation().observe(first).observe(second).classes_ == (0, 1, 2)
    with pytest.raises(InputError, match="features and those learned 3; begin with a file"):
        as_graph_set(written(tmp_path / "third", small("0 3 0 3", "1 2")), like=first)
    with pytest.raises(InputError, match="a node has the label -1"):
        as_graph_set(written(tmp_path / "third", small("0 -1 0 3", "1 2")))
    with pytest.raises(InputError, match=r"no graph but a path; .*as_graph_set\(path\)"):
        Propagation().observe(str(tmp_path / "second.zip"))


def test_a_folder_of_a_learner_reads_them(tmp_path, official, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "first", small("0 1 1 1 2 2 0 0", "0 1 0 1"))
    Path("second.zip").write_bytes(official.zip(small("0 1 0 1 1 1", "1 0 1")))
    assert start(["learner", "new", "lf", "--small-classes", "allow"]) == 0
    for batch in ("first", "second.zip"):
        assert start(["learner", "observe", "lf", batch]) == 0
    assert start(["learner", "predict", "lf", "second.zip", "--out", "p.csv"]) == 0
    assert len(Path("p.csv").read_text().splitlines()) == 4
    asked = ["--out", "p.csv", "--nodes", "2", "--unknown", "0.05", "--groups"]
    assert start(["learner", "predict", "lf", "first", *asked]) == 0  # as a zip: it is in memory
    assert len(Path("p.csv").read_text().splitlines()) == 2
    assert start(["learner", "forget", "lf", "first"]) == 0
    assert [held.nodes for held in LearnerFolder("lf").show().record.batches] == [3]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"A": None}, "has no file NAME_A.txt"),
        ({"graph_indicator": None}, r"no file \*_graph_indicator.txt"),
        ({"graph_labels": "-1\n0"}, "-1 is read as 0"),
        ({"graph_labels": "-2\n0"}, "a graph has the label -2"),
        ({"A": "1, two"}, r"\*_A.txt is no table of numbers"),
        ({"A": "1, 2, 3"}, r"\*_A.txt has 3 columns, not 2"),
        ({"node_labels": "1\n2"}, "but 2 have features"),
        ({"graph_labels": "1\n2"}, "_indicator.txt names graph 3, but there are 2 graphs.*from 1"),
        ({"graph_labels": "safe\ntoxic"}, r"graph_labels.txt is no table.*; number the classes"),
        ({"A": "1, 20"}, "joins node"),
        ({"A": "0, 1"}, r"\*_A.txt names node 0, but there are .* nodes, numbered from 1"),
        ({"A": "999, 1"}, r"\*_A.txt names node 999, but there are .* nodes, numbered from 1"),
        ({"graph_labels": "1\n" * 61}, "graph 61 has no node.*leave out line 61"),
        ({"graph_labels": "1.5\n2"}, r"\*_graph_labels.txt holds a number that is not whole"),
        ({"graph_indicator": "nan\n1"}, r"\*_graph_indicator.txt holds a number that is not"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, changes, told) -> None:
    with pytest.raises(InputError, match=told) as error:
        as_graph_set(written(tmp_path, generated(**changes)))
    assert "\n" not in str(error.value)
    (tmp_path / "SECOND_A.txt").write_text("1, 2\n")
    if changes != {"A": None}:
        with pytest.raises(InputError, match=r"several TUDatasets .GENERATED_A.txt, SECOND_A.txt"):
            as_graph_set(tmp_path)


def test_enzymes_are_fetched_checked_streamed_and_learned(tmp_path, site, official, monkeypatch):
    """A generated file in the place of ENZYMES, from a server on localhost."""
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    files = generated(90)
    edges = len(files["GENERATED_A.txt"].splitlines())
    file = RemoteFile("ENZYMES.zip", site.put("/ENZYMES.zip", official.zip(files)))
    size = {"nodes": 90, "edges": edges, "features": Pooling().width(5)}
    monkeypatch.setitem(OWN, "enzymes-cl", replace(DATASETS["enzymes"], files=(file,), **size))
    assert [path.name for path in fetch("enzymes")] == ["ENZYMES.zip"]
    assert check_dataset("enzymes")[0].verdict == "as recorded"
    stream = load_stream("enzymes-cl")
    assert stream.classes == ((0, 1), (2, 3), (4, 5))
    done = evaluate_tasks(Propagation(), stream, open_world=True)
    assert done.by_class.a_f > 80
    assert done.series["auroc"][0] > 60
    back = evaluate(Propagation(), arrange(stream, "online:batch=30"))
    assert back.by_class.a_f > 80
    monkeypatch.setitem(OWN, "enzymes-cl", replace(OWN["enzymes-cl"], nodes=600))
    with pytest.raises(InputError, match=r"90 nodes instead of the 600 of enzymes"):
        load_stream("enzymes-cl")


def test_molecules_with_and_without_the_flag(tmp_path, official) -> None:
    """Class 0 has twenty molecules, class 1 two: too few. Bonds are a pair in each."""
    atoms, flags = np.zeros((44, 74)), np.arange(44) >= 40
    atoms[flags, 68] = 1
    links = sp.block_diag([np.array([[0, 1], [1, 0]])] * 22, format="csr")
    parts = {**official.matrix("adj", links), **official.matrix("attr", sp.csr_matrix(atoms))}
    more = {"graph": np.repeat(np.arange(22), 2), "labels": (np.arange(22) >= 20).astype(int)}
    (tmp_path / "m.npz").write_bytes(official.npz(parts | more))
    for read, columns in ((read_molecules, 74), (read_molecules_unflagged, 73)):
        found = read(tmp_path / "m.npz")
        assert (len(found), found.graph.num_edges) == (20, 40)
        assert found.pooled().num_features == Pooling().width(columns)


@pytest.mark.slow  # docs/whole-graphs.md has more runs
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "least", "most"), [("aromaticity-cl", 95, 100), ("aromaticity-hard-cl", 20, 45)]
)
def test_aromaticity_is_counted(name: str, least: float, most: float) -> None:
    if not OWN[name].on_disk():
        pytest.skip("needs aromaticity.npz; put it into the folder of UNDRIFT_DATA")
    stream = load_stream(name)
    assert [len(classes) for classes in stream.classes] == [3] * 10
    assert least <= evaluate(Propagation(), stream).by_class.a_f <= most
