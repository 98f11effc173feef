"""The strongest attack against the release: it stays under the claim, unless noise is missing."""

import math

import numpy as np
import pytest
import torch

from tests.harness.lower_bound import epsilon_lower_bound
from undrift.noise.gaussian import epsilon_of
from undrift.noise.release import ClippedSums, Mechanism, Scales
from undrift.noise.sampling import seeded_normal

EPSILON, DELTA = 1.0, 1e-3


def attacked(share_of_noise, releases):
    """Likelihood ratios of releases with and without the one row of the worst batch.

    All that both worlds have in common can be subtracted, so the worst batch is the row alone; the
    best score projects a release on what the row adds.
    """
    rows, one, scales = torch.tensor([[1.0, 0.0]]), torch.ones(1, 1), Scales()
    with_row, without = ClippedSums.of(rows, one), ClippedSums.of(rows, torch.zeros(1, 1))
    direction = scaled(with_row, scales)
    mechanism = Mechanism(EPSILON, DELTA, scales)
    scores = []
    for world, sums in enumerate((with_row, without)):
        draw = seeded_normal(world)  # the same numbers for any share: only their size differs
        made = (
            mechanism.released(sums, lambda n, draw=draw: share_of_noise * draw(n))
            for _ in range(releases)
        )
        scores.append([float(scaled(each, scales) @ direction) for each in made])
    return scores


def scaled(sums, scales):
    upper = torch.triu_indices(2, 2)
    half = sums.gram[upper[0], upper[1]] * torch.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    parts = [scales.gram * half, scales.moment * sums.moment.flatten(), scales.count * sums.counts]
    return torch.cat(parts)


def test_the_strongest_attack_stays_under_the_claim_and_comes_near():
    found = epsilon_lower_bound(*attacked(1.0, 1600), DELTA)
    assert 0.1 * EPSILON < found <= EPSILON


@pytest.mark.parametrize("share", [0.25, 0.0])
def test_the_same_attack_proves_it_where_noise_is_missing(share):
    assert epsilon_lower_bound(*attacked(share, 700), DELTA) > EPSILON


def test_a_coin_proves_nothing():
    rng = np.random.default_rng(0)
    assert epsilon_lower_bound(rng.normal(size=2000), rng.normal(size=2000), 1e-6) == 0


def test_the_bound_is_rarely_over_what_is_true():
    """It is at 99 %: of 100 audits of exact noise one or so may be over the claim."""
    rng = np.random.default_rng(1)
    claim = epsilon_of(1.0, 1e-3)
    over = sum(
        epsilon_lower_bound(1 + rng.normal(size=600), rng.normal(size=600), 1e-3) > claim
        for _ in range(100)
    )
    assert over <= 3
