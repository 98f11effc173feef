"""How much noise is private, and what several releases spend."""

import math

import pytest
from scipy.integrate import quad

from undrift.errors import InputError
from undrift.noise.gaussian import Accountant, delta_of, epsilon_of, noise_multiplier

# standard deviations at sensitivity 1 by dp-accounting 0.6.0 (GaussianPrivacyLoss)

REFERENCE = [
    (0.1, 1e-5, 30.7495661335778),
    (1.0, 1e-6, 4.224678930001968),
    (2.0, 1e-6, 2.230476296185258),
    (4.0, 1e-6, 1.1935186232677664),
    (8.0, 1e-6, 0.6529354193905296),
    (1.0, 1e-3, 2.57465702390839),
    (20.0, 1e-9, 0.35981215261486477),
]


@pytest.mark.parametrize(("epsilon", "delta", "deviation"), REFERENCE)
def test_noise_is_that_of_another_library(epsilon, delta, deviation):
    assert noise_multiplier(epsilon, delta) == pytest.approx(deviation, rel=1e-6)


@pytest.mark.parametrize("multiplier", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 6.0])
def test_delta_is_the_integral_of_its_definition(epsilon, multiplier):
    """sup_S P(S) - e^epsilon P'(S): the positive part of the difference of both densities."""

    def density(x, centre):
        return math.exp(-(((x - centre) / multiplier) ** 2) / 2) / (
            multiplier * math.sqrt(2 * math.pi)
        )

    # where the one density is e^epsilon times the other
    start = epsilon * multiplier**2 + 0.5
    found, _ = quad(
        lambda x: density(x, 1.0) - math.exp(epsilon) * density(x, 0.0),
        start,
        start + 40 * multiplier,
        epsabs=1e-14,
        limit=200,
    )
    assert delta_of(epsilon, multiplier) == pytest.approx(found, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 30.0])
def test_the_noise_is_the_least_that_is_private(epsilon):
    multiplier = noise_multiplier(epsilon, 1e-6)
    assert delta_of(epsilon, multiplier) <= 1e-6
    assert delta_of(epsilon, 0.999 * multiplier) > 1e-6
    assert epsilon_of(multiplier, 1e-6) == pytest.approx(epsilon, rel=1e-9)


def test_without_noise_there_is_no_privacy():
    assert delta_of(1.0, 0.0) == 1.0
    assert epsilon_of(0.0, 1e-6) == math.inf


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-6), (-1.0, 1e-6), (math.inf, 1e-6), (1.0, 0.0), (1.0, 1.0), (1e-9, 1e-12)],
)
def test_what_is_no_guarantee_is_refused(epsilon, delta):
    with pytest.raises(InputError, match=r"must be|nothing would be left"):
        noise_multiplier(epsilon, delta)


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
    # two releases at deviation 2, composed by dp-accounting 0.6.0 on a grid of 1e-4
    assert epsilon_of(2.0 / math.sqrt(2), 1e-6) == pytest.approx(3.3076, abs=1e-3)


def test_a_spent_budget_refuses():
    m = noise_multiplier(4.0, 1e-6)
    with pytest.raises(InputError, match="budget is spent"):
        Accountant(4.0, 1e-6).beside(m).again(m)
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
