"""Simple averaging: the mean of all weights (Choshen et al., 2022; Wortsman et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from undrift.merging.merger import WeightRule, check_layers, nothing_added, plus


@dataclass(frozen=True, eq=False)
class Average(WeightRule):
    """`theta = 1/T sum_i theta_i`: the running sum of weights and their number, 8 bytes a weight.

    >>> one, two = (torch.tensor([1.0]),), (torch.tensor([4.0]),)
    >>> Average().add(one).add(two).merge()
    (tensor([2.5000], dtype=torch.float64),)
    """

    name: ClassVar[str] = "average"
    display: ClassVar[str] = "averaging"

    total: tuple[Tensor, ...] = ()
    tasks: int = 0

    def add(self, weights: Sequence[Tensor]) -> Average:
        """The memory after one more encoder."""
        check_layers(self.total, weights)
        # a copy, also of float64: what goes on training must not change what was kept
        new = tuple(w.detach().to(torch.float64, copy=True) for w in weights)
        return Average(plus(self.total, new), self.tasks + 1)

    def merge(self) -> tuple[Tensor, ...]:
        """The mean of what was added, in float64."""
        if not self.tasks:
            raise nothing_added(self.display)
        return tuple(layer / self.tasks for layer in self.total)
