from __future__ import annotations

import pytest
import torch

from undrift.privacy.attacks.finding import auc, auc_interval, found_at, roc


def test_the_area_is_the_chance_that_a_member_is_larger() -> None:
    generator = torch.Generator().manual_seed(0)
    statistic = torch.randint(0, 12, (80,), generator=generator).double()  # with ties
    members = torch.rand(80, generator=generator) < 0.4
    a, b = statistic[members].unsqueeze(1), statistic[~members]
    by_pairs = ((a > b).double() + 0.5 * (a == b).double()).mean()
    assert auc(statistic, members) == pytest.approx(float(by_pairs))


def test_a_constant_tells_nothing_and_finds_nobody() -> None:
    members = torch.tensor([True, False, True])
    assert auc(torch.zeros(3), members) == 0.5
    assert found_at(torch.zeros(3), members, 0.01) == 0.0
    assert roc(torch.zeros(3), members)[0].tolist() == [0.0, 1.0]


def test_members_found_at_a_share_of_false_ones() -> None:
    statistic = torch.arange(100.0)
    members = statistic % 2 == 1  # the largest is one, then they take turns
    assert found_at(statistic, members, 0.0) == pytest.approx(0.02)
    assert found_at(statistic, members, 0.1) == pytest.approx(0.12)


@pytest.mark.parametrize(("members", "others"), [(20, 5), (200, 50)])
@pytest.mark.parametrize("area", [0.5, 0.75])
def test_the_interval_holds_the_area_as_often_as_it_says(
    members: int, others: int, area: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    shift = float(torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(area))) * 2**0.5
    hits = 0
    for _ in range(400):
        a = torch.randn(members, 1, generator=generator) + shift
        low, high = auc_interval(
            float((a > torch.randn(others, generator=generator)).double().mean()), members, others
        )
        hits += low <= area <= high
    assert 0.92 <= hits / 400 <= 0.99


def test_the_interval_narrows_with_more_nodes_and_has_a_width_at_one() -> None:
    ends = [auc_interval(1.0, 1000, others) for others in (2, 5, 50, 500)]
    assert [high for _, high in ends] == [1.0] * 4
    lows = [low for low, _ in ends]
    assert lows == sorted(lows)
    assert 0.6 < lows[0] < 0.8
    assert lows[-1] > 0.99
    assert auc_interval(0.3, 40, 60)[0] == pytest.approx(1 - auc_interval(0.7, 60, 40)[1])
