"""DPCR: projected statistics are exact under a linear shift, and the head is a ridge solution."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.harness.references import joint_ridge
from undrift.errors import InputError
from undrift.learners.dpcr import (
    ClassMoments,
    Dpcr,
    DpcrLearned,
    class_projector,
    shift_projection,
)
from undrift.testing.graphs import tiny_stream


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def dpcr(**params: Any) -> Dpcr:
    return Dpcr.from_params(**{"epochs": 10, "hidden": (10, 8), **params})


def test_a_linear_shift_is_undone_exactly() -> None:
    """Old classes are never shown again, yet their moments equal those of the moved nodes."""
    shift = draw(8, 8, seed=1)
    old, labels = draw(60, 8, seed=2), torch.arange(60) % 3
    current = draw(50, 8, seed=3)
    projection = shift_projection(current, current @ shift)
    moved = ClassMoments.of(old, labels, (0, 1, 2)).moved(projection, 1e-6, "first")
    truth = ClassMoments.of(old @ shift, labels, (0, 1, 2))
    assert torch.allclose(moved.means, truth.means, rtol=1e-5, atol=1e-6)
    assert torch.allclose(moved.moments, truth.moments, rtol=1e-5, atol=1e-5)
    assert torch.equal(moved.counts, truth.counts)


def test_exact_even_where_a_class_spans_less_than_the_space() -> None:
    basis = draw(2, 8, seed=5)
    old = draw(30, 2, seed=6) @ basis
    shift = draw(8, 8, seed=1)
    current = draw(50, 8, seed=3)
    moved = ClassMoments.of(old, torch.zeros(30), (0,)).moved(
        shift_projection(current, current @ shift), 1e-6, "first"
    )
    truth = ClassMoments.of(old @ shift, torch.zeros(30), (0,))
    assert torch.allclose(moved.moments, truth.moments, rtol=1e-5, atol=1e-5)


def test_with_the_projector_last_a_class_stays_in_the_space_it_came_from() -> None:
    """As in the public code: what the shift moves out of that space is lost."""
    old = draw(30, 2, seed=6) @ draw(2, 8, seed=5)
    moments = ClassMoments.of(old, torch.zeros(30), (0,))
    space, shift = class_projector(moments.moments[0], 1e-6), draw(8, 8, seed=1)
    moved = moments.moved(shift, 1e-6, "last")
    rows = old @ shift @ space
    assert torch.allclose(moved.moments[0], rows.T @ rows, rtol=1e-8, atol=1e-8)
    assert torch.allclose(moved.means[0], rows.mean(dim=0))


def test_the_projector_ignores_noise() -> None:
    rows = draw(40, 3) @ draw(3, 9, seed=1)
    noisy = rows + 1e-6 * draw(40, 9, seed=2)
    projector = class_projector(noisy.T @ noisy, 1e-4)
    assert float(projector.trace()) == pytest.approx(3.0)
    assert torch.allclose(projector @ projector, projector, atol=1e-10)


def test_the_classifier_of_one_task_is_the_ridge_solution() -> None:
    task = tiny_stream().task(0)
    known: DpcrLearned = dpcr(gamma=0.5).observe(task).learned_
    assert task.graph.labels is not None
    rows = known.model.embed(task.graph)[task.train].double()
    labels = task.graph.labels[task.train]
    slow = functional.normalize(joint_ridge(rows, functional.one_hot(labels), 0.5), dim=0)
    assert torch.allclose(known.classifier, slow, rtol=1e-8, atol=1e-10)


def test_counts_are_the_real_ones() -> None:
    stream = tiny_stream()
    learner = dpcr()
    for task in stream:
        learner.observe(task)
    assert stream.graph.labels is not None
    real = torch.bincount(stream.graph.labels[stream.train])
    assert torch.equal(learner.learned_.moments.counts.long(), real)


@pytest.mark.parametrize(
    "bad", [{"gamma": 0}, {"temperature": 0}, {"distill": -1}, {"tolerance": 0}]
)
def test_bad_parameters(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        dpcr(**bad)


def test_moments_of_a_class_that_comes_back_add_up() -> None:
    h = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).double()
    labels = torch.arange(40) % 4
    early = (torch.arange(40) < 20) & (labels != 3)
    later = ~early & (labels != 1)
    first = ClassMoments.of(h[early], labels[early], (0, 1, 2))
    found = first.joined(ClassMoments.of(h[later], labels[later], (2, 3)), torch.tensor([2, 3]))
    whole = h[(labels == 2)]
    assert torch.allclose(found.means[2], whole.mean(dim=0))
    assert torch.allclose(found.moments[2], whole.T @ whole)
    assert found.counts.tolist() == [5.0, 5.0, 10.0, 10.0]
    assert torch.equal(found.means[:2], first.means[:2])
