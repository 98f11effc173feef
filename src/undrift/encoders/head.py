"""`Head`: the linear classifier g_phi that training puts on an encoder."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Head:
    """`logits = h W + b`, a column per class; grows by new columns."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def create(
        cls, width: int, classes: int, generator: torch.Generator, device: str = "cpu"
    ) -> Head:
        """Random columns, uniform in +-1/sqrt(width)."""
        bound = 1 / math.sqrt(width)
        weight = (2 * torch.rand(width, classes, generator=generator) - 1) * bound
        bias = (2 * torch.rand(classes, generator=generator) - 1) * bound
        return cls(weight.to(device), bias.to(device))

    def grow(self, classes: int, generator: torch.Generator) -> Head:
        """Append so many new random columns."""
        new = Head.create(self.weight.shape[0], classes, generator, str(self.weight.device))
        return Head(torch.cat([self.weight, new.weight], dim=1), torch.cat([self.bias, new.bias]))

    def __call__(self, h: Tensor) -> Tensor:
        """Logits, a column per class."""
        return torch.addmm(self.bias, h, self.weight)
