"""ACIL: the sum equals the published recursion, and the encoder never moves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paper.thin import thin
from tests.harness.references import blockwise_recursion, joint_ridge
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion
from undrift.analytic.solve import solve
from undrift.analytic.statistics import one_hot
from undrift.errors import InputError
from undrift.learners.acil import Acil
from undrift.testing.graphs import tiny_stream


def acil(**params: Any) -> Acil:
    return Acil.from_params(**{"epochs": 10, "hidden": (10, 8), "alpha": 3, **params})


@settings(max_examples=10, deadline=None, derandomize=True)
@given(size=st.integers(1, 40), gamma=st.sampled_from([1e-2, 0.1, 1.0]), seed=st.integers(0, 5))
def test_the_recursion_in_any_batching_gives_the_same_classifier(
    size: int, gamma: float, seed: int
) -> None:
    stream = tiny_stream()
    learner = acil(gamma=gamma, seed=seed)
    batches = []
    for task in stream:
        known = learner.observe(task).settle().known
        assert task.graph.labels is not None
        rows = Expansion(8, 3, seed)(known.plan.encoder.double().embed(task.graph)[task.train])
        targets = one_hot(task.graph.labels[task.train], known.classes)
        batches += list(zip(rows.split(size), targets.split(size), strict=True))
    slow = blockwise_recursion(batches, gamma)
    assert float((known.answer.weights - slow).norm() / slow.norm()) < 1e-8


def test_balanced_is_the_ridge_of_all_rows_in_which_every_class_weighs_the_same() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    learner, plain = acil(balanced=True, gamma=0.5), acil(gamma=0.5)
    rows, labels = [], []
    for task in stream:
        known = learner.observe(task).settle().known
        plain.observe(task)
        assert task.graph.labels is not None
        rows.append(Expansion(8, 3, 0)(known.plan.encoder.double().embed(task.graph)[task.train]))
        labels.append(task.graph.labels[task.train])
    x, y = torch.cat(rows), torch.cat(labels)
    even = ClassSums.of(x, one_hot(y, known.classes)).balanced()
    slow = solve(even, 0.5 / (len(y) / 6))  # a class weighs as much as one of mean size
    assert float((known.answer.weights - slow).norm() / slow.norm()) < 1e-9
    size = len(y) / 6
    weights = torch.tensor([size / int((y == c).sum()) for c in y.tolist()], dtype=torch.float64)
    exact = joint_ridge(x, one_hot(y, known.classes), 0.5, weights)
    assert float((slow - exact).norm()) < 0.5 * float(
        (plain.settle().known.answer.weights - exact).norm()
    )


def test_the_encoder_is_frozen_after_the_base_task() -> None:
    stream = tiny_stream()
    learner = acil().observe(stream.task(0))
    before = learner.embed(stream.graph)
    learner.observe(stream.task(1)).observe(stream.task(2))
    assert torch.equal(learner.embed(stream.graph), before)


def test_classes_can_come_in_any_order() -> None:
    stream = tiny_stream()
    one = acil().observe(stream.task(0)).observe(stream.task(1)).observe(stream.task(2))
    other = acil().observe(stream.task(0)).observe(stream.task(2)).observe(stream.task(1))
    assert torch.equal(one.predict(stream.graph), other.predict(stream.graph))


@pytest.mark.parametrize("bad", [{"gamma": 0.0}, {"alpha": 0}])
def test_bad_parameters(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        acil(**bad)
