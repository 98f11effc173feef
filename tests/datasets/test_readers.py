import gzip
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from undrift.datasets import readers as module
from undrift.datasets.readers import read_ogb, read_pyg
from undrift.errors import InputError


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return tmp_path / "arxiv.zip"


def read(path, **options):
    return read_ogb(path, **options)[0]


def test_edges_go_both_ways_unless_directed_and_the_files_are_counted(path, official):
    path.write_bytes(official.ogb())
    arrows = [(0, 1), (1, 0), (1, 2), (3, 2)]
    for directed, wanted in ((True, arrows), (False, [*arrows, (2, 1), (2, 3)])):
        graph, published = read_ogb(path, directed=directed)
        assert published == 5
        assert graph.adjacency.symmetric is not directed
        there = graph.adjacency.to_dense().nonzero().tolist()  # a row per receiver
        assert sorted((s, t) for t, s in there) == sorted(wanted)
    expected = [[0.5, -1], [1e-5, 2], [-0.25, 3.125], [0, 0], [7, 100]]
    assert isinstance(graph.features, torch.Tensor)
    torch.testing.assert_close(graph.features, torch.tensor(expected), rtol=0, atol=0)
    assert graph.labels.tolist() == [0, 1, 1, 0, 3]  # a gap stays


def test_the_text_of_a_zip_is_read_once(path, official, monkeypatch):
    path.write_bytes(official.ogb())
    first = read(path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_parse", None)  # to read it again would fail
        second, directed = read(path), read(path, directed=True)
    assert torch.equal(first.features, second.features)
    assert torch.equal(first.labels, second.labels)
    assert torch.equal(first.adjacency.indices, second.adjacency.indices)
    assert directed.num_edges == 4
    (old,) = (path.parent / "prepared").iterdir()
    path.write_bytes(official.ogb(edge="0,1\n"))
    assert read(path).num_edges == 2
    (new,) = (path.parent / "prepared").iterdir()  # in place of the earlier one
    assert new != old


@pytest.mark.parametrize("name", ["edge", "node-feat", "node-label", "num-node-list"])
def test_a_missing_file_is_named(path, official, name):
    path.write_bytes(official.ogb(**{name: None}))
    with pytest.raises(InputError, match=rf"arxiv\.zip holds no file raw/{name}\.csv\.gz"):
        read(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("edge", "0,1\n1\n"),
        ("edge", "0,x\n"),
        ("edge", "0,1\n\n1,2\n"),
        ("edge", "0,1é\n"),
        ("node-feat", "a,b\n" * 5),
        ("edge", b"no gzip at all"),
        ("edge", gzip.compress(b"0,1\n1,2\n" * 50, mtime=0)[:-9]),
    ],
)
def test_a_damaged_table_is_named(path, official, name, text):
    path.write_bytes(official.ogb(**{name: text}))
    with pytest.raises(InputError, match=rf"arxiv/raw/{name}\.csv\.gz of .*arxiv\.zip is damaged"):
        read(path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("node-feat", "1,2\n" * 4, "has 4 lines, but num-node-list.csv.gz says there are 5"),
        ("node-feat", "1,2\n" * 6, "has more than 5 lines, but num-node-list.csv.gz says"),
        ("num-node-list", "2\n3\n", "lists 2 graphs; a dataset of one graph is needed"),
        ("edge", "0,1\n2,5\n", r"in .*arxiv\.zip, an edge names node 5"),
        ("node-feat", "1,2\n1,nan\n" + "1,2\n" * 3, r"in .*arxiv\.zip, features contain NaN"),
    ],
)
def test_tables_that_do_not_belong_together_are_told_and_not_kept(path, official, name, text, said):
    path.write_bytes(official.ogb(**{name: text}))
    with pytest.raises(InputError, match=said):
        read(path)
    assert not (path.parent / "prepared").exists()


def test_a_table_that_is_far_too_long_is_not_read_to_its_end(path, official, monkeypatch):
    seen = []
    lines = module._lines
    monkeypatch.setattr(
        module, "_lines", lambda text: (seen.append(line) or line for line in lines(text))
    )
    path.write_bytes(official.ogb(**{"node-label": "1\n" * 100_000}))
    with pytest.raises(InputError, match=r"node-label\.csv\.gz of .* has more than 5 lines"):
        read(path)
    assert len(seen) < 200


def test_a_line_without_an_end_is_not_held_in_memory(path, official, monkeypatch):
    monkeypatch.setattr(module, "_LONGEST", 1000)
    path.write_bytes(official.ogb(edge="1" * 100_000))
    with pytest.raises(InputError, match="a line of several MB"):
        read(path)


EDGES = torch.tensor([[0, 1], [1, 2]])


def tensors(**more: Any) -> dict[str, Any]:
    return {"x": torch.eye(3), "edge_index": EDGES, "y": torch.tensor([1, 0, -1]), **more}


def test_a_dict_of_tensors_or_a_pyg_data_is_a_graph(tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own import is not free of warnings
        data = pytest.importorskip("torch_geometric.data", reason="needs PyG")
    for content in (tensors(), data.Data(**tensors())):
        torch.save(content, tmp_path / "g.pt")
        graph = read_pyg(tmp_path / "g.pt")
        assert (graph.num_nodes, graph.num_edges) == (3, 2)
        assert graph.labelled().tolist() == [1, 0, -1]


class Trap:
    """What an attacker would pickle: a call."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


def test_nothing_in_a_file_is_executed(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(tensors(y=Trap()), "g.pt")
    with pytest.raises(InputError, match=r"g.pt cannot be read as tensors alone.*to_dict"):
        read_pyg("g.pt")
    assert not Path("sprung").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], "holds a list, not one graph"),
        ({"x": torch.eye(2)}, "has no edges `edge_index`"),
        ({"x": torch.eye(2), "edge_index": [[0], [7]]}, "an edge names node 7"),
    ],
)
def test_a_file_without_a_graph_says_what_it_holds(tmp_path, content, words) -> None:
    torch.save(content, tmp_path / "g.pt")
    with pytest.raises(InputError, match=f"g.pt.*{words}"):
        read_pyg(tmp_path / "g.pt")


def test_a_missing_or_foreign_file_is_one_sentence(tmp_path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_pyg(tmp_path / "g.pt")
    (tmp_path / "g.pt").write_text("a letter")
    with pytest.raises(InputError, match="cannot be read as tensors alone"):
        read_pyg(tmp_path / "g.pt")
