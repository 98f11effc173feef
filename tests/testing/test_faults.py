"""The shim finds what is not atomic, and our own files survive every fault at every call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from undrift.storage.files import write_atomically
from undrift.storage.leftovers import sweep
from undrift.testing.faults import KINDS, crash_everywhere

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="faults need fork")


def old_or_new(folder: Path, done: bool) -> None:
    text = (folder / "x").read_bytes()
    assert text in (b"old", b"new"), text
    assert not done or text == b"new"
    sweep([folder])
    assert [path.name for path in folder.iterdir()] == ["x"]


@pytest.fixture
def start(tmp_path: Path) -> Path:
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "x").write_bytes(b"old")
    return tmp_path / "start"


def test_an_atomic_write_is_old_or_new_whatever_happens(start: Path) -> None:
    found = crash_everywhere(start, lambda f: write_atomically(f / "x", b"new"), old_or_new)
    assert found.points >= 5  # open, write, fsync, replace, the folder's fsync
    assert found.runs == found.points * len(KINDS)


def test_a_write_in_place_is_caught(start: Path) -> None:
    def in_place(folder: Path) -> None:
        try:
            with (folder / "x").open("wb") as file:
                file.write(b"new")
        except OSError:
            pass

    with pytest.raises(AssertionError, match="after kill at call 2 of 2"):
        crash_everywhere(start, in_place, old_or_new)


def test_an_error_that_is_no_sentence_is_caught(start: Path) -> None:
    def raw(folder: Path) -> None:
        with (folder / "y").open("wb") as file:
            file.write(b"new")

    with pytest.raises(AssertionError, match=r"no space at call 1 of 2: (.|\n)*OSError"):
        crash_everywhere(start, raw, lambda *_: None, kinds=("no space",))
