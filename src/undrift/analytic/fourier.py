"""Random Fourier features: a seeded, fixed map after which ridge is a smooth kernel method."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.typing import Rows


@dataclass(frozen=True)
class Fourier:
    """`phi(z) = sqrt(2 / outputs) cos(sharpness z G + b)`, G normal, b uniform, from the seed.

    `phi(z) . phi(z')` is, up to an error of about 1 / sqrt(outputs), the Gaussian kernel
    `exp(-sharpness^2 |z - z'|^2 / 2)` (Rahimi and Recht, 2007). For rows of length one the
    distance is at most 2, so one sharpness serves every dataset. The matrix is never stored:
    the seed makes it again.

    >>> Fourier(width=4, outputs=6)(torch.eye(4)[:2]).shape
    torch.Size([2, 6])
    """

    width: int
    outputs: int
    sharpness: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.outputs < 1:
            raise InputError(f"random features must be at least 1, not {self.outputs}")
        if not self.sharpness > 0:
            raise InputError(f"sharpness must be greater than 0, not {self.sharpness}")

    def _drawn(self) -> tuple[Tensor, Tensor]:
        """G and b, in float64 on the CPU, so that every device uses the same numbers."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = (self.width, self.outputs)
        directions = torch.randn(shape, dtype=torch.float64, generator=generator)
        phases = torch.rand(self.outputs, dtype=torch.float64, generator=generator)
        return self.sharpness * directions, 2 * math.pi * phases

    def __call__(self, rows: Rows) -> Tensor:
        """The features of these rows, dense float64. Cost: 2 n width outputs operations."""
        directions, phases = (drawn.to(rows.device) for drawn in self._drawn())
        turned = rows.double() @ directions
        return turned.add_(phases).cos_().mul_(math.sqrt(2 / self.outputs))
