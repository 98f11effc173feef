"""A learner's folder that somebody else made: no verb leaves it, and none waits."""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import undrift
from tests.folder.conftest import Desk
from undrift import InputError, LearnerFolder
from undrift.cli.app import start
from undrift.folder.store import state_name
from undrift.storage.files import load_with_metadata, state_bytes

QUICK = {"gamma": 0.1, "hops": 1}
SCRAP = ".HEAD.0123abcd.part"
FOREIGN = state_name(64 * "0")
NAMES = ["HEAD", "current", "older", FOREIGN, "history.jsonl", "learner.json", "README.md"]
NAMES += ["key", ".lock", SCRAP, "begun.json"]


class Place:
    """Folders to be changed, and beside them a folder that nobody may touch."""

    def __init__(self, path: Path) -> None:
        self.path, self.outside = path, path / "outside"
        self.desk = Desk(path)
        made = LearnerFolder.new(path / "clean", settings=QUICK, keep=1)
        made.observe(self.desk.month(1))
        made.observe(self.desk.month(2))
        self.desk.month(3)
        self.states = {
            "current": made.show().path.name,
            "older": state_name(made.history()[1].result),
        }
        LearnerFolder.new(path / "fresh", settings=QUICK)
        self.outside.mkdir()
        (self.outside / "token").write_bytes(b"secret")  # no line break: a line that was torn off
        (self.outside / "evil.py").write_text("open(__file__ + '.ran', 'w').close()")
        shutil.copytree(path / "clean", self.outside / "twin")
        for name in (FOREIGN, SCRAP, ".lock", "begun.json"):
            (self.outside / "twin" / name).write_bytes(b"")

    def copy(self, of: str, to: Path) -> Path:
        shutil.copytree(self.path / of, to)
        return to

    def name(self, label: str) -> str:
        return self.states.get(label, label)

    def month(self, number: int) -> tuple[Path, Path]:
        return self.path / f"m{number}-nodes.csv", self.path / f"m{number}-edges.csv"

    def untouched(self) -> dict[str, tuple[bytes, int]]:
        """Every file outside, with its bytes and times."""
        return {
            str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
            for path in [self.outside, *self.outside.rglob("*")]
        }


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    return Place(tmp_path_factory.mktemp("elsewhere"))


class WaitsError(BaseException):
    """A command waits; no `except Exception` may hide it."""


@contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise WaitsError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


KINDS: dict[str, Callable[[Path, Place], Any]] = {
    "to a token": lambda path, place: path.symlink_to(place.outside / "token"),
    "to its twin": lambda path, place: path.symlink_to(place.outside / "twin" / path.name),
    "dangling": lambda path, place: path.symlink_to(place.outside / "made"),
    "to a folder": lambda path, place: path.symlink_to(place.outside),
    "to a device": lambda path, place: path.symlink_to("/dev/null"),
    "to itself": lambda path, place: path.symlink_to(path),
    "a pipe": lambda path, place: os.mkfifo(path),
    "a folder": lambda path, place: path.mkdir(),
    "a hard link": lambda path, place: path.hardlink_to(place.outside / "token"),
}


def verbs(folder: Path, place: Place, spare: Path) -> dict[str, list[object]]:
    """Every command on a folder; those that change it come last."""
    first, second, third = (place.month(number) for number in (1, 2, 3))
    return {
        "show": ["show", folder],
        "history": ["history", folder],
        "audit": ["audit", folder, "--data", *second],
        "export": ["export", folder, spare / "learner"],
        "predict": ["predict", folder, *third, "--out", spare / "predictions.csv"],
        "like": ["new", spare / "like", "--like", folder],
        "merged": ["merge", spare / "clean", folder],
        "verify": ["verify", folder],
        "merge": ["merge", folder, spare / "clean"],
        "observe": ["observe", folder, *third],
        "revise": ["revise", folder, *first, *third],
        "forget-node": ["forget", folder, "--node", "a1-1", "--batch", *first],
        "forget": ["forget", folder, *second],
    }


def run_all(folder: Path, place: Place, spare: Path, capsys) -> dict[str, tuple[int, str]]:
    """The exit code and the errors of every command; outside nothing has changed afterwards."""
    spare.mkdir()
    place.copy("clean", spare / "clean")
    before = place.untouched()
    found = {}
    for verb, words in verbs(folder, place, spare).items():
        capsys.readouterr()
        with no_longer_than(10):
            code = start(["learner", *map(str, words)])
        found[verb] = code, capsys.readouterr().err
    with no_longer_than(10):
        try:
            undrift.load(folder)
        except InputError as error:
            found["load"] = 2, str(error)
        else:
            found["load"] = 0, ""
    assert place.untouched() == before
    assert "evil" not in sys.modules
    for code, said in found.values():
        assert code in (0, 2, 3, 6), said
        assert "Traceback" not in said
    return found


READERS = ("show", "history", "audit", "export", "predict", "like", "merged", "load")
WRITERS = ("verify", "merge", "observe", "revise", "forget-node", "forget")
NEEDED = {  # by the verbs that only read
    "HEAD": READERS,
    "current": READERS,
    "learner.json": READERS,
    "history.jsonl": ("history",),
    "key": ("audit", "like", "merged"),
}


# every file as what waits, as what leads to a good file, and as one more; the other pairs are slow
ODD = [
    pytest.param(
        kind, label, marks=[pytest.mark.slow] * (k not in (1, 6, (j * 5) % 8)), id=f"{kind}-{label}"
    )
    for k, kind in enumerate(kind for kind in KINDS if kind != "a hard link")
    for j, label in enumerate(NAMES)
]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize(("kind", "label"), ODD)
def test_what_is_no_file_of_its_own_is_refused(kind, label, place, tmp_path, capsys) -> None:
    folder = place.copy("clean", tmp_path / "desk")
    odd = folder / place.name(label)
    odd.unlink(missing_ok=True)
    KINDS[kind](odd, place)
    if label == ".lock":
        (folder / "README.md").unlink()  # else verify has no need to write
    found = run_all(folder, place, tmp_path / "spare", capsys)
    for verb in (*WRITERS, *NEEDED.get(label, ())):
        code, said = found[verb]
        assert code == 2, verb
        assert str(odd).replace("\n", "") in said.replace("\n", ""), said
        assert "delete it" in said if label.startswith(".") else "put a copy" in said
    assert os.path.lexists(odd)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("kind", KINDS)
def test_a_history_at_its_start_is_not_written_through(kind, place, tmp_path, capsys) -> None:
    """At step 0 any text without a line break passes for a line that was torn off."""
    folder = place.copy("fresh", tmp_path / "desk")
    odd = folder / "history.jsonl"
    odd.unlink()
    KINDS[kind](odd, place)
    found = run_all(folder, place, tmp_path / "spare", capsys)
    assert found["verify"][0] == (0 if kind == "a hard link" else 2)


@pytest.mark.parametrize("label", NAMES)
def test_a_second_name_of_a_file_outside_is_not_written_to(label, place, tmp_path, capsys) -> None:
    target = f"twin/{place.name(label)}" if NAMES.index(label) % 2 else "token"
    folder = place.copy("clean", tmp_path / "desk")
    odd = folder / place.name(label)
    odd.unlink(missing_ok=True)
    odd.hardlink_to(place.outside / target)
    found = run_all(folder, place, tmp_path / "spare", capsys)
    if label == ".lock":  # the only file that is opened to be written to
        assert found["observe"][0] == 2
        assert "is a hard link" in found["observe"][1]


def write_head(folder: Path, text: str) -> None:
    (folder / "HEAD").write_text(text)


def forge(folder: Path, method: str | None = None, **params: Any) -> None:
    """Another state, with all hashes that fit, as somebody could make it on purpose."""
    path = LearnerFolder(folder).show().path
    state, metadata = load_with_metadata(path)
    state = replace(state, method=method or state.method, params=state.params | params)
    data = state_bytes(state, {"folder": metadata["folder"]})
    path.unlink()
    name = state_name(sha256(data).hexdigest())
    (folder / name).write_bytes(data)
    write_head(folder, name)


FORGED: dict[str, Callable[[Path, Place], None]] = {
    "a method": lambda folder, place: forge(folder, "evil:Evil"),
    "a module": lambda folder, place: forge(folder, "evil"),
    "a nested module": lambda folder, place: forge(folder, "evil.deep:Evil.inner"),
    "a rule": lambda folder, place: forge(folder, "adr", merging="evil:Rule"),
    "a device": lambda folder, place: forge(folder, device="evil:0"),
    "a parameter": lambda folder, place: forge(folder, budget="evil:1"),
    "HEAD above": lambda folder, place: write_head(
        folder, f"../../outside/twin/{place.states['current']}"
    ),
    "HEAD elsewhere": lambda folder, place: write_head(
        folder, str(place.outside / "twin" / place.states["current"])
    ),
    "HEAD of two lines": lambda folder, place: write_head(
        folder, f"{place.states['current']}\n{place.outside / 'token'}"
    ),
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_names_lead_nowhere(forged, place, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.syspath_prepend(place.outside)
    folder = place.copy("clean", tmp_path / "desk")
    FORGED[forged](folder, place)
    found = run_all(folder, place, tmp_path / "spare", capsys)
    for verb in ("predict", "merged", "verify", "observe", "load"):
        assert found[verb][0] == 2, verb
    assert not (place.outside / "evil.py.ran").exists()


def test_a_folder_that_the_user_reaches_through_a_link(place: Place, tmp_path) -> None:
    place.copy("clean", tmp_path / "desk")
    (tmp_path / "link").symlink_to("desk")
    folder = LearnerFolder(tmp_path / "link")
    assert folder.verify() == []
    assert folder.observe(place.month(3)).line.step == 3
