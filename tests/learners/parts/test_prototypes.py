"""Prototypes and moments of classes: statistics, samples, and the drift they follow; DPCR."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from paper.public_methods import PublicDpcr
from tests.harness.references import joint_ridge
from undrift.learners.dpcr import ClassMoments, Dpcr, DpcrLearned, class_projector, shift_projection
from undrift.learners.parts.prototypes import Prototypes, gaussian, prototypes_of, semantic_drift
from undrift.testing.graphs import tiny_stream

ONE = torch.ones(1, dtype=torch.float64)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(n: int = 40, d: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=seeded(seed))


def test_a_class_of_one_node_has_no_spread_and_is_sampled_at_its_mean() -> None:
    found = prototypes_of(torch.tensor([[1.0, 2.0]]), torch.tensor([0]), 1, gaussian)
    assert torch.equal(found.spreads, torch.zeros(1, 2, 2))
    samples, _ = found.sampler().draw(5, seeded())
    assert torch.equal(samples, torch.tensor([[1.0, 2.0]]).expand(5, 2))


@pytest.mark.parametrize("nodes", [40, 4])  # 4 nodes in 6 dimensions: a singular covariance
def test_samples_have_the_mean_and_the_covariance(nodes: int) -> None:
    h = 2 * rows(2 * nodes, 6) @ rows(6, 6, seed=1) + 5
    kept = prototypes_of(h, torch.arange(2 * nodes) % 2, 2, gaussian)
    samples, columns = kept.sampler().draw(100_000, seeded(2))
    for column in range(2):
        drawn = samples[columns == column].double()
        scale = float(kept.spreads[column].diagonal().max())
        assert (drawn.mean(dim=0) - kept.means[column]).abs().max() < 0.02 * scale**0.5
        assert (drawn.T.cov() - kept.spreads[column]).abs().max() < 0.02 * scale


def test_jitter_is_added_to_every_direction() -> None:
    kept = Prototypes(torch.zeros(1, 3), torch.diag(torch.tensor([1.0, 0.0, 0.0]))[None], ONE)
    samples, _ = kept.sampler(jitter=0.25).draw(100_000, seeded())
    expected = torch.diag(torch.tensor([1.25, 0.25, 0.25]))
    assert (samples.T.cov() - expected).abs().max() < 0.02


def test_a_radius_is_the_deviation_in_every_dimension() -> None:
    kept = Prototypes(torch.tensor([[0.0, 0.0], [9.0, 9.0]]), torch.tensor([0.5, 2.0]), ONE)
    samples, columns = kept.sampler(scale=2.0).draw(100_000, seeded())
    for column, deviation in enumerate((1.0, 4.0)):
        drawn = samples[columns == column]
        assert (drawn.mean(dim=0) - kept.means[column]).abs().max() < 0.02 * deviation
        expected = deviation**2 * torch.eye(2)
        assert (drawn.T.cov() - expected).abs().max() < 0.02 * deviation**2


def test_a_class_that_comes_back_is_pooled_as_if_it_had_come_at_once() -> None:
    h, columns = rows(60), torch.arange(60) % 4
    first, second = columns < 3, torch.arange(60) >= 30
    early = prototypes_of(h[first & ~second], columns[first & ~second], 3, gaussian)
    late = torch.tensor([2, 3, 0])  # the columns of the batch's classes
    place = torch.tensor([2, 9, 0, 1])[columns]
    there = second & (columns != 1)
    found = early.joined(prototypes_of(h[there], place[there], 3, gaussian), late)
    for column in (0, 2):
        whole = h[columns == column].numpy()
        np.testing.assert_allclose(found.means[column], whole.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(found.spreads[column], np.cov(whole.T), atol=1e-6)
        assert found.counts[column] == len(whole)
    assert torch.equal(found.means[1], early.means[1])
    new = h[there & (columns == 3)]
    assert torch.allclose(found.means[3], new.mean(dim=0), atol=1e-6)


def test_radii_are_pooled_by_the_parallel_axis_rule() -> None:
    h = rows(30, 5)

    def radius(part: Tensor) -> Prototypes:
        r = part.var(dim=0, correction=0).mean().sqrt()
        return Prototypes(
            part.mean(dim=0)[None], r[None], torch.tensor([float(len(part))]).double()
        )

    found, whole = radius(h[:7]).pooled(radius(h[7:])), radius(h)
    assert torch.allclose(found.means, whole.means, atol=1e-6)
    assert torch.allclose(found.spreads, whole.spreads, atol=1e-6)
    assert torch.equal(found.counts, whole.counts)


def test_drift_by_a_slow_loop() -> None:
    affinity, old, new = rows(3, 5), rows(5, 4, seed=1), rows(5, 4, seed=2)
    fast = semantic_drift(affinity, old, new)
    for k in range(3):
        weights = [float(affinity[k, i].exp()) for i in range(5)]
        slow = sum(weights[i] * (new[i] - old[i]) for i in range(5)) / sum(weights)
        assert torch.allclose(fast[k], torch.as_tensor(slow), atol=1e-6)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def dpcr(**params: Any) -> Dpcr:
    return Dpcr.from_params(**{"epochs": 10, "hidden": (10, 8), **params})


@pytest.mark.parametrize("rank", [8, 2])  # a class may span less than the space
def test_a_linear_shift_is_undone_exactly(rank: int) -> None:
    """Old classes are never shown again, yet their moments equal those of the moved nodes."""
    shift, labels = draw(8, 8, seed=1), torch.arange(60) % 3
    old, current = draw(60, rank, seed=2) @ draw(rank, 8, seed=5), draw(50, 8, seed=3)
    projection = shift_projection(current, current @ shift)
    moments = ClassMoments.of_rows(old, labels, (0, 1, 2))
    spaces = torch.stack([class_projector(phi, 1e-6) for phi in moments.moments])
    moved = moments.moved(Dpcr()._maps(spaces, projection))
    truth = ClassMoments.of_rows(old @ shift, labels, (0, 1, 2))
    assert torch.allclose(moved.means, truth.means, rtol=1e-5, atol=1e-6)
    assert torch.allclose(moved.moments, truth.moments, rtol=1e-5, atol=1e-5)
    assert torch.equal(moved.counts, truth.counts)


def test_with_the_projector_last_a_class_stays_in_the_space_it_came_from() -> None:
    """As in the public code: what the shift moves out of that space is lost."""
    old = draw(30, 2, seed=6) @ draw(2, 8, seed=5)
    moments = ClassMoments.of_rows(old, torch.zeros(30), (0,))
    space, shift = class_projector(moments.moments[0], 1e-6), draw(8, 8, seed=1)
    moved = moments.moved(PublicDpcr()._maps(space[None], shift))
    rows = old @ shift @ space
    assert torch.allclose(moved.moments[0], rows.T @ rows, rtol=1e-8, atol=1e-8)
    assert torch.allclose(moved.means[0], rows.mean(dim=0))


def test_the_classifier_of_one_task_is_the_ridge_solution() -> None:
    task = tiny_stream().task(0)
    known: DpcrLearned = dpcr(gamma=0.5).observe(task).learned_
    rows = known.model.embed(task.graph)[task.train].double()
    labels = task.graph.labels[task.train]
    slow = functional.normalize(joint_ridge(rows, functional.one_hot(labels), 0.5), dim=0)
    assert torch.allclose(known.classifier, slow, rtol=1e-8, atol=1e-10)


def test_moments_of_a_class_that_comes_back_add_up() -> None:
    h = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).double()
    labels = torch.arange(40) % 4
    early = (torch.arange(40) < 20) & (labels != 3)
    later = ~early & (labels != 1)
    first = ClassMoments.of_rows(h[early], labels[early], (0, 1, 2))
    found = first.joined(
        ClassMoments.of_rows(h[later], labels[later], (2, 3)), torch.tensor([2, 3])
    )
    whole = h[(labels == 2)]
    assert torch.allclose(found.means[2], whole.mean(dim=0))
    assert torch.allclose(found.moments[2], whole.T @ whole)
    assert found.counts.tolist() == [5.0, 5.0, 10.0, 10.0]
    assert torch.equal(found.means[:2], first.means[:2])
