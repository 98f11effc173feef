"""A run on disk: the result last, the picture beside it, and going on where it was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undrift.evaluation.loop import Evaluation
from undrift.experiments import run as module
from undrift.experiments.checkpoint import checkpoint_path
from undrift.experiments.result import embedding_path, load_result, result_path, split_path
from undrift.experiments.run import execute, prepare
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import load_records
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


def test_a_full_disk_leaves_nothing_that_could_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    from undrift.errors import InputError

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        execute(prepare(SPEC), tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_run_where_classes_come_back_is_whole_on_disk(tmp_path: Path) -> None:
    spec = RunSpec(
        method="undrift.testing.running_mean:RunningMean", arrive="online:batch=2", seed=1
    )
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
