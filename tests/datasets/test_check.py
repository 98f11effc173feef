from __future__ import annotations

import hashlib

import pytest

from undrift.datasets import Dataset, RemoteFile
from undrift.datasets.catalogue import OWN
from undrift.datasets.checksums import record, recorded
from undrift.datasets.fetch import check_dataset
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


def test_the_first_time_it_is_recorded_then_compared(tiny):
    path = tiny()
    (file,) = check_dataset("tiny")
    assert file.path == path
    assert file.size == path.stat().st_size
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest() == recorded(path)
    assert file.verdict == "recorded now"
    (file,) = check_dataset("tiny")
    assert file.verdict == "as recorded"


def test_published_bytes_are_said_to_be_so(tiny):
    path = tiny()
    tiny(sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    (file,) = check_dataset("tiny")
    assert file.verdict == "as published (SHA-256)"


def test_other_bytes_than_published_are_told_but_the_graph_decides(tiny):
    tiny(md5="0" * 32)
    (file,) = check_dataset("tiny")
    assert file.verdict == "recorded now; other bytes than published"
    (file,) = check_dataset("tiny")
    assert file.verdict == "as recorded; other bytes than published"


def test_a_read_only_folder_is_left_alone(tiny):
    path = tiny()
    path.parent.chmod(0o555)
    (file,) = check_dataset("tiny")
    assert file.verdict == "not recorded, the folder is read-only"
    assert recorded(path) is None
    path.parent.chmod(0o755)


def test_changed_bytes_are_an_error(tiny):
    record(tiny(), "0" * 64)
    with pytest.raises(InputError, match="has changed since it was fetched"):
        check_dataset("tiny")


def test_a_wrong_file_under_the_right_name_is_an_error_and_not_recorded(tiny, official):
    path = tiny()
    path.write_bytes(official.reddit_data())
    with pytest.raises(InputError, match=r"tiny\.npz has no array 'adj_data'"):
        check_dataset("tiny")
    assert recorded(path) is None


def test_an_unknown_name_prints_the_list():
    with pytest.raises(InputError, match="unknown dataset"):
        check_dataset("nowhere")
