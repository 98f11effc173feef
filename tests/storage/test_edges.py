"""Edges of what is stored: sizes around a byte, ages around a day, hashes that files rely on."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from undrift.errors import InputError
from undrift.storage import files, leftovers, splits
from undrift.storage.files import checksum, load_state, state_bytes, sync_folder
from undrift.storage.leftovers import claimed_folder, sweep
from undrift.storage.lock import exclusive
from undrift.storage.splits import SavedSplit, labels_digest, load_split, save_split
from undrift.storage.state import State, pack, unpack

HOUR = 3600.0
NO_LOCKS = pytest.mark.skipif(sys.platform == "win32", reason="Windows files are not locked here")


def split_of(nodes: int, **more: Any) -> SavedSplit:
    of = np.arange(nodes) % 3
    return SavedSplit(((0, 1), (4,)), of == 0, of == 1, of == 2, "ab" * 32, **more)


# splits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 7, 8, 9, 15, 16, 17])
@pytest.mark.parametrize("returning", [False, True])
def test_a_split_of_any_size_comes_back(tmp_path: Path, nodes: int, returning: bool) -> None:
    more = {"arrives": np.arange(nodes) % 2, "context": "past"} if returning else {}
    split = split_of(nodes, **more)
    save_split(tmp_path / "s.npz", split)
    found = load_split(tmp_path / "s.npz", split.sha256)
    assert (found.sha256, found.classes, found.context) == (
        split.sha256,
        ((0, 1), (4,)),
        "past" if returning else "none",
    )
    for name in ("train", "val", "test"):
        assert np.array_equal(getattr(found, name), getattr(split, name))
    assert (found.version, found.nodes) == (2 if returning else 1, nodes)
    assert (found.arrives is None) is not returning
    if found.arrives is not None:
        assert found.arrives.tolist() == (np.arange(nodes) % 2).tolist()


def test_the_hashes_of_splits_are_the_same_for_ever() -> None:
    assert labels_digest(np.array([0, 1])).startswith("9d34149fbd1fe777")
    assert split_of(9).sha256.startswith("da9fc528c7e91f0d")
    assert split_of(9, arrives=np.arange(9), context="past").sha256.startswith("7b82b5f469aeceb0")


@pytest.mark.parametrize("nodes", [0, 8, 17])
def test_a_number_of_nodes_that_does_not_fit_the_bits_is_damage(tmp_path: Path, nodes: int) -> None:
    save_split(tmp_path / "s.npz", split_of(12))
    with np.load(tmp_path / "s.npz") as archive:
        parts = {**archive, "nodes": np.int64(nodes)}
    with pytest.raises(ValueError, match="more nodes than there are bits, or fewer"):
        splits._unpack(parts)


def test_a_split_of_the_newest_version_is_read_and_a_newer_one_is_not(tmp_path: Path) -> None:
    save_split(tmp_path / "s.npz", split_of(9, arrives=np.arange(9)))
    assert load_split(tmp_path / "s.npz").version == splits.VERSION
    with np.load(tmp_path / "s.npz") as archive:
        parts = {**archive, "version": np.int64(splits.VERSION + 1)}
    np.savez(tmp_path / "s.npz", **parts)
    with pytest.raises(InputError, match="upgrade undrift"):
        load_split(tmp_path / "s.npz")


def test_masks_that_cannot_be_right() -> None:
    yes, no = np.ones(3, np.bool_), np.zeros(3, np.bool_)
    with pytest.raises(InputError, match="overlap"):
        SavedSplit(((0,),), yes, yes, no, "")
    with pytest.raises(InputError, match="three lists of booleans"):
        SavedSplit(((0,),), yes, no[:2], no, "")
    with pytest.raises(InputError, match="three lists of booleans"):
        SavedSplit(((0,),), yes, no.astype(np.int64), no, "")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the task of every node, or of none"):
        SavedSplit(((0,),), yes, no, no, "", arrives=np.zeros(2))


# what is left over -----------------------------------------------------------------------


def unsupported(*_: object) -> None:
    raise OSError(95, "not supported")


@pytest.mark.parametrize(("hours", "goes"), [(23, False), (25, True)])
def test_without_locks_a_part_is_left_over_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int, goes: bool
) -> None:
    then = time.time() - hours * HOUR
    monkeypatch.setattr(leftovers, "_lock", unsupported)
    part = tmp_path / ".x.0123abcd.part"
    part.write_text("half")
    os.utime(part, (then, then))
    assert sweep([tmp_path]) == ([part] if goes else [])
    assert part.exists() is not goes


@NO_LOCKS
@pytest.mark.parametrize(("hours", "goes"), [(23, False), (25, True)])
def test_without_locks_a_folder_is_left_over_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int, goes: bool
) -> None:
    monkeypatch.setattr(leftovers.fcntl, "flock", unsupported)
    left = tmp_path / ".desk.00000000.part"
    left.mkdir()
    then = time.time() - hours * HOUR
    os.utime(left, (then, then))
    with claimed_folder(tmp_path / ".desk.11111111.part"):
        assert left.exists() is not goes


@NO_LOCKS
def test_a_part_that_is_locked_stays_however_old(tmp_path: Path) -> None:
    part = tmp_path / ".x.0123abcd.part"
    with leftovers.claim(part) as file:
        file.write(b"half")
        os.utime(part, (1e9, 1e9))
        assert sweep([tmp_path]) == []
    assert sweep([tmp_path]) == [part]


def test_parts_are_told_by_eight_digits(tmp_path: Path) -> None:
    for name in (".x.0123abc.part", ".x.0123abcde.part", ".x.0123abcg.part", "x.0123abcd.part"):
        (tmp_path / name).touch()
    assert sweep([tmp_path]) == []


def test_folders_of_a_name_with_signs_are_told_apart(tmp_path: Path) -> None:
    other = tmp_path / ".desk1.00000000.part"
    other.mkdir()
    file = tmp_path / ".desk[1].22222222.part"
    file.touch()
    with claimed_folder(tmp_path / ".desk[1].11111111.part"):
        pass
    assert other.is_dir()
    assert file.is_file()  # no folder: of a file that somebody writes


# locks -----------------------------------------------------------------------------------


def test_a_lock_does_not_wait_unless_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    real = filelock.FileLock.acquire

    def acquire(self: Any, *args: Any, **options: Any) -> Any:
        asked.append((options["timeout"], self.is_singleton, self._context.mode))
        return real(self, *args, **options)

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with exclusive(tmp_path / "a", "x"), exclusive(tmp_path / "b", "x", patience=2.5):
        pass
    assert asked == [(0.0, False, 0o666), (2.5, False, 0o666)]


# states ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class InDict:
    parts: dict[str, list[int]]


@dataclass(frozen=True)
class InTuple:
    parts: tuple[list[int], ...]


@dataclass(frozen=True)
class InPair:
    parts: tuple[int, list[int]]


@dataclass(frozen=True)
class InUnion:
    parts: list[int] | None


@dataclass(frozen=True)
class KeyedByNumber:
    parts: dict[int, int]


@dataclass(frozen=True)
class Alike:
    parts: tuple[int, ...] | tuple[str, ...]


@pytest.mark.parametrize("kind", [InDict, InTuple, InPair, InUnion, KeyedByNumber, Alike])
def test_what_could_not_be_read_back_is_refused_before_anything_is_saved(kind: Any) -> None:
    with pytest.raises(TypeError, match="field 'parts' of"):
        pack(kind(None))


def test_bytes_of_a_state() -> None:
    tensors: dict[str, Tensor] = {"a": torch.zeros(3), "b": torch.zeros(2, 2).double()}
    assert State("x", {}, tensors, {}).nbytes == 12 + 32


def test_a_tensor_that_was_trained_is_kept_without_its_gradient() -> None:
    tensors, values = pack((torch.ones(2, requires_grad=True),))
    assert not tensors["0"].requires_grad
    assert unpack(tuple[Tensor, ...], tensors, values)[0].tolist() == [1.0, 1.0]


def test_a_file_without_its_checksum_is_damaged_from_version_2_on(tmp_path: Path) -> None:
    told = {"format": "undrift-state", "method": "a", "params": "{}", "values": "{}"}
    for version in ("1", "2"):
        (tmp_path / version).write_bytes(save({}, told | {"version": version}))
    assert load_state(tmp_path / "1").method == "a"
    with pytest.raises(InputError, match="is damaged or is not a state file"):
        load_state(tmp_path / "2")


def test_the_bytes_of_a_state_say_their_version(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(state_bytes(State("a", {}, {}, {"x": 1}), {"more": "y"}))
    told = files.read_metadata(tmp_path / "s")
    assert (told["version"], told["more"], told["method"]) == ("2", "y", "a")
    assert json.loads(told["values"]) == {"x": 1}


@pytest.mark.parametrize("name", ["params", "values", "method", "more"])
def test_a_changed_word_is_damage(tmp_path: Path, name: str) -> None:
    state = State("abc", {"p": 123}, {"t": torch.ones(2)}, {"v": 123})
    data = state_bytes(state, {"more": "abc"})
    old = b"123" if name in ("params", "values") else b"abc"
    at = data.index(old, data.index(f'"{name}"'.encode()))
    (tmp_path / "s").write_bytes(data[:at] + b"321" + data[at + 3 :])
    with pytest.raises(InputError, match="is damaged or is not a state file"):
        load_state(tmp_path / "s")


def test_the_checksum_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert checksum(tmp_path / "x").startswith("ba7816bf8f01cfea414140de5dae2223")


def test_names_are_brought_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    sync_folder(tmp_path)
    assert len(synced) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced[0])  # closed again
    sync_folder(tmp_path / "gone")
    files.write_atomically(tmp_path / "x", b"1")
    assert len(synced) == 3  # the file, then its folder
    files.writable_folder(tmp_path)
    assert len(synced) == 4


@pytest.mark.parametrize(("seconds", "goes"), [(86_399.5, False), (86_400.5, True)])
def test_a_day_is_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, goes: bool
) -> None:
    part = tmp_path / ".x.0123abcd.part"
    part.write_text("half")
    os.utime(part, (1e9, 1e9))
    monkeypatch.setattr(leftovers, "_lock", unsupported)
    monkeypatch.setattr(leftovers.time, "time", lambda: 1e9 + seconds)
    assert sweep([tmp_path]) == ([part] if goes else [])


def test_a_folder_is_tried_with_64_kb_that_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    files.writable_folder(tmp_path)
    assert sizes == [65_536]
