"""MagMax: of every weight the largest change wins (Marczak et al., 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.merging.merger import WeightRule, check_layers, nothing_added

SCALE = 0.5
"""How far to go along the chosen changes; the authors' constant."""


@dataclass(frozen=True, eq=False)
class MagMax(WeightRule):
    """`theta_pre + scale tau`, where entry j of tau is that of the largest |tau_ij|.

    Of equally large entries of `tau_i = theta_i - theta_pre` the later one wins. It keeps
    theta_pre (by default the first encoder), and of every weight the value farthest from it.
    """

    name: ClassVar[str] = "magmax"
    display: ClassVar[str] = "MagMax"

    pretrained: tuple[Tensor, ...] = ()
    farthest: tuple[Tensor, ...] = ()
    scale: float = SCALE

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise InputError(f"the scale of MagMax must be greater than 0, not {self.scale}")

    def add(self, weights: Sequence[Tensor]) -> MagMax:
        """The memory after one more encoder."""
        check_layers(self.pretrained, weights)
        own = tuple(w.detach().clone() for w in weights)
        start = self.pretrained or own
        before = self.farthest or start
        farthest = tuple(map(_farther, start, before, own))
        return MagMax(start, farthest, self.scale)

    def merge(self) -> tuple[Tensor, ...]:
        """theta_pre plus the scaled largest changes, in float64."""
        if not self.farthest:
            raise nothing_added(self.display)
        pairs = zip(self.pretrained, self.farthest, strict=True)
        return tuple(a.double() + self.scale * (b.double() - a.double()) for a, b in pairs)


def _farther(start: Tensor, before: Tensor, new: Tensor) -> Tensor:
    """Entry by entry the one of two values that is farther from `start`; the new one if equal."""
    origin = start.double()
    wins = (new.double() - origin).abs() >= (before.double() - origin).abs()
    return torch.where(wins, new.to(start), before)
