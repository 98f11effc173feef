"""What was learned so far comes back bit for bit; anything else counts as nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from undrift.evaluation.loop import Evaluation, evaluate
from undrift.experiments.checkpoint import drop_checkpoint, load_checkpoint, save_checkpoint
from undrift.learners.registry import METHODS, make_learner
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4)}


def settings(method: str) -> dict[str, Any]:
    return {name: value for name, value in QUICK.items() if name in make_learner(method).params()}


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_goes_on_equals_one_that_was_not_cut(tmp_path: Path, method: str) -> None:
    stream = tiny_stream(1)

    def cut(t: int, so_far: Evaluation) -> None:
        if t == 1:
            save_checkpoint(tmp_path, learner, so_far)
            raise KeyboardInterrupt

    learner = make_learner(method, seed=1, **settings(method))
    with pytest.raises(KeyboardInterrupt):
        evaluate(learner, stream, splits=("test", "val"), after_task=cut)
    other = make_learner(method, seed=1, **settings(method))
    so_far = load_checkpoint(tmp_path, other)
    assert so_far is not None
    assert so_far.tasks == 2
    found = evaluate(other, stream, splits=("test", "val"), so_far=so_far)
    whole = evaluate(
        make_learner(method, seed=1, **settings(method)), stream, splits=("test", "val")
    )
    assert found.grades == whole.grades
    assert found.drift == whole.drift
    assert found.state_bytes == whole.state_bytes
    assert all(torch.equal(a, b) for a, b in zip(found.embeddings, whole.embeddings, strict=True))


@pytest.mark.parametrize("damage", ["none", "short", "empty", "foreign"])
def test_no_file_and_a_damaged_one_count_as_nothing(tmp_path: Path, damage: str) -> None:
    learner = make_learner("bare", **QUICK)
    learner.observe(tiny_stream().task(0))
    save_checkpoint(tmp_path, learner, Evaluation({}, state_bytes=(1,)))
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    path.write_bytes({"short": data[: len(data) // 2], "foreign": b"x" * 99}.get(damage, b""))
    if damage == "none":
        drop_checkpoint(tmp_path)
        drop_checkpoint(tmp_path)
        assert list(tmp_path.iterdir()) == []
    fresh = make_learner("bare", **QUICK)
    assert load_checkpoint(tmp_path, fresh) is None
    assert fresh.classes_ == ()


def test_one_of_other_settings_counts_as_none(tmp_path: Path) -> None:
    learner = make_learner("bare", **QUICK)
    learner.observe(tiny_stream().task(0))
    save_checkpoint(tmp_path, learner, Evaluation({}, state_bytes=(1,)))
    assert load_checkpoint(tmp_path, make_learner("bare", seed=5, **QUICK)) is None
    assert load_checkpoint(tmp_path, make_learner("ewc", **QUICK)) is None
