import math

import pytest

from undrift.errors import InputError
from undrift.noise.accountant import Accountant
from undrift.noise.gaussian import epsilon_of, noise_multiplier


def test_other_nodes_cost_no_more():
    m = noise_multiplier(4.0, 1e-6)
    account = Accountant(4.0, 1e-6)
    assert account.spent_epsilon == 0
    for _ in range(5):
        account = account.beside(m)
    assert account.spent_epsilon == pytest.approx(4.0)
    assert account.releases == 5


def test_the_same_nodes_cost_again():
    m = noise_multiplier(1.0, 1e-6)
    account = Accountant(4.0, 1e-6).again(m).again(m)
    assert account.spent_epsilon == pytest.approx(epsilon_of(m / math.sqrt(2), 1e-6))
    assert 1.0 < account.spent_epsilon < 2.0


def test_a_spent_budget_refuses():
    m = noise_multiplier(4.0, 1e-6)
    account = Accountant(4.0, 1e-6).beside(m)
    with pytest.raises(InputError, match="budget is spent"):
        account.again(m)
    with pytest.raises(InputError, match="budget is spent"):
        Accountant(4.0, 1e-6).beside(m / 1.01)
    with pytest.raises(InputError, match="budget is spent"):
        Accountant(4.0, 1e-6).beside(0.0)


def test_sites_without_common_nodes_have_the_larger_cost():
    much, little = noise_multiplier(4.0, 1e-6), noise_multiplier(1.0, 1e-6)
    both = Accountant(4.0, 1e-6).beside(little).merged(Accountant(4.0, 1e-6).beside(much))
    assert both.spent_epsilon == pytest.approx(4.0)
    assert both.releases == 2


def test_sites_of_other_budgets_do_not_merge():
    with pytest.raises(InputError, match="budgets differ"):
        Accountant(4.0, 1e-6).merged(Accountant(2.0, 1e-6))
