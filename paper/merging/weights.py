"""Rules that need nothing but weights: averaging, MagMax and TIES.

Averaging is of Choshen et al. and Wortsman et al., 2022; MagMax of Marczak et al., 2024; TIES of
Yadav et al., 2023.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from paper.merging.rule import Rule, check_layers, plus
from undrift.merging.merger import Adapted, nothing_added

MAGMAX_SCALE = 0.5  # how far to go along the chosen changes; the authors' constant
TIES_DENSITY = 0.2  # the share of a task vector that stays, by size; the authors' constant


class WeightRule(Rule, ABC):
    """A rule that needs nothing but weights."""

    @abstractmethod
    def add(self, weights: Sequence[Tensor]) -> Self:
        """The memory after one more encoder."""

    def observe(self, adapted: Adapted) -> Self:
        """The memory after the encoder of a task."""
        return self.add(adapted.encoder.weights)


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


@dataclass(frozen=True, eq=False)
class MagMax(WeightRule):
    """`theta_pre + 0.5 tau`, where entry j of tau is that of the largest |tau_ij|.

    Of equally large entries of `tau_i = theta_i - theta_pre` the later one wins. It keeps
    theta_pre (by default the first encoder), and of every weight the value farthest from it.
    """

    name: ClassVar[str] = "magmax"
    display: ClassVar[str] = "MagMax"

    pretrained: tuple[Tensor, ...] = ()
    farthest: tuple[Tensor, ...] = ()

    def add(self, weights: Sequence[Tensor]) -> MagMax:
        """The memory after one more encoder."""
        check_layers(self.pretrained, weights)
        own = tuple(w.detach().clone() for w in weights)
        start = self.pretrained or own
        farthest = []
        for s, before, new in zip(start, self.farthest or start, own, strict=True):
            wins = (new.double() - s.double()).abs() >= (before.double() - s.double()).abs()
            farthest.append(torch.where(wins, new.to(s), before))
        return MagMax(start, tuple(farthest))

    def merge(self) -> tuple[Tensor, ...]:
        """theta_pre plus the scaled largest changes, in float64."""
        if not self.farthest:
            raise nothing_added(self.display)
        pairs = zip(self.pretrained, self.farthest, strict=True)
        return tuple(a.double() + MAGMAX_SCALE * (b.double() - a.double()) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Ties(WeightRule):
    """`theta_pre + tau`: per entry the mean of the trimmed tau_i that have its sign.

    Of `tau_i = theta_i - theta_pre` the largest 20 % of entries count, if they have the sign of
    `sum_i tau_i`. It keeps theta_pre, and per weight the sum and number of the positive and of
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

    def add(self, weights: Sequence[Tensor]) -> Ties:
        """The memory after one more encoder."""
        check_layers(self.pretrained, weights)
        start = self.pretrained or tuple(w.detach().clone() for w in weights)
        changes = [w.detach().double() - s.double() for w, s in zip(weights, start, strict=True)]
        sizes = torch.cat([part.abs().flatten() for part in changes])
        fewer = sizes.numel() - math.ceil(TIES_DENSITY * sizes.numel())
        smallest = sizes.kthvalue(fewer + 1).values
        vector = [torch.where(part.abs() >= smallest, part, 0.0) for part in changes]
        return Ties(
            start,
            plus(self.rises, [part.clamp_min(0) for part in vector]),
            plus(self.falls, [part.clamp_max(0) for part in vector]),
            plus(self.rising, [(part > 0).int() for part in vector]),
            plus(self.falling, [(part < 0).int() for part in vector]),
        )

    def merge(self) -> tuple[Tensor, ...]:
        """theta_pre plus the mean of the changes that agree, in float64."""
        if not self.rises:
            raise nothing_added(self.display)
        merged = []
        parts = (self.pretrained, self.rises, self.falls, self.rising, self.falling)
        for start, rises, falls, rising, falling in zip(*parts, strict=True):
            up, down = rises / rising.clamp_min(1), falls / falling.clamp_min(1)
            elected = rises + falls
            # rises that cancel falls exactly elect no sign: the weight stays where it was
            mean = torch.where(elected > 0, up, torch.where(elected < 0, down, 0.0))
            merged.append(start.double() + mean)
        return tuple(merged)
