from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from undrift.datasets.folder import data_folder, find_file
from undrift.errors import InputError


def test_data_folder_is_none_when_the_variable_is_missing_or_blank(monkeypatch):
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    assert data_folder() is None
    monkeypatch.setenv("UNDRIFT_DATA", "  ")
    assert data_folder() is None


def test_data_folder_expands_the_home_folder(monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", "~/graphs")
    assert data_folder() == Path.home() / "graphs"


def test_find_file_returns_the_path(monkeypatch, tmp_path):
    (tmp_path / "a.npz").write_bytes(b"x")
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert find_file("a.npz") == tmp_path / "a.npz"


def test_without_the_variable_the_error_names_file_and_variable(monkeypatch):
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    wanted = r"data file a\.npz is needed; set the environment variable UNDRIFT_DATA to the folder"
    with pytest.raises(InputError, match=wanted):
        find_file("a.npz")


def test_a_folder_that_does_not_exist_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"a\.npz.*gone, which is not a folder; set the env"):
        find_file("a.npz")


def test_a_file_that_is_not_in_the_folder_is_named_with_it(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"a\.npz is not in .*the folder of UNDRIFT_DATA; put it"):
        find_file("a.npz")


def test_the_module_does_not_import_torch():
    code = "import sys, undrift.datasets.folder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
