"""A temperature from sums is near the one that all validation rows would choose."""

from __future__ import annotations

import pytest
import torch

from undrift.analytic.calibration import best_temperature, expected_accuracy
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_the_temperature_is_near_that_of_the_rows_themselves(scale: float) -> None:
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 4, (3000,), generator=draw)
    centres = torch.randn(4, 5, dtype=torch.float64, generator=draw)
    normal = torch.randn(3000, 8, dtype=torch.float64, generator=draw)
    heavy = normal[:, :5] / normal[:, 5:].square().mean(dim=1, keepdim=True).sqrt()
    x, y = centres[labels] + 0.4 * heavy, one_hot(labels, (0, 1, 2, 3))
    weights = scale * centres.T
    found = best_temperature(weights, ClassSums.of(x, y))
    assert found is not None

    def loss(t: float) -> float:
        return -float((y * (x @ weights / t).log_softmax(dim=1)).sum(dim=1).mean())

    best = min((10 ** (k / 16) for k in range(-40, 17)), key=loss)
    assert 0.5 < found / best < 2.0


def test_scores_of_another_scale_have_a_temperature_of_that_scale() -> None:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(90, 3, dtype=torch.float64, generator=draw)
    labels = torch.arange(90) % 3
    x[torch.arange(90), labels] += 1.0
    sums = ClassSums.of(x, one_hot(labels, (0, 1, 2)))
    one, ten = (best_temperature(k * torch.eye(3, dtype=torch.float64), sums) for k in (0.1, 1.0))
    assert one is not None
    assert ten == pytest.approx(10 * one)


def test_a_row_per_class_is_right_or_wrong_whatever_rounding_leaves_of_variances() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(4, 30, dtype=torch.float64, generator=draw)
    sums = ClassSums.of(x, torch.eye(4, dtype=torch.float64))
    more = ClassSums.of(7 * x[:3], torch.eye(4, dtype=torch.float64)[:3])
    for rounded in (sums, sums + more - more):
        assert expected_accuracy(x.T, rounded) == {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}
        assert best_temperature(x.T, rounded) == best_temperature(x.T, sums)


def test_without_rows_there_is_none() -> None:
    assert best_temperature(torch.zeros(3, 2, dtype=torch.float64), ClassSums.zero(3, 2)) is None
