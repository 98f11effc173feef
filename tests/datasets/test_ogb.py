from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pytest
import torch

from undrift.datasets import ogb as module
from undrift.datasets.ogb import load
from undrift.errors import InputError


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return tmp_path / "arxiv.zip"


def read(path, **options):
    return load(path, **options)[0]


def test_the_graph_is_symmetric_by_default(path, official):
    path.write_bytes(official.ogb())
    graph = read(path)
    assert graph.adjacency.symmetric
    assert graph.adjacency.to_dense().tolist() == [
        [0, 1, 0, 0, 0],
        [1, 0, 1, 0, 0],
        [0, 1, 0, 1, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    expected = [[0.5, -1], [1e-5, 2], [-0.25, 3.125], [0, 0], [7, 100]]
    assert isinstance(graph.features, torch.Tensor)
    torch.testing.assert_close(graph.features, torch.tensor(expected), rtol=0, atol=0)
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 1, 0, 3]  # a gap stays


def test_directed_keeps_sources_and_targets(path, official):
    path.write_bytes(official.ogb())
    graph = read(path, directed=True)
    assert not graph.adjacency.symmetric
    arrows = graph.adjacency.to_dense().nonzero()  # a row per receiver
    assert sorted((int(s), int(t)) for t, s in arrows) == [(0, 1), (1, 0), (1, 2), (3, 2)]


def test_load_gives_the_edges_of_the_file_before_they_are_made_symmetric(path, official):
    path.write_bytes(official.ogb())
    for directed, edges in ((False, 6), (True, 4)):
        graph, published = load(path, directed=directed)
        assert (graph.num_edges, published) == (edges, 5)


def test_with_a_cache_the_text_is_read_once(path, official, monkeypatch, tmp_path):
    path.write_bytes(official.ogb())
    first = read(path, cache=tmp_path / "cache")
    monkeypatch.setattr(module, "_parse", None)  # to read it again would fail
    second = read(path, cache=tmp_path / "cache")
    directed = read(path, cache=tmp_path / "cache", directed=True)
    assert torch.equal(first.features, second.features)
    assert torch.equal(first.labels, second.labels)
    assert torch.equal(first.adjacency.indices, second.adjacency.indices)
    assert directed.num_edges == 4


def test_what_was_read_is_kept_in_the_data_folder(path, official):
    path.write_bytes(official.ogb())
    read(path)
    assert [kept.suffix for kept in (path.parent / "prepared").iterdir()] == [".npz"]


def test_every_float_is_read_to_its_last_bit(path, official):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3)).astype(np.float32)
    text = "\n".join(",".join(map(repr, row)) for row in features.tolist())  # no last newline
    path.write_bytes(
        official.ogb(
            **{
                "node-feat": text,
                "node-label": "1\n" * 300,
                "num-node-list": "300",
            }
        )
    )
    graph = read(path)
    assert torch.equal(graph.features, torch.from_numpy(features))


def test_the_folder_in_the_zip_may_have_any_name(path, official):
    path.write_bytes(official.ogb())
    with zipfile.ZipFile(path) as archive:
        members = {
            name.replace("arxiv/", "a/b/"): archive.read(name) for name in archive.namelist()
        }
        bare = {name.replace("arxiv/raw", "raw"): archive.read(name) for name in archive.namelist()}
    for content in (members, bare):
        path.write_bytes(official.zip(content))
        assert read(path).num_nodes == 5


def test_no_edges_at_all_is_a_graph(path, official):
    path.write_bytes(official.ogb(edge=""))
    assert read(path).num_edges == 0


@pytest.mark.parametrize("name", ["edge", "node-feat", "node-label", "num-node-list"])
def test_a_missing_file_is_named(path, official, name):
    path.write_bytes(official.ogb(**{name: None}))
    with pytest.raises(InputError, match=rf"arxiv\.zip has no file raw/{name}\.csv\.gz"):
        read(path)


def test_a_file_that_is_there_twice_is_named(path, official):
    path.write_bytes(official.ogb())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("else/raw/edge.csv.gz", b"")
    with pytest.raises(InputError, match=r"has 2 files raw/edge\.csv\.gz"):
        read(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("edge", "0,1\n1\n"),
        ("edge", "0,1,2\n"),
        ("edge", "0,x\n"),
        ("edge", "0,1.5\n"),
        ("edge", "0,1\n\n1,2\n"),
        ("edge", "0,1é\n"),
        ("node-feat", "1,2\n1\n1,2\n1,2\n1,2\n"),
        ("node-feat", "a,b\n" * 5),
        ("node-label", "1,2\n" * 5),
        ("num-node-list", "five\n"),
        ("edge", b"no gzip at all"),
        ("edge", gzip.compress(b"0,1\n1,2\n" * 50, mtime=0)[:-9]),
        ("edge", gzip.compress(b"0,1\n", mtime=0)[:5]),
    ],
)
def test_a_damaged_table_is_named(path, official, name, text):
    path.write_bytes(official.ogb(**{name: text}))
    with pytest.raises(InputError, match=rf"arxiv/raw/{name}\.csv\.gz of .*arxiv\.zip is damaged"):
        read(path)


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [("node-feat", 4, "has 4 lines"), ("node-feat", 6, "has more than 5 lines")],
)
def test_a_table_of_the_wrong_length_names_both_numbers(path, official, name, lines, said):
    path.write_bytes(official.ogb(**{name: "1,2\n" * lines}))
    with pytest.raises(InputError, match=f"{said}, but num-node-list.csv.gz says there are 5"):
        read(path)


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


def test_several_graphs_are_refused(path, official):
    path.write_bytes(official.ogb(**{"num-node-list": "2\n3\n"}))
    with pytest.raises(InputError, match="lists 2 graphs; a dataset of one graph is needed"):
        read(path)


def test_an_edge_to_an_unknown_node_names_the_file_and_the_node(path, official):
    path.write_bytes(official.ogb(edge="0,1\n2,5\n"))
    with pytest.raises(InputError, match=r"in .*arxiv\.zip, an edge names node 5"):
        read(path)


def test_nan_names_the_file(path, official):
    path.write_bytes(official.ogb(**{"node-feat": "1,2\n1,nan\n1,2\n1,2\n1,2\n"}))
    with pytest.raises(InputError, match=r"in .*arxiv\.zip, features contain NaN"):
        read(path)


def test_nothing_wrong_is_cached(path, official, tmp_path):
    path.write_bytes(official.ogb(edge="0,9\n"))
    with pytest.raises(InputError):
        read(path, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 and noise"])
def test_no_zip_at_all(path, content):
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"arxiv\.zip is damaged or not a zip file; fetch the file"
    ):
        read(path)


def test_a_truncated_zip_is_damaged(path, official):
    path.write_bytes(official.ogb()[:-40])
    with pytest.raises(InputError, match="is damaged or not a zip file"):
        read(path)


def test_a_file_that_is_not_there(path):
    with pytest.raises(InputError, match="there is no file"):
        read(path)
