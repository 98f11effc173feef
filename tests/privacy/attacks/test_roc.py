from __future__ import annotations

import pytest
import torch

from undrift.privacy.attacks.roc import auc, found_at, roc


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
