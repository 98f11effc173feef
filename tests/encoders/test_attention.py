"""Attention and its gradients against a dense twin."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.harness.references import dense_attention
from undrift.encoders.architecture import attended, attention
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def drawn() -> tuple[Csr, Tensor, Tensor, Tensor]:
    """A part of a graph's operator, and what its senders and receivers score."""
    pattern = tiny_graph(nodes=30).operator("sum").to(dtype=torch.float64)[torch.arange(3, 20)]
    noise = torch.Generator().manual_seed(0)
    z = torch.randn(30, 4, generator=noise).double()
    sent, received = torch.randn(30, generator=noise), torch.randn(17, generator=noise)
    return pattern, z, 5 * sent.double(), 5 * received.double()


def test_values_and_gradients_are_those_of_the_dense_twin() -> None:
    pattern, *given = drawn()
    found = []
    for fast in (True, False):
        z, sent, received = (part.clone().requires_grad_() for part in given)
        weights = dense_attention(pattern.to_dense() != 0, sent, received)
        y = attended(pattern, z, sent, received) if fast else weights @ z
        gradients = torch.autograd.grad((y * y.detach().cos()).sum(), (z, sent, received))
        found.append((y.detach(), *gradients))
    for one, other in zip(*found, strict=True):
        assert float(other.abs().max()) > 1e-3
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    operator = attention(pattern, *given[1:])
    slow = dense_attention(pattern.to_dense() != 0, *given[1:])
    torch.testing.assert_close(operator.to_dense(), slow, rtol=1e-10, atol=1e-12)


def test_large_scores_do_not_overflow() -> None:
    pattern, z, sent, received = drawn()
    rows = attended(pattern, z.float(), 1e3 * sent.float(), received.float())
    assert bool(torch.isfinite(rows).all())
    assert float(rows.abs().max()) <= float(z.abs().max()) * 1.001
