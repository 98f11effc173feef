import shutil
import subprocess
from pathlib import Path

import pytest

from undrift.datasets import folder as module
from undrift.datasets.folder import (
    cache_folder,
    check_recorded,
    data_folder,
    find_file,
    may_write,
    record,
    record_path,
    recorded,
    sha256,
)
from undrift.errors import InputError


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A home folder of our own, without any of the variables."""
    for variable in ("UNDRIFT_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(module.sys, "platform", "linux")
    return tmp_path


@pytest.mark.parametrize(
    ("platform", "variables", "place"),
    [
        ("linux", {}, ".cache/undrift"),
        ("linux", {"UNDRIFT_DATA": "  "}, ".cache/undrift"),
        ("linux", {"XDG_CACHE_HOME": "/else"}, "/else/undrift"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache/undrift"),
        ("darwin", {}, "Library/Caches/undrift"),
        ("win32", {}, "AppData/Local/undrift"),
        ("win32", {"LOCALAPPDATA": "/else"}, "/else/undrift"),
        ("linux", {"UNDRIFT_DATA": "/graphs", "XDG_CACHE_HOME": "/else"}, "/graphs"),
    ],
)
def test_the_variable_or_the_platforms_cache(monkeypatch, home, platform, variables, place):
    monkeypatch.setattr(module.sys, "platform", platform)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert data_folder() == home / place
    monkeypatch.undo()
    monkeypatch.setenv("UNDRIFT_DATA", "~/graphs")
    assert data_folder() == Path.home() / "graphs"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (None, r"a\.npz is not in .*undrift; put it there, or set the environment variable UNDRIF"),
        ("gone", r"a\.npz.*gone, which is not a folder; "),
        ("", r"a\.npz is not in .*the folder of UNDRIFT_DATA; put it"),
    ],
)
def test_a_file_that_is_not_there_says_how_to_get_it(monkeypatch, home, where, said):
    if where is not None:
        monkeypatch.setenv("UNDRIFT_DATA", str(home / where))
    with pytest.raises(InputError, match=said) as caught:
        find_file("a.npz")
    assert "undrift data fetch" not in str(caught.value)  # it belongs to no dataset
    with pytest.raises(InputError, match=r"reddit_graph\.npz .*or run: undrift data fetch reddit"):
        find_file("reddit_graph.npz")


def test_a_folder_marked_read_only_is_not_written_to(monkeypatch, home):
    data = home / "data"
    data.mkdir()
    monkeypatch.setenv("UNDRIFT_DATA", str(data))
    assert may_write(data / "new" / "folder")  # its parent is open
    assert cache_folder("kind") == data / "kind"
    data.chmod(0o555)  # the superuser could write all the same
    assert not may_write(data)
    assert not may_write(data / "new" / "folder")
    assert cache_folder("kind") == home / ".cache" / "undrift" / "kind"
    data.chmod(0o755)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "cora_full.npz"
    path.write_bytes(b"abc")
    return path


def test_a_record_is_read_back_and_is_as_sha256sum_writes_it(path):
    assert recorded(path) is None
    assert check_recorded(path) == sha256(path)  # nothing to compare with
    record(path, sha256(path))
    assert recorded(path) == check_recorded(path) == sha256(path)
    assert record_path(path).read_text() == f"{sha256(path)}  cora_full.npz\n"
    if shutil.which("sha256sum"):
        words = ["sha256sum", "-c", record_path(path).name]
        assert subprocess.run(words, cwd=path.parent, check=False).returncode == 0


@pytest.mark.parametrize("text", [b"", b"nonsense", b"\xff\xfe", b"A" * 64, b"ab" * 31])
def test_a_damaged_record_is_none(path, text):
    record_path(path).write_bytes(text)
    assert recorded(path) is None


def test_a_file_that_changed_is_named_with_both_checksums_and_the_way_out(path):
    before = sha256(path)
    record(path, before)
    path.write_bytes(b"abd")
    with pytest.raises(InputError, match=r"changed since .*with: undrift data fetch cora-") as told:
        check_recorded(path)
    assert before[:12] in str(told.value)
    assert sha256(path)[:12] in str(told.value)
