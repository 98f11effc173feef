"""The shim finds what is not atomic, and our own files survive every fault at every call."""

import os
import time
from pathlib import Path

import pytest

from tests.harness.crowds import CROWDS, crowd
from tests.harness.faults import KINDS, crash_everywhere, kill_at_random
from tests.harness.fuzz.targets import QUICK, batches
from tests.harness.scenarios import SCENARIOS
from tests.harness.torture import KILLED
from undrift.folder import step
from undrift.folder.folder import LearnerFolder
from undrift.folder.store import states
from undrift.storage.files import write_atomically
from undrift.storage.lock import sweep

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="faults need fork")


def old_or_new(folder: Path, done: bool) -> None:
    text = (folder / "x").read_bytes()
    assert text in ((b"new",) if done else (b"old", b"new")), text
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


@pytest.mark.parametrize("name", sorted(KILLED))
def test_a_step_survives_some_faults(tmp_path: Path, name: str) -> None:
    made = SCENARIOS[name](tmp_path / "x")
    for kind in KINDS[0], KINDS[3]:
        found = crash_everywhere(made.start, made.step, made.check, every=29, kinds=(kind,))
        assert found.runs >= 2


def test_kills_at_random_instants(tmp_path: Path) -> None:
    made = SCENARIOS["make a folder"](tmp_path / "x")
    hit, begun = kill_at_random(made, 2, seed=1)
    assert hit == 2 <= begun
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_eight_processes_at_one_folder(tmp_path: Path) -> None:
    CROWDS["make a folder"](tmp_path / "new", 8)
    CROWDS["observe"](tmp_path / "observe", 2)


def test_a_crowd_that_fails_says_so(tmp_path: Path) -> None:
    def wrong(folder: Path) -> None:
        raise ZeroDivisionError

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        crowd(tmp_path, [lambda folder: None, wrong])


def test_a_clock_that_goes_backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are counted, not timed: nothing is lost, kept or refused by the clock."""
    hours = iter(range(20, 0, -1))
    monkeypatch.setattr(step, "now", lambda: f"2026-01-01T{next(hours):02}:00:00+00:00")
    monkeypatch.setattr(time, "time", lambda: 1e9 + next(hours))
    living = LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK, keep=1)
    first, second = batches((0, 1), (2, 3))
    living.observe(first)
    living.observe(second)
    for path in tmp_path.glob("desk/state-*"):  # the older state is the newer file
        old = path.name not in (tmp_path / "desk/HEAD").read_text()
        os.utime(path, (2e9, 2e9) if old else None)
    assert living.verify() == []
    assert [line.step for line in living.history()] == [0, 1, 2]
    assert len(living.learner().classes_) == 4
    assert len(states(tmp_path / "desk")) == 2
