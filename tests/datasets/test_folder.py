from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from undrift.datasets import folder as module
from undrift.datasets.folder import cache_folder, data_folder, find_file, may_write
from undrift.errors import InputError


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A home folder of our own, without any of the variables."""
    for variable in ("UNDRIFT_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


def test_data_folder_expands_the_home_folder(monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", "~/graphs")
    assert data_folder() == Path.home() / "graphs"


@pytest.mark.parametrize("value", [None, "  "])
@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("linux", ".cache/undrift"),
        ("darwin", "Library/Caches/undrift"),
        ("win32", "AppData/Local/undrift"),
    ],
)
def test_without_the_variable_it_is_the_platforms_cache(monkeypatch, home, platform, place, value):
    monkeypatch.setattr(module.sys, "platform", platform)
    if value is not None:
        monkeypatch.setenv("UNDRIFT_DATA", value)
    assert data_folder() == home / place


@pytest.mark.parametrize(
    ("platform", "variable"), [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")]
)
def test_the_platforms_own_variable_moves_its_cache(monkeypatch, home, platform, variable):
    monkeypatch.setattr(module.sys, "platform", platform)
    monkeypatch.setenv(variable, str(home / "else"))
    assert data_folder() == home / "else" / "undrift"


def test_a_relative_cache_home_is_ignored(monkeypatch, home):
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert data_folder() == home / ".cache" / "undrift"


def test_find_file_returns_the_path(monkeypatch, tmp_path):
    (tmp_path / "a.npz").write_bytes(b"x")
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert find_file("a.npz") == tmp_path / "a.npz"


def test_find_file_looks_into_the_platforms_cache(monkeypatch, home):
    monkeypatch.setattr(module.sys, "platform", "linux")
    (home / ".cache" / "undrift").mkdir(parents=True)
    (home / ".cache" / "undrift" / "a.npz").write_bytes(b"x")
    assert find_file("a.npz") == home / ".cache" / "undrift" / "a.npz"


def test_without_the_variable_the_error_names_file_and_variable(home):
    wanted = r"a\.npz is not in .*; put it there or set the environment variable UNDRIFT_DATA"
    with pytest.raises(InputError, match=wanted) as caught:
        find_file("a.npz")
    assert str(data_folder()) in str(caught.value)
    assert "undrift data fetch" not in str(caught.value)  # it belongs to no dataset


def test_a_folder_that_does_not_exist_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"a\.npz.*gone, which is not a folder; set the env"):
        find_file("a.npz")


def test_a_file_that_is_not_in_the_folder_is_named_with_it(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"a\.npz is not in .*the folder of UNDRIFT_DATA; put it"):
        find_file("a.npz")


@pytest.mark.parametrize("where", ["unset", "gone", "empty"])
def test_a_file_of_a_dataset_says_which_command_fetches_it(monkeypatch, home, where):
    if where != "unset":
        monkeypatch.setenv("UNDRIFT_DATA", str(home if where == "empty" else home / "gone"))
    with pytest.raises(InputError, match=r"reddit_graph\.npz .*or run: undrift data fetch reddit"):
        find_file("reddit_graph.npz")


def test_a_folder_marked_read_only_may_not_be_written_to(tmp_path):
    assert may_write(tmp_path)
    assert may_write(tmp_path / "new" / "folder")  # its parent is open
    tmp_path.chmod(0o555)  # the superuser could write all the same
    assert not may_write(tmp_path)
    assert not may_write(tmp_path / "new" / "folder")
    tmp_path.chmod(0o755)


def test_the_cache_is_in_the_data_folder_unless_that_is_read_only(monkeypatch, home):
    monkeypatch.setattr(module.sys, "platform", "linux")
    data = home / "data"
    data.mkdir()
    monkeypatch.setenv("UNDRIFT_DATA", str(data))
    assert cache_folder("kind") == data / "kind"
    data.chmod(0o555)
    assert cache_folder("kind") == home / ".cache" / "undrift" / "kind"
    data.chmod(0o755)


def test_the_module_does_not_import_torch():
    code = "import sys, undrift.datasets.folder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
