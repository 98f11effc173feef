"""The feature buffer layer B."""

from __future__ import annotations

import pytest
import torch

from undrift.analytic.expansion import Expansion
from undrift.errors import InputError


def test_identity_at_alpha_one() -> None:
    h = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    assert Expansion(4, alpha=1)(h) is h


def test_is_relu_of_a_random_linear_map() -> None:
    h = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expansion = Expansion(4, alpha=3, seed=7)
    assert expansion.outputs == 12
    assert torch.equal(expansion(h), torch.relu(h @ expansion.weight()))
    assert torch.equal(
        Expansion(4, alpha=3, seed=7, activation="tanh")(h), torch.tanh(h @ expansion.weight())
    )
    assert float(expansion.weight().abs().max()) <= 0.5
    assert float(expansion.weight().std()) == pytest.approx(0.5 / 3**0.5, rel=0.2)


def test_the_seed_is_all_there_is() -> None:
    assert torch.equal(Expansion(8, 2, seed=1).weight(), Expansion(8, 2, seed=1).weight())
    assert not torch.equal(Expansion(8, 2, seed=1).weight(), Expansion(8, 2, seed=2).weight())


@pytest.mark.parametrize("alpha", [0, -2, 1.5])
def test_alpha_must_be_a_whole_number_from_one(alpha: float) -> None:
    with pytest.raises(InputError, match="alpha must be a whole number"):
        Expansion(4, alpha=alpha)  # type: ignore[arg-type]


def test_unknown_activation_lists_the_names() -> None:
    with pytest.raises(InputError, match="identity, relu, tanh"):
        Expansion(4, 2, activation="gelu")  # type: ignore[arg-type]
