from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pytest
import torch

from undrift.datasets import readers as module
from undrift.datasets.readers import read_ogb
from undrift.errors import InputError


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return tmp_path / "arxiv.zip"


def read(path, **options):
    return read_ogb(path, **options)[0]


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
        graph, published = read_ogb(path, directed=directed)
        assert (graph.num_edges, published) == (edges, 5)


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


def test_every_float_is_read_to_its_last_bit(path, official):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3)).astype(np.float32)
    text = "\n".join(",".join(map(repr, row)) for row in features.tolist())  # no last newline
    texts = {"node-feat": text, "node-label": "1\n" * 300, "num-node-list": "300"}
    path.write_bytes(official.ogb(**texts))
    assert torch.equal(read(path).features, torch.from_numpy(features))


@pytest.mark.parametrize("folder", ["a/b/", ""])
def test_the_folder_in_the_zip_may_have_any_name(path, official, folder):
    path.write_bytes(official.ogb())
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        members = {name.replace("arxiv/", folder): archive.read(name) for name in names}
    path.write_bytes(official.zip(members))
    assert read(path).num_nodes == 5


@pytest.mark.parametrize("name", ["edge", "node-feat", "node-label", "num-node-list"])
def test_a_missing_file_is_named(path, official, name):
    path.write_bytes(official.ogb(**{name: None}))
    with pytest.raises(InputError, match=rf"arxiv\.zip holds no file raw/{name}\.csv\.gz"):
        read(path)


def test_a_file_that_is_there_twice_is_named(path, official):
    path.write_bytes(official.ogb())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("else/raw/edge.csv.gz", b"")
    with pytest.raises(InputError, match=r"holds 2 files raw/edge\.csv\.gz"):
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


def test_no_zip_at_all(path, official):
    for content in (b"", b"hello", b"PK\x03\x04 and noise", official.ogb()[:-40]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"arxiv\.zip is damaged or not a zip file; fetch the"):
            read(path)
    path.unlink()
    with pytest.raises(InputError, match="there is no file"):
        read(path)
