"""A merging rule: a mean of all encoders in which later ones count more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder
from undrift.merging.merger import Adapted, MergeSettings, nothing_added


@dataclass(frozen=True, eq=False)
class Recent:
    """`theta <- theta / 2 + theta_t / 2` after every task."""

    name: ClassVar[str] = "recent"
    display: ClassVar[str] = "recent mean"

    mean: tuple[Tensor, ...] = ()

    @classmethod
    def empty(cls, encoder: Encoder, settings: MergeSettings) -> Recent:
        """The memory before the first task."""
        return cls()

    def add(self, weights: Sequence[Tensor]) -> Recent:
        """The memory after one more encoder."""
        new = tuple(w.detach().to(torch.float64, copy=True) for w in weights)
        return Recent(tuple((a + b) / 2 for a, b in zip(self.mean or new, new, strict=True)))

    def observe(self, adapted: Adapted) -> Recent:
        """The memory after the encoder of a task."""
        return self.add(adapted.encoder.weights)

    def merge(self) -> tuple[Tensor, ...]:
        """The mean, in float64."""
        if not self.mean:
            raise nothing_added(self.display)
        return self.mean
