from __future__ import annotations

import hashlib

import pytest

from undrift.datasets import Dataset, RemoteFile
from undrift.datasets.catalogue import OWN
from undrift.datasets.fetch import check_dataset
from undrift.datasets.folder import record, recorded
from undrift.errors import InputError


@pytest.fixture
def tiny(tmp_path, official, monkeypatch):
    """Puts `tiny` into the catalogue and its file into the folder; returns the file's path."""
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    content = official.gnn_benchmark()
    (tmp_path / "tiny.npz").write_bytes(content)

    def tiny(**published):
        file = RemoteFile("tiny.npz", "https://example.org/tiny.npz", **published)
        dataset = Dataset("tiny", "Tiny", (file,), 4, 4, 3, 2, "MIT", "example.org")
        monkeypatch.setitem(OWN, "tiny", dataset)
        return tmp_path / "tiny.npz"

    return tiny


def test_nothing_is_written(tiny):
    path = tiny()
    (file,) = check_dataset("tiny")
    assert file.path == path
    assert file.size == path.stat().st_size
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert file.verdict == "nothing to compare them with"
    assert [p.name for p in path.parent.iterdir()] == ["tiny.npz"]
    record(path, file.sha256)
    (file,) = check_dataset("tiny")
    assert file.verdict == "as recorded"


def test_published_bytes_are_said_to_be_so(tiny):
    path = tiny()
    tiny(sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    (file,) = check_dataset("tiny")
    assert file.verdict == "as published (SHA-256)"


@pytest.mark.parametrize("is_recorded", [False, True])
def test_other_bytes_than_published_are_an_error_unless_accepted(tiny, is_recorded):
    """The right statistics do not make them the right bytes: labels may be shuffled."""
    path = tiny()
    tiny(md5="0" * 32)
    if is_recorded:  # by an undrift that recorded whatever it checked
        record(path, hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(InputError, match=r"other bytes than the published file \(MD5"):
        check_dataset("tiny")
    (file,) = check_dataset("tiny", accept=True)
    assert file.verdict == "accepted; other bytes than published"


def test_changed_bytes_are_an_error(tiny):
    record(tiny(), "0" * 64)
    with pytest.raises(InputError, match="has changed since it was fetched"):
        check_dataset("tiny")


def test_a_wrong_file_under_the_right_name_is_an_error_and_not_recorded(tiny, official):
    path = tiny()
    path.write_bytes(official.reddit_data())
    with pytest.raises(InputError, match=r"tiny\.npz has no array 'adj_shape'"):
        check_dataset("tiny")
    assert recorded(path) is None


def test_an_unknown_name_prints_the_list():
    with pytest.raises(InputError, match="unknown dataset"):
        check_dataset("nowhere")
