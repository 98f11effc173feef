"""Whatever is wrong with a folder is one sentence, and nothing is lost."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import undrift
from undrift import InputError, LearnerFolder
from undrift.folder import step, store
from undrift.folder.record import FORMAT
from undrift.storage import files
from undrift.storage.lock import exclusive

QUICK = {"gamma": 0.1, "hops": 2}


@pytest.fixture
def folder(desk, tmp_path) -> LearnerFolder:
    made = LearnerFolder.new(tmp_path / "desk", settings=QUICK, keep=1)
    made.observe(desk.month(1))
    made.observe(desk.month(2))
    return made


def contents(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.iterdir() if each.name != ".lock"}


def state(folder: LearnerFolder) -> Path:
    return folder.path / (folder.path / "HEAD").read_text().strip()


def test_an_unknown_folder(tmp_path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match=r"there is no learner in .*undrift learner new"):
            LearnerFolder(path)
        with pytest.raises(InputError, match="there is no learner in"):
            undrift.load(tmp_path)


@pytest.mark.parametrize(("found", "way_out"), [(FORMAT + 1, "upgrade"), (3, "make a new")])
def test_a_folder_of_another_format(folder: LearnerFolder, found: int, way_out: str) -> None:
    (folder.path / "learner.json").write_text(json.dumps({"format": found}))
    with pytest.raises(InputError, match=rf"undrift \(folder format {found}, .*; {way_out}"):
        LearnerFolder(folder.path)


def test_a_batch_that_no_hash_can_tell_is_refused(folder: LearnerFolder) -> None:
    """Before format 4 there was no hash of the content; it could be counted twice."""
    told = folder.show().record.model_dump(mode="json")
    told["batches"][0]["content"] = ""
    with pytest.raises(InputError, match="by an older undrift"):
        store._version(folder.show().path, {"folder": json.dumps(told)})


def test_a_damaged_state(folder: LearnerFolder, desk) -> None:
    data = bytearray(state(folder).read_bytes())
    data[len(data) // 2] ^= 1
    state(folder).write_bytes(bytes(data))
    before = contents(folder.path)
    for verb in (folder.observe, folder.predict, folder.forget):
        with pytest.raises(InputError, match=r"state-.* is damaged: its bytes do not have"):
            verb(desk.month(2))
    assert contents(folder.path) == before


def test_verify_reads_states_that_are_kept_as_well(folder: LearnerFolder) -> None:
    newest, older = store.states(folder.path)
    assert newest == state(folder)
    data = bytearray(older.read_bytes())
    data[-1] ^= 1
    older.write_bytes(data)
    with pytest.raises(InputError, match="its bytes do not have the hash in its name"):
        folder.verify()


@pytest.mark.parametrize("head", ["", "../../etc/passwd", "state-12.safetensors", "\xff"])
def test_a_head_that_names_nothing(folder: LearnerFolder, head: str) -> None:
    (folder.path / "HEAD").write_bytes(head.encode("latin-1"))
    with pytest.raises(InputError, match=r"HEAD (is missing or damaged|names \S+, which)"):
        folder.show()


def test_head_that_names_a_missing_file(folder: LearnerFolder) -> None:
    gone = state(folder)
    gone.unlink()
    kept = next(folder.path.glob("state-*")).name
    for action in (folder.show, folder.verify, lambda: LearnerFolder(folder.path)):
        with pytest.raises(InputError, match=rf"HEAD names {gone.name}, .* or write {kept} in"):
            action()


@pytest.mark.parametrize("change", ["cut middle", "cut end", "edited", "nonsense"])
def test_a_history_that_was_changed(folder: LearnerFolder, desk, change: str) -> None:
    path = folder.path / "history.jsonl"
    one, two, three = path.read_text().splitlines()
    lines = {"cut middle": [one, three], "cut end": [one], "nonsense": [one, "{", three]}
    edited = [one, two.replace('"labelled":20', '"labelled":21'), three]
    path.write_text("".join(f"{line}\n" for line in lines.get(change, edited)))
    before = contents(folder.path)
    with pytest.raises(InputError, match=r"history.jsonl is damaged: .*restore it from a copy"):
        folder.observe(desk.month(3))
    with pytest.raises(InputError, match=r"history.jsonl is damaged"):
        folder.verify()
    assert contents(folder.path) == before
    assert folder.predict(desk.month(2)).classes


def test_a_torn_last_line_is_completed(folder: LearnerFolder) -> None:
    path = folder.path / "history.jsonl"
    whole = path.read_bytes()
    for end in (-1, -40, whole.rindex(b"\n", 0, -1) + 1):
        path.write_bytes(whole[:end])
        assert folder.verify() == ["history.jsonl: the line of step 2"]
        assert path.read_bytes() == whole


def test_files_that_follow_from_the_state_are_written_again(folder: LearnerFolder) -> None:
    before = contents(folder.path)
    (folder.path / "learner.json").write_text("{")
    (folder.path / "README.md").unlink()
    (folder.path / ".HEAD.12.part").write_text("scrap")
    assert len(folder.verify()) == 3
    assert contents(folder.path) == before
    assert folder.verify() == []


def no_space(*arguments: Any, **named: Any) -> None:
    raise OSError(28, "No space left on device")


def test_no_space_for_the_history_once_the_step_is_taken(folder, desk, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        real = store.write_version

        def then_full(*arguments: Any) -> Any:
            made = real(*arguments)
            patch.setattr(files.os, "fsync", no_space)
            return made

        patch.setattr("undrift.folder.store.write_version", then_full)
        step = folder.observe(desk.month(3))
    assert "the step is taken, but" in step.notes[-1]
    assert folder.show().record.entry.step == 3
    folder.observe(desk.month(4))
    assert [line.step for line in folder.history()] == [0, 1, 2, 3, 4]


def test_a_read_only_folder(folder: LearnerFolder, desk, monkeypatch) -> None:
    real = os.open

    def read_only(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *more, **named)

    with monkeypatch.context() as patch:  # the superuser may write in spite of any mode
        patch.setattr(os, "open", read_only)
        with pytest.raises(InputError, match=r"cannot write to .*desk \(Read-only file system\)"):
            folder.observe(desk.month(3))
        assert folder.predict(desk.month(2)).classes
        assert folder.verify() == []


def test_two_writers_are_kept_apart(folder: LearnerFolder, desk) -> None:
    with exclusive(folder.path / ".lock", "writing"):
        with pytest.raises(InputError, match=r"another process is writing to .*desk right now"):
            folder.observe(desk.month(3))
        assert folder.predict(desk.month(2)).classes  # readers need no lock


def test_a_place_that_is_taken(folder: LearnerFolder, tmp_path) -> None:
    with pytest.raises(InputError, match="is there already"):
        LearnerFolder.new(folder.path)
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "made" / "with" / "parents"):
        assert LearnerFolder.new(place).verify() == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is there already"):
        LearnerFolder.new(tmp_path / "file")
    with pytest.raises(InputError, match="cannot make the folder"):
        LearnerFolder.new(tmp_path / "file" / "below")


def test_numbers_that_are_not_finite_are_not_kept(folder, desk, monkeypatch) -> None:
    from undrift.propagation.learner import Propagation

    before = contents(folder.path)
    real = Propagation.state

    def broken(self: Propagation, **more: Any) -> Any:
        found = real(self, **more)
        next(iter(found.tensors.values()))[0] = float("nan")
        return found

    monkeypatch.setattr(Propagation, "state", broken)
    with pytest.raises(InputError, match=r"numbers that are not finite; nothing was done"):
        folder.observe(desk.month(3))
    assert contents(folder.path) == before


def test_a_folder_whose_numbers_are_not_finite_is_not_opened(folder, monkeypatch) -> None:
    """Such as one whose checksums somebody made to fit."""
    version, state = store.current_with_state(folder.path)
    broken = {n: t * float("nan") for n, t in state.tensors.items() if t.is_floating_point()}
    found = (version, replace(state, tensors=state.tensors | broken))
    monkeypatch.setattr(step, "current_with_state", lambda folder: found)
    with pytest.raises(InputError, match=r"is damaged; restore it from a copy \(.* not finite\)"):
        folder.learner()


def test_the_key_is_on_the_disk_before_anything_relies_on_it(tmp_path, monkeypatch) -> None:
    sizes: list[int] = []
    real = os.fsync

    def synced(handle: int) -> None:
        sizes.append(os.fstat(handle).st_size)
        real(handle)

    monkeypatch.setattr(os, "fsync", synced)
    LearnerFolder.new(tmp_path / "desk", settings=QUICK)
    assert sizes[0] == 64  # 32 bytes in hexadecimal digits
    assert min(sizes) > 0
    assert (tmp_path / "desk" / "key").stat().st_mode & 0o777 == 0o600


def test_a_reader_looks_again_when_a_writer_moved_on(folder: LearnerFolder) -> None:
    """The state that HEAD named is deleted between the two reads."""
    current = (folder.path / "HEAD").read_text()
    heads = iter([f"state-{'0' * 64}.safetensors", current.strip(), current.strip()])
    original = store._head
    try:
        store._head = lambda path: next(heads)
        assert store.current(folder.path).record.entry.step == 2
    finally:
        store._head = original
