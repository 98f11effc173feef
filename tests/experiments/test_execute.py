"""A run on disk: the result last, the picture beside it, and going on where it was cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undrift.errors import InputError
from undrift.evaluation.loop import Evaluation
from undrift.experiments import run as module
from undrift.experiments.leftovers import checkpoint_path, clean
from undrift.experiments.result import embedding_path, load_result, result_path, split_path
from undrift.experiments.run import UnsavedError, execute, prepare
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import load_records
from undrift.storage.lock import exclusive
from undrift.storage.splits import load_split
from undrift.streams.arrange import arrange
from undrift.testing.graphs import tiny_stream

SPEC = RunSpec(method="bare", params={"epochs": 3, "hidden": (4, 4)})


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "load_stream", lambda name, seed: tiny_stream(seed))


def test_everything_lies_beside_the_result(tmp_path: Path) -> None:
    result = execute(prepare(SPEC), tmp_path)
    path = result_path(SPEC, tmp_path)
    assert load_result(path) == result
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "embedding.npz",
        "result.json",
        "split.npz",
    ]
    with np.load(embedding_path(path), allow_pickle=False) as picture:
        assert picture["first"].shape == picture["last"].shape == (20, 2)
        assert set(picture["labels"].tolist()) == {0, 1}
        assert not np.array_equal(picture["first"], picture["last"])


class CutError(Exception):
    """The power is gone."""


@pytest.mark.parametrize("cut", [0, 1])
def test_a_run_that_was_cut_goes_on_and_ends_the_same(tmp_path: Path, cut: int) -> None:
    def stop(t: int, _: Evaluation) -> None:
        if t == cut:
            raise CutError

    with pytest.raises(CutError):
        execute(prepare(SPEC), tmp_path, after_task=stop, checkpoints=True)
    folder = result_path(SPEC, tmp_path).parent
    assert checkpoint_path(folder).is_file()
    tasks: list[int] = []
    found = execute(
        prepare(SPEC), tmp_path, after_task=lambda t, _: tasks.append(t), checkpoints=True
    )
    assert tasks == list(range(cut + 1, 3))
    ready = prepare(SPEC)
    whole = ready.result(ready.evaluate())
    assert found.matrix == whole.matrix
    assert found.drift == whole.drift
    assert not checkpoint_path(folder).exists()


def test_without_checkpoints_none_is_written(tmp_path: Path) -> None:
    def stop(t: int, _: Evaluation) -> None:
        raise CutError

    with pytest.raises(CutError):
        execute(prepare(SPEC), tmp_path, after_task=stop)
    assert not list(tmp_path.rglob("*.safetensors"))


class Disk:
    """Writes that fail for want of room: those of these files, or while `full`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        from undrift.storage import files

        self.names, real = names, files.whole_file

        @contextmanager
        def whole_file(path: Path) -> Iterator[Any]:
            if Path(path).name in self.names:
                raise InputError(f"cannot write {path} (No space left on device)")
            with real(path) as file:
                yield file

        monkeypatch.setattr(files, "whole_file", whole_file)


def test_a_checkpoint_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, "checkpoint.safetensors")
    said: list[str] = []
    result = execute(prepare(SPEC), tmp_path, checkpoints=True, warn=said.append)
    assert load_result(result_path(SPEC, tmp_path)) == result
    assert len(said) == 1
    assert "No space left on device" in said[0]


def test_a_full_disk_leaves_nothing_that_could_be_trusted_and_the_result_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, "result.json")
    with pytest.raises(UnsavedError, match=r"No space left on device.*a_avg \d") as caught:
        execute(prepare(SPEC), tmp_path)
    assert not list(tmp_path.rglob("result.json"))
    ready = prepare(SPEC)
    assert caught.value.result.matrix == ready.result(ready.evaluate()).matrix


def test_a_result_takes_the_room_of_checkpoints_that_nobody_is_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    left, busy = (checkpoint_path(tmp_path / name) for name in ("left", "busy"))
    for path in (left, busy):
        path.parent.mkdir()
        path.write_bytes(b"x")
    room = module.make_room

    def freed(out: Path) -> None:
        room(out)
        disk.names = ()

    def fill(t: int, _: Evaluation) -> None:
        disk.names = ("split.npz",)

    monkeypatch.setattr(module, "make_room", freed)
    (tmp_path / "locks").mkdir()
    with exclusive(tmp_path / "locks" / "busy.lock", "running"):
        execute(prepare(SPEC), tmp_path, after_task=fill, checkpoints=True)
    assert (left.exists(), busy.exists()) == (False, True)
    assert result_path(SPEC, tmp_path).is_file()


def test_what_killed_runs_left_is_cleaned_away(tmp_path: Path) -> None:
    execute(prepare(SPEC), tmp_path)
    folder = result_path(SPEC, tmp_path).parent
    other = tmp_path / "other"
    other.mkdir()
    for place in (folder, other):
        checkpoint_path(place).write_bytes(b"x")
        (place / ".checkpoint.safetensors.0123abcd.part").write_bytes(b"half")
    clean(tmp_path)
    assert not list(tmp_path.rglob("*.part"))
    assert not checkpoint_path(folder).exists()  # its result is there
    assert checkpoint_path(other).exists()  # a run that may go on


def test_a_run_where_classes_come_back_is_whole_on_disk(tmp_path: Path) -> None:
    spec = RunSpec(method="tests.harness.running_mean:RunningMean", arrive="online:batch=2", seed=1)
    result = execute(prepare(spec), tmp_path, checkpoints=True)
    records = load_records(tmp_path)
    assert records.damaged == []
    assert records.results == {spec.id: result}
    stream = arrange(tiny_stream(1), "online:batch=2")
    split = load_split(split_path(result_path(spec, tmp_path)), stream.saved_split().sha256)
    assert split.arrives is not None
    assert split.arrives.tolist() == stream.task_of.tolist()
    assert result.validation is not None
    assert set(result.validation.by_class.model_dump()) == set(result.metrics.by_class.model_dump())
    assert not checkpoint_path(result_path(spec, tmp_path).parent).exists()
