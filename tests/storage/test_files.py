import json
import os
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import save, save_file

from undrift import InputError
from undrift.storage import State, load_state, save_state
from undrift.storage.files import (
    checksum,
    make_folder,
    read_metadata,
    state_bytes,
    sync_folder,
    whole_file,
    writable_folder,
    write_atomically,
)

DAMAGED = "is damaged or is not a state file"


def state() -> State:
    return State(
        method="adr",
        params={"gamma": 0.1, "hidden": [8, 8], "patience": None, "merging": "ham"},
        tensors={
            "gram": torch.arange(6, dtype=torch.float64).reshape(2, 3),
            "mask": torch.tensor([True, False]),
            "empty": torch.zeros(0, 4),
        },
        values={"classes.#": 2, "classes.0": 3, "classes.1": 5, "count": 1.5, "ham": None},
    )


def same(left: State, right: State) -> bool:
    return (
        (left.method, left.params, left.values) == (right.method, right.params, right.values)
        and left.tensors.keys() == right.tensors.keys()
        and all(torch.equal(left.tensors[k], right.tensors[k]) for k in left.tensors)
        and all(left.tensors[k].dtype == right.tensors[k].dtype for k in left.tensors)
    )


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "s"


def test_bytes_are_written_and_the_folder_is_made(tmp_path) -> None:
    path = tmp_path / "a" / "b" / "file.bin"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]
    (path.parent / "plain").write_bytes(b"x")
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, error):
    path = tmp_path / "file.bin"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, step, Mock(side_effect=error))
    with pytest.raises((InputError, KeyboardInterrupt), match=r"^$|No space .*; free some space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_stands_in_the_way_is_named(tmp_path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*taken"):
        write_atomically(tmp_path / "taken", b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot make the folder"):
        make_folder(tmp_path / "file" / "folder")


@pytest.mark.parametrize("hashed", [True, False])
def test_the_name_of_a_file_may_have_its_hash(tmp_path, hashed: bool) -> None:
    wanted = sha256(b"one two").hexdigest()
    with whole_file(tmp_path / "a.bin", hashed=hashed) as file:
        file.write(b"one ")
        file.write(b"two")
    (path,) = tmp_path.iterdir()
    assert (path.read_bytes(), checksum(path)) == (b"one two", wanted)
    assert path.name == (f"a-{wanted[:16]}.bin" if hashed else "a.bin")


def test_files_and_names_are_brought_to_the_disk(tmp_path, monkeypatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    sync_folder(tmp_path / "gone")
    write_atomically(tmp_path / "x", b"1")
    assert len(synced) == 2  # the file, then its folder
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced[1])  # closed again


def test_a_folder_is_tried_before_work(tmp_path, monkeypatch) -> None:
    (tmp_path / ".probe.0123abcd.part").touch()  # of a killed process
    assert writable_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    writable_folder(tmp_path)
    assert [*(tmp_path / "a" / "b").iterdir(), *tmp_path.iterdir()] == [tmp_path / "a"]
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(InputError, match=r"cannot write to .* \(No space left on device\)"):
        writable_folder(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


WHOLE = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "kept",
    [
        state(),
        State("bare", {}, {}, {}),
        State("adr", {}, {"a": WHOLE, "b": WHOLE[0], "c": WHOLE.T, "d": WHOLE}, {}),  # shared
    ],
    ids=["whole", "bare", "shared"],
)
def test_a_state_comes_back_as_it_was(path: Path, kept: State) -> None:
    save_state(path, kept)
    assert same(load_state(path), kept)


def test_metadata_is_read_without_the_tensors(path: Path) -> None:
    path.write_bytes(state_bytes(state(), {"more": "words"}))
    told = read_metadata(path)
    assert (told["version"], told["more"], told["method"]) == ("2", "words", "adr")
    assert json.loads(told["values"]) == state().values
    assert same(load_state(path), state())


@pytest.mark.parametrize("kept", [0, 7, 60, -1])
def test_a_cut_file_is_damaged(path: Path, kept: int) -> None:
    with pytest.raises(InputError, match="there is no state file"):
        load_state(path)
    save_state(path, state())
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=DAMAGED):
        load_state(path)


def test_a_foreign_safetensors_file_is_told_apart(path: Path) -> None:
    save_file({"w": torch.zeros(2)}, path, {"format": "pt"})
    with pytest.raises(InputError, match="no state of undrift"):
        load_state(path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),  # version 1 has no checksum
        ({"params": "{"}, DAMAGED),
        ({"params": "3"}, DAMAGED),
        ({"values": "nonsense"}, DAMAGED),
        ({"version": "x"}, DAMAGED),
        ({"method": None}, DAMAGED),
        ({"version": "2"}, DAMAGED),  # without its checksum
        ({"version": "4"}, "upgrade undrift"),
    ],
)
def test_what_the_metadata_says_is_checked(path, changes, told) -> None:
    metadata = {"format": "undrift-state", "version": "1", "method": "adr"}
    metadata |= {"params": "{}", "values": "{}"} | changes
    path.write_bytes(save({}, {name: text for name, text in metadata.items() if text is not None}))
    if told is None:
        assert load_state(path).method == "adr"
    else:
        with pytest.raises(InputError, match=told):
            load_state(path)


def test_one_flipped_byte_is_one_sentence(path: Path) -> None:
    """Every byte of a small file: whatever it stood for, the state is the old one or refused."""
    save_state(path, state())
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            found = load_state(path)
        except InputError:
            refused += 1
        else:
            assert same(found, state())
    assert refused > 0.9 * len(range(0, len(whole), 3))


@pytest.mark.parametrize("name", ["params", "values", "method", "more"])
def test_a_changed_word_is_damage(path: Path, name: str) -> None:
    kept = State("abc", {"p": 123}, {"t": torch.ones(2)}, {"v": 123})
    data = state_bytes(kept, {"more": "abc"})
    old = b"123" if name in ("params", "values") else b"abc"
    at = data.index(old, data.index(f'"{name}"'.encode()))
    path.write_bytes(data[:at] + b"321" + data[at + 3 :])
    with pytest.raises(InputError, match=DAMAGED):
        load_state(path)
