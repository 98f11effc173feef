"""What was learned so far comes back bit for bit; anything else counts as nothing."""

from typing import Any

import pytest
import torch

from tests.experiments.made import gone_on
from undrift.evaluation.loop import Evaluation, evaluate
from undrift.experiments.checkpoint import drop_checkpoint, load_checkpoint, save_checkpoint
from undrift.learners.registry import METHODS, make_learner
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4)}


def settings(method: str) -> dict[str, Any]:
    return {name: value for name, value in QUICK.items() if name in make_learner(method).params()}


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_goes_on_equals_one_that_was_not_cut(tmp_path, method: str) -> None:
    *both, third = (make_learner(method, seed=1, **settings(method)) for _ in range(3))
    found = gone_on(both, tiny_stream(1), tmp_path, splits=("test", "val"))
    whole = evaluate(third, tiny_stream(1), splits=("test", "val"))
    assert found.grades == whole.grades
    assert found.drift == whole.drift
    assert found.state_bytes == whole.state_bytes
    assert all(torch.equal(a, b) for a, b in zip(found.embeddings, whole.embeddings, strict=True))


@pytest.mark.parametrize(
    "damage", ["none", "short", "empty", "foreign", "other seed", "other method"]
)
def test_no_file_and_a_damaged_one_count_as_nothing(tmp_path, damage: str) -> None:
    learner = make_learner("bare", **QUICK)
    learner.observe(tiny_stream().task(0))
    save_checkpoint(tmp_path, learner, Evaluation({}, state_bytes=(1,)))
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    if "other" not in damage:
        path.write_bytes({"short": data[: len(data) // 2], "foreign": b"x" * 99}.get(damage, b""))
    if damage == "none":
        drop_checkpoint(tmp_path)
        drop_checkpoint(tmp_path)
        assert list(tmp_path.iterdir()) == []
    seed = int(damage == "other seed")
    fresh = make_learner("ewc" if damage == "other method" else "bare", seed=seed, **QUICK)
    assert load_checkpoint(tmp_path, fresh) is None
    assert fresh.classes_ == ()
