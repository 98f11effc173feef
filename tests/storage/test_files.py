from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save, save_file

from undrift.errors import InputError
from undrift.learners.registry import make_learner
from undrift.storage import files
from undrift.storage.files import (
    load_state,
    make_folder,
    read_metadata,
    save_state,
    state_bytes,
    write_atomically,
    write_pieces,
)
from undrift.storage.state import State
from undrift.testing.graphs import tiny_stream


def fail(*arguments: Any) -> None:
    raise OSError(28, "No space left on device")


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


def test_bytes_are_written_and_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.bin"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "file.bin"
    write_atomically(path, b"old")
    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(InputError, match="No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file.bin", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file.bin", b"x")
    (tmp_path / "plain").write_bytes(b"x")
    assert (tmp_path / "file.bin").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_in_the_place_of_the_file_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*taken"):
        write_atomically(tmp_path / "taken", b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_a_folder_under_a_file_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot make the folder"):
        make_folder(tmp_path / "file" / "folder")


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "learner.safetensors"
    save_state(path, state())
    assert same(load_state(path), state())


def test_the_state_of_a_learner_that_observed_nothing_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "learner.safetensors"
    save_state(path, State("bare", {}, {}, {}))
    assert same(load_state(path), State("bare", {}, {}, {}))


def test_tensors_that_share_memory_are_saved_apart(tmp_path: Path) -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    shared = State("adr", {}, {"a": whole, "b": whole[0], "c": whole.T}, {})
    save_state(tmp_path / "s", shared)
    assert same(load_state(tmp_path / "s"), shared)


def test_a_tuple_in_params_comes_back_as_a_list(tmp_path: Path) -> None:
    save_state(tmp_path / "s", State("adr", {"hidden": (8, 8)}, {}, {}))
    assert load_state(tmp_path / "s").params == {"hidden": [8, 8]}


def test_a_learner_goes_on_from_its_file(tmp_path: Path) -> None:
    stream = tiny_stream()
    settings: dict[str, Any] = {"epochs": 2, "hidden": (4, 4)}
    learner = make_learner("bare", **settings).observe(stream.task(0))
    save_state(tmp_path / "s", learner.state())
    again = make_learner("bare", **settings).load(load_state(tmp_path / "s"))
    assert torch.equal(again.scores(stream.graph), learner.scores(stream.graph))
    learner.observe(stream.task(1))
    again.observe(stream.task(1))
    assert torch.equal(again.scores(stream.graph), learner.scores(stream.graph))


def test_a_failed_save_keeps_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    save_state(path, state())
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", fail)
        with pytest.raises(InputError):
            save_state(path, State("bare", {}, {}, {}))
    assert same(load_state(path), state())
    assert os.listdir(tmp_path) == ["s"]


def test_a_missing_state_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no state file"):
        load_state(tmp_path / "nowhere")


@pytest.mark.parametrize("kept", [0, 1, 7, 9, 60, 300, -1])
def test_a_cut_file_is_damaged(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "s"
    save_state(path, state())
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match="is damaged or is not a state file"):
        load_state(path)


def test_text_is_not_a_state(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("hello, this is a letter and not a state at all")
    with pytest.raises(InputError, match="is damaged or is not a state file"):
        load_state(tmp_path / "s")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_foreign_safetensors_file_is_told_apart(
    tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    save_file({"w": torch.zeros(2)}, tmp_path / "s", metadata)
    with pytest.raises(InputError, match="no state of undrift"):
        load_state(tmp_path / "s")


@pytest.mark.parametrize(
    ("key", "value"),
    [("params", "{"), ("params", "3"), ("values", "nonsense"), ("version", "x"), ("method", None)],
)
def test_broken_metadata_is_damage(tmp_path: Path, key: str, value: str | None) -> None:
    metadata = {"format": "undrift-state", "version": "1", "method": "adr"}
    metadata |= {"params": "{}", "values": json.dumps({})}
    if value is None:
        del metadata[key]
    else:
        metadata[key] = value
    (tmp_path / "s").write_bytes(save({}, metadata))
    with pytest.raises(InputError, match="is damaged or is not a state file"):
        load_state(tmp_path / "s")


def test_a_newer_file_asks_for_an_upgrade(tmp_path: Path) -> None:
    metadata = {"format": "undrift-state", "version": "4", "method": "a"}
    (tmp_path / "s").write_bytes(save({}, metadata | {"params": "{}", "values": "{}"}))
    with pytest.raises(InputError, match="upgrade undrift"):
        load_state(tmp_path / "s")


def test_a_file_of_version_1_has_no_checksum_and_is_read(tmp_path: Path) -> None:
    metadata = {"format": "undrift-state", "version": "1", "method": "a"}
    (tmp_path / "s").write_bytes(save({}, metadata | {"params": "{}", "values": "{}"}))
    assert load_state(tmp_path / "s").method == "a"


def test_one_flipped_byte_is_one_sentence(tmp_path: Path) -> None:
    """Every byte of a small file: whatever it stood for, the state is the old one or refused."""
    path = tmp_path / "s"
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


def test_metadata_is_read_without_the_tensors(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(state_bytes(state(), {"more": "words"}))
    assert read_metadata(tmp_path / "s")["more"] == "words"
    assert same(load_state(tmp_path / "s"), state())


def test_three_tensors_that_share_memory_are_saved_apart(tmp_path: Path) -> None:
    whole = torch.arange(6.0)
    shared = State("adr", {}, {"a": whole, "b": whole, "c": whole}, {})
    save_state(tmp_path / "s", shared)
    assert same(load_state(tmp_path / "s"), shared)


@pytest.mark.parametrize("hashed", [True, False])
def test_pieces_make_one_file_whose_hash_is_told(tmp_path: Path, hashed: bool) -> None:
    wanted = sha256(b"one two").hexdigest()
    path, sha = write_pieces(tmp_path / "a.bin", [b"one ", b"two"], hashed=hashed)
    assert (path.read_bytes(), sha) == (b"one two", wanted)
    assert path.name == (f"a-{wanted[:16]}.bin" if hashed else "a.bin")
    assert list(tmp_path.iterdir()) == [path]
