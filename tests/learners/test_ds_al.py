"""DS-AL: the compensation stream against a written-out two-step solve."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from paper.thin import thin
from tests.harness.references import joint_ridge
from undrift.analytic.random_maps import Expansion
from undrift.analytic.statistics import one_hot
from undrift.errors import InputError
from undrift.learners.acil import Acil
from undrift.learners.ds_al import DsAl, OrderedStreams
from undrift.testing.check_living import refused, tiny_batch
from undrift.testing.graphs import tiny_stream


def ds_al(**params: Any) -> DsAl:
    return DsAl.from_params(**{"epochs": 10, "hidden": (10, 8), "alpha": 3, **params})


def test_compensation_is_the_two_step_solve() -> None:
    learner = ds_al(gamma=0.3, compensation=0.7)
    z_seen: list[torch.Tensor] = []
    y_seen: list[torch.Tensor] = []
    left: list[torch.Tensor] = []
    seen = 0
    for task in tiny_stream():
        known = learner.observe(task).settle().known
        assert task.graph.labels is not None
        embedded = known.plan.encoder.double().embed(task.graph)[task.train]
        z_seen.append(embedded @ Expansion(8, 3, 0).weight())
        y_seen.append(one_hot(task.graph.labels[task.train], known.classes))
        wide = [torch.nn.functional.pad(y, (0, len(known.classes) - y.shape[1])) for y in y_seen]
        main = joint_ridge(torch.relu(torch.cat(z_seen)), torch.cat(wide), 0.3)
        residual = wide[-1] - torch.relu(z_seen[-1]) @ main
        residual[:, :seen] = 0
        seen = len(known.classes)
        left.append(residual)
        wide_left = [torch.nn.functional.pad(r, (0, seen - r.shape[1])) for r in left]
        second = joint_ridge(torch.tanh(torch.cat(z_seen)), torch.cat(wide_left), 0.3)
        both = torch.cat([main, 0.7 * second])
        assert torch.allclose(known.answer.weights, both, rtol=1e-8, atol=1e-10)
    z = learner.embed(tiny_stream().graph).double() @ Expansion(8, 3, 0).weight()
    scores = torch.relu(z) @ main + 0.7 * torch.tanh(z) @ second
    assert torch.allclose(learner.scores(tiny_stream().graph), scores)


def test_without_compensation_it_is_acil() -> None:
    stream = tiny_stream()
    learners = (
        ds_al(compensation=0.0),
        Acil.from_params(epochs=10, hidden=(10, 8), alpha=3, gamma=0.1),
    )
    one, other = (learner.observe(stream.task(0)).observe(stream.task(1)) for learner in learners)
    assert torch.allclose(one.scores(stream.graph), other.scores(stream.graph))


def test_balanced_reaches_both_streams() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    learner = ds_al(balanced=True, compensation=1.0)
    for t in range(2):
        task = stream.task(t)
        known = learner.observe(task).settle().known
    labels = task.graph.labels
    assert labels is not None
    assert isinstance(known.sums, OrderedStreams)
    for bank in (known.sums.main, known.sums.second):
        assert bank.statistics.count == int(stream.task(0).train.sum() + task.train.sum())
    embedded = [
        (stream.task(t), known.plan.encoder.double().embed(stream.task(t).graph)) for t in (0, 1)
    ]
    gram = torch.zeros(24, 24, dtype=torch.float64)
    share = int(stream.task(0).train.sum()) / 2
    for one, rows in embedded:
        for c in one.classes:
            assert one.graph.labels is not None
            mine = torch.tanh(
                rows[one.train & (one.graph.labels == c)] @ Expansion(8, 3, 0).weight()
            )
            gram += share / mine.shape[0] * mine.T @ mine
    kept = known.sums.second.statistics.gram
    assert float((kept - gram).norm() / gram.norm()) < 1e-9


def test_without_cleansing_both_streams_are_ridges_on_all_rows() -> None:
    learner = ds_al(gamma=0.3, compensation=0.7, cleansing=False)
    z_seen, y_seen = [], []
    for batch in (tiny_batch((0, 1)), tiny_batch((2, 3)), tiny_batch((1, 4))):
        known = learner.observe(batch).settle().known
        embedded = known.plan.encoder.double().embed(batch.graph)[batch.train]
        z_seen.append(embedded @ Expansion(8, 3, 0).weight())
        y_seen.append(batch.labels[batch.train])
        z, y = torch.cat(z_seen), one_hot(torch.cat(y_seen), known.classes)
        main = joint_ridge(torch.relu(z), y, 0.3)
        second = joint_ridge(torch.tanh(z), y - torch.relu(z) @ main, 0.3)
        both = torch.cat([main, 0.7 * second])
        assert torch.allclose(known.answer.weights, both, rtol=1e-8, atol=1e-10)


def test_the_published_form_says_how_to_do_what_it_cannot() -> None:
    base, more = tiny_batch((0, 1)), tiny_batch((1, 2))
    learner = ds_al().observe(base)
    calls = (
        lambda: learner.observe(more),
        lambda: learner.forget(base),
        lambda: learner.merge(ds_al()),
        learner.sibling,
    )
    for call in calls:
        assert "set cleansing=False" in refused("an order that counts", call)
    assert learner.can("returns") is False
    assert ds_al(cleansing=False).can("returns")


@pytest.mark.parametrize("bad", [{"gamma": 0.0}, {"alpha": 0}, {"compensation": -0.1}])
def test_bad_parameters(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        ds_al(**bad)
