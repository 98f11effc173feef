"""Prototypes: their statistics, their samples, and the drift they follow."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from undrift.learners.parts.prototypes import (
    Prototypes,
    columns_for,
    gaussian_prototypes,
    semantic_drift,
)

ONE = torch.ones(1, dtype=torch.float64)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(n: int = 40, d: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=seeded(seed))


def test_gaussians_are_numpys_mean_and_covariance() -> None:
    h = rows()
    columns = torch.arange(40) % 3
    found = gaussian_prototypes(h, columns, 3)
    for column in range(3):
        of_class = h[columns == column].numpy()
        np.testing.assert_allclose(found.means[column], of_class.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(found.spreads[column], np.cov(of_class.T), atol=1e-6)
    assert found.means.dtype == h.dtype


def test_a_class_of_one_node_has_no_spread_and_is_sampled_at_its_mean() -> None:
    found = gaussian_prototypes(torch.tensor([[1.0, 2.0]]), torch.tensor([0]), 1)
    assert torch.equal(found.spreads, torch.zeros(1, 2, 2))
    samples, _ = found.sampler().draw(5, seeded())
    assert torch.equal(samples, torch.tensor([[1.0, 2.0]]).expand(5, 2))


@pytest.mark.parametrize("nodes", [40, 4])  # 4 nodes in 6 dimensions: a singular covariance
def test_samples_have_the_mean_and_the_covariance(nodes: int) -> None:
    h = 2 * rows(2 * nodes, 6) @ rows(6, 6, seed=1) + 5
    kept = gaussian_prototypes(h, torch.arange(2 * nodes) % 2, 2)
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


def test_draws_come_from_the_generator_in_the_order_of_the_columns() -> None:
    sampler = Prototypes(torch.tensor([[0.0], [100.0]]), torch.ones(2), ONE).sampler()
    first, columns = sampler.draw(3, seeded(4))
    again, _ = sampler.draw(3, seeded(4))
    assert torch.equal(first, again)
    assert columns.tolist() == [0, 0, 0, 1, 1, 1] == (first.flatten() > 50).long().tolist()
    assert torch.equal(columns, columns_for(sampler.means, 3))


def test_joining_and_moving() -> None:
    one = Prototypes(torch.zeros(1, 2), torch.ones(1), ONE)
    new = Prototypes(torch.ones(1, 2), torch.zeros(1), ONE)
    two = one.moved(torch.tensor([[1.0, 2.0]])).joined(new, torch.tensor([1]))
    assert two.means.tolist() == [[1.0, 2.0], [1.0, 1.0]]
    assert two.spreads.tolist() == [1.0, 0.0]
    assert one.means.tolist() == [[0.0, 0.0]]


def test_a_class_that_comes_back_is_pooled_as_if_it_had_come_at_once() -> None:
    h, columns = rows(60), torch.arange(60) % 4
    first, second = columns < 3, torch.arange(60) >= 30
    early = gaussian_prototypes(h[first & ~second], columns[first & ~second], 3)
    late = torch.tensor([2, 3, 0])  # the columns of the batch's classes
    place = torch.tensor([2, 9, 0, 1])[columns]
    there = second & (columns != 1)
    found = early.joined(gaussian_prototypes(h[there], place[there], 3), late)
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
