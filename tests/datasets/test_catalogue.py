import hashlib
from dataclasses import replace
from pkgutil import resolve_name

import pytest

from undrift.datasets import Dataset, RemoteFile
from undrift.datasets.catalogue import DATASETS, OWN, load_dataset
from undrift.datasets.fetch import check_dataset
from undrift.errors import InputError


def test_every_reader_is_there():
    assert all(callable(resolve_name(str(dataset.reader))) for dataset in OWN.values())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return tmp_path


def test_a_dataset_of_two_files_names_both(folder, official, monkeypatch):
    files = {"a.npz": official.reddit_data(), "b.npz": official.reddit_graph()}
    archive = RemoteFile("x.zip", "https://example.org/x.zip", members=tuple(files))
    reader = "undrift.datasets.readers:read_reddit"
    dataset = Dataset("two", "Two", (archive,), 5, 6, 2, 3, "MIT", "example.org", reader)
    monkeypatch.setitem(OWN, "two", dataset)
    (folder / "a.npz").write_bytes(files["a.npz"])
    assert not dataset.on_disk()
    (folder / "b.npz").write_bytes(files["b.npz"])
    assert dataset.on_disk()
    _, provenance = load_dataset("two")
    assert provenance["file"] == "a.npz, b.npz"
    digests = [hashlib.sha256(content).hexdigest() for content in files.values()]
    assert provenance["sha256"] == ", ".join(digests)


def test_options_go_to_the_reader(folder, official, monkeypatch):
    (folder / "arxiv.zip").write_bytes(official.ogb())
    statistics = {"nodes": 5, "edges": 5, "features": 2, "classes": 3}
    monkeypatch.setitem(OWN, "arxiv-cl", replace(DATASETS["ogbn-arxiv"], **statistics))
    both, _ = load_dataset("ogbn-arxiv")
    one, _ = load_dataset("ogbn-arxiv", directed=True)
    assert (both.num_edges, one.num_edges) == (6, 4)  # and 5 in the file, as published
    assert len(list((folder / "prepared").iterdir())) == 1


@pytest.mark.parametrize("what", ["nodes", "edges", "features", "classes"])
def test_other_statistics_are_an_error_with_both_numbers(folder, official, monkeypatch, what):
    (folder / "tiny.npz").write_bytes(official.gnn_benchmark())
    file = RemoteFile("tiny.npz", "https://example.org/tiny.npz")
    tiny = Dataset("tiny", "Tiny", (file,), 4, 4, 3, 2, "MIT", "example.org")
    monkeypatch.setitem(OWN, "tiny", replace(tiny, **{what: 12_345}))
    found = getattr(tiny, what)
    sentence = rf"tiny\.npz has {found} {what} instead of the 12,345 of tiny; .*fetch --force tiny"
    with pytest.raises(InputError, match=sentence):
        load_dataset("tiny")


@pytest.mark.real_data
@pytest.mark.parametrize("name", [name for name in DATASETS if name != "reddit"])
def test_the_real_files_have_the_published_statistics(name):
    dataset = DATASETS[name]
    if not dataset.on_disk():
        pytest.skip(f"needs {' and '.join(dataset.names)}; get it with: undrift data fetch {name}")
    verdicts = [file.verdict for file in check_dataset(name, accept=True)]
    if name == "coauthor-cs":
        assert verdicts == ["as published (git id)"]
