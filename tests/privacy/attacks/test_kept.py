from __future__ import annotations

import pytest
import torch

from undrift.learners.base import Learner
from undrift.learners.parts.backbone import Backbone
from undrift.learners.registry import make_learner
from undrift.privacy.attacks import kept_sums
from undrift.testing.graphs import tiny_stream

WITH_SUMS = ("propagation", "hybrid", "adr", "adr-plus", "acil", "ds-al", "dpcr", "efc", "polo")


WHOLE = {"fourier": 0, "sketch": 0}  # the sums are told to the last digit


def learned(name: str, tasks: int = 1, **params: object) -> tuple[Learner, list]:
    stream = tiny_stream(features=20)
    trained = name not in ("propagation",)
    backbone = {"backbone": Backbone(epochs=3, hidden=(8, 8))} if trained else WHOLE
    learner = make_learner(name, **{**backbone, **params})
    batches = [stream.task(t) for t in range(tasks)]
    for task in batches:
        learner.observe(task)
    return learner, batches


@pytest.mark.parametrize("name", WITH_SUMS)
def test_the_rows_of_a_kept_sum_add_up_to_it(name: str) -> None:
    learner, (task,) = learned(name)
    found = kept_sums(learner)
    assert found
    for kept in found:
        rows = kept.rows_of(task, kept.members(task))
        assert rows.shape == (kept.count, kept.width)
        if kept.gram is not None:
            torch.testing.assert_close(rows.T @ rows, kept.gram.double(), rtol=1e-5, atol=1e-5)
        if kept.means is not None and name != "polo":  # whose means lean to thin places
            first = task.labels[kept.members(task)] == kept.classes[0]
            direction = torch.nn.functional.normalize(kept.means[:, 0].double(), dim=0)
            mean = torch.nn.functional.normalize(rows[first].sum(dim=0), dim=0)
            torch.testing.assert_close(direction, mean, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["propagation", "adr", "acil", "ds-al"])
def test_what_is_current_adds_up_over_all_batches(name: str) -> None:
    learner, tasks = learned(name, tasks=3)
    current = [kept for kept in kept_sums(learner) if kept.current]
    assert current
    for kept in current:
        rows = torch.cat([kept.rows_of(task, kept.members(task)) for task in tasks])
        torch.testing.assert_close(rows.T @ rows, kept.gram, rtol=1e-5, atol=1e-5)


def test_plain_weights_keep_no_sum() -> None:
    assert kept_sums(learned("bare")[0]) == []
    assert kept_sums(make_learner("propagation")) == []


def test_what_was_seen_is_the_gram_of_the_rows_through_the_directions() -> None:
    learner, tasks = learned("propagation", tasks=3, rank=4)
    kept = kept_sums(learner)[0]
    assert kept.seen is not None
    rows = torch.cat([kept.rows_of(task, kept.members(task)) for task in tasks])
    torch.testing.assert_close(rows.T @ (rows @ kept.seen.directions), kept.seen.seen)
    torch.testing.assert_close(rows.square().sum(dim=0), kept.seen.diagonal)
