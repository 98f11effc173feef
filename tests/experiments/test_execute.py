"""A run on disk: the result last, the picture beside it, and going on where it was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undrift.evaluation.loop import Evaluation
from undrift.experiments import run as module
from undrift.experiments.checkpoint import checkpoint_path
from undrift.experiments.result import embedding_path, load_result, result_path
from undrift.experiments.run import execute, prepare
from undrift.experiments.spec import RunSpec
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
