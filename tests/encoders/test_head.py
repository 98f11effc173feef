"""The head grows by columns and keeps the old ones."""

from __future__ import annotations

import torch

from undrift.encoders.head import Head


def test_growing_keeps_the_old_columns() -> None:
    generator = torch.Generator().manual_seed(0)
    head = Head.create(4, 2, generator)
    grown = head.grow(3, generator)
    h = torch.ones(6, 4)
    assert grown(h).shape == (6, 5)
    assert torch.allclose(grown(h)[:, :2], head(h))


def test_logits_are_affine() -> None:
    head = Head(torch.eye(2), torch.tensor([1.0, -1.0]))
    assert head(torch.tensor([[2.0, 3.0]])).tolist() == [[3.0, 2.0]]
