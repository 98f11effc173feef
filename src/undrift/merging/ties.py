"""TIES: trim small changes, elect a sign, average those that agree (Yadav et al., 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.merging.merger import WeightRule, check_layers, nothing_added, plus

DENSITY = 0.2
"""The share of a task vector that stays, by size; the authors' constant."""
SCALE = 1.0
"""How far to go along the merged change; the authors' constant."""


def trimmed(vector: Sequence[Tensor], density: float = DENSITY) -> tuple[Tensor, ...]:
    """The task vector with only its largest entries: the share `density` of all together."""
    if not 0 < density <= 1:
        raise InputError(f"the density of TIES must be over 0 and at most 1, not {density}")
    sizes = torch.cat([part.abs().flatten() for part in vector])
    keep = math.ceil(density * sizes.numel())
    smallest = sizes.kthvalue(sizes.numel() - keep + 1).values
    return tuple(torch.where(part.abs() >= smallest, part, 0.0) for part in vector)


@dataclass(frozen=True, eq=False)
class Ties(WeightRule):
    """`theta_pre + scale tau`: per entry the mean of the trimmed tau_i that have its sign.

    Of `tau_i = theta_i - theta_pre` the largest entries count (`trimmed`), if they have the sign
    of `sum_i tau_i`. It keeps theta_pre, and per weight the sum and number of the positive and of
    the negative changes: the sign elected is that of the two sums together, and the entries that
    agree with it are exactly those in one of them. Without `pretrained` the first encoder added is
    theta_pre. Memory: 24 bytes per weight and one encoder.
    """

    name: ClassVar[str] = "ties"
    display: ClassVar[str] = "TIES"

    pretrained: tuple[Tensor, ...] = ()
    rises: tuple[Tensor, ...] = ()
    falls: tuple[Tensor, ...] = ()
    rising: tuple[Tensor, ...] = ()
    falling: tuple[Tensor, ...] = ()
    density: float = DENSITY
    scale: float = SCALE

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise InputError(f"the scale of TIES must be greater than 0, not {self.scale}")

    def add(self, weights: Sequence[Tensor]) -> Ties:
        """The memory after one more encoder."""
        check_layers(self.pretrained, weights)
        start = self.pretrained or tuple(w.detach().clone() for w in weights)
        pairs = zip(weights, start, strict=True)
        vector = trimmed([w.detach().double() - s.double() for w, s in pairs], self.density)
        return Ties(
            start,
            plus(self.rises, [part.clamp_min(0) for part in vector]),
            plus(self.falls, [part.clamp_max(0) for part in vector]),
            plus(self.rising, [(part > 0).int() for part in vector]),
            plus(self.falling, [(part < 0).int() for part in vector]),
            self.density,
            self.scale,
        )

    def merge(self) -> tuple[Tensor, ...]:
        """theta_pre plus the scaled mean of the changes that agree, in float64."""
        if not self.rises:
            raise nothing_added(self.display)
        merged = []
        parts = (self.pretrained, self.rises, self.falls, self.rising, self.falling)
        for start, rises, falls, rising, falling in zip(*parts, strict=True):
            up, down = rises / rising.clamp_min(1), falls / falling.clamp_min(1)
            elected = rises + falls
            # rises that cancel falls exactly elect no sign: the weight stays where it was
            mean = torch.where(elected > 0, up, torch.where(elected < 0, down, 0.0))
            merged.append(start.double() + self.scale * mean)
        return tuple(merged)
