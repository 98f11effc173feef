"""Attention: an operator whose weights come from the rows that it aggregates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from undrift.sparse import Csr

SLOPE = 0.2
"""Of the leaky ReLU over scores; the GAT authors' constant."""
SCORES = 2
"""The last columns of an attention layer's weights: what a sender and a receiver score."""


def attended(pattern: Csr, z: Tensor, sent: Tensor, received: Tensor) -> Tensor:
    """Row i is the mean of z_j over the entries (i, j) of the pattern, weighed by attention.

        s_ij = leaky_relu(sent_j + received_i),    alpha_ij = exp(s_ij) / sum_j exp(s_ij)

    The values of the pattern do not count; each of its rows has an entry. Cost: three products
    with as many entries, and one pass over `entries x width` for the gradient.

    >>> import scipy.sparse as sp
    >>> pattern = Csr.from_scipy(sp.csr_matrix([[1.0, 1.0]]))
    >>> z, even = torch.tensor([[1.0], [3.0]]), torch.zeros(2)
    >>> attended(pattern, z, even, even[:1]).tolist()
    [[2.0]]
    """
    powers = _powers(pattern, sent, received)
    both = torch.cat([z, torch.ones_like(z[:, :1])], dim=1)
    sums: Tensor = _Weighed.apply(pattern, powers, both)  # type: ignore[no-untyped-call]
    return sums[:, :-1] / sums[:, -1:]


def attention(pattern: Csr, sent: Tensor, received: Tensor) -> Csr:
    """The operator itself: alpha_ij at the entries of the pattern, without a gradient."""
    with torch.no_grad():
        weighed = pattern.with_values(_powers(pattern, sent, received))
        return weighed.scaled(1 / weighed.sum(dim=1))


def _powers(pattern: Csr, sent: Tensor, received: Tensor) -> Tensor:
    """`exp(s_ij - max_j s_ij)` of every entry."""
    rows, columns = pattern.row_of_entry(), pattern.indices.long()
    scores = functional.leaky_relu(sent[columns] + received[rows], SLOPE)
    top = torch.full_like(received, -torch.inf).scatter_reduce(0, rows, scores.detach(), "amax")
    return torch.exp(scores - top[rows])


class _Weighed(torch.autograd.Function):
    """`Y = A X` with a gradient for the entries of A, at the places of the pattern, and for X."""

    @staticmethod
    def forward(ctx: Any, pattern: Csr, values: Tensor, dense: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, dense)
        return pattern.with_values(values) @ dense

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor]:
        values, dense = ctx.saved_tensors
        weighed, upstream = ctx.pattern.with_values(values), grads[0].contiguous()
        return None, weighed.dots(upstream, dense), weighed.t() @ upstream
