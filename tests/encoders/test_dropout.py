"""Dropout: right rate, unbiased, right gradient, own generator."""

from __future__ import annotations

import pytest
import torch

from undrift.encoders.dropout import relu_dropout


def test_without_generator_or_rate_it_is_relu() -> None:
    z = torch.tensor([[-1.0, 2.0]])
    assert torch.equal(relu_dropout(z, 0.5, None), torch.relu(z))
    assert torch.equal(relu_dropout(z, 0.0, torch.Generator()), torch.relu(z))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_rate_and_mean(rate: float) -> None:
    z = torch.ones(400, 501)  # not a multiple of eight
    out = relu_dropout(z, rate, torch.Generator().manual_seed(0))
    assert float((out == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert float(out.mean()) == pytest.approx(1.0, abs=0.02)
    assert out.unique().numel() == 2


def test_entries_are_dropped_independently() -> None:
    out = relu_dropout(torch.ones(2000, 64), 0.5, torch.Generator().manual_seed(0)) > 0
    correlation = torch.corrcoef(out.T.float()) - torch.eye(64)
    assert float(correlation.abs().max()) < 0.12


def test_gradient_passes_where_the_output_is_positive() -> None:
    z = torch.randn(50, 40, generator=torch.Generator().manual_seed(1)).requires_grad_()
    out = relu_dropout(z, 0.5, torch.Generator().manual_seed(0))
    out.backward(torch.ones_like(out))
    assert z.grad is not None
    assert torch.equal(z.grad, (out > 0) * 2.0)
    assert 0 < int((out > 0).sum()) < int((z > 0).sum())


def test_reproducible_and_global_generator_untouched() -> None:
    z = torch.ones(10, 10)
    before = torch.random.get_rng_state()
    one = relu_dropout(z, 0.5, torch.Generator().manual_seed(4))
    assert torch.equal(one, relu_dropout(z, 0.5, torch.Generator().manual_seed(4)))
    assert torch.equal(before, torch.random.get_rng_state())
