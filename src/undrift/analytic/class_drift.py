"""How far a class that comes back has moved from what was known of it, by sums alone."""

from dataclasses import dataclass

import torch
from scipy.special import fdtrc
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.thin_sums import AnySums

_ROUNDING = 1e-12  # of all squares: what is left of rows that do not vary


@dataclass(frozen=True)
class ClassDrift:
    """How far the mean of a class moved, over the usual distance of a row from its class mean.

    `p`: how often chance moves a mean so far, an estimate: rows of one graph share neighbours.
    """

    moved: float
    p: float


def class_drift(
    before: AnySums, batch: AnySums, dependence: Tensor | None = None
) -> list[ClassDrift | None]:
    """For each class with rows in both sums, in their order; None for any other.

    With a class's means m, counts n and squares ss around its means, before and in the batch:

        t = (ss + ss') / (n + n' - 2),    F = |m - m'|^2 / (t (k/n + k/n'))

    k is the `dependence`: how many times the variance of a class's mean is that of independent
    rows, 1 without it. Without a change F follows Fisher's distribution with h and h (n + n' - 2)
    degrees of freedom. h = (tr S)^2 / tr S^2 is the number of directions that the scatter S within
    classes fills (Bai and Saranadasa, 1996). `moved` is `|m - m'| / sqrt(t)` without what chance
    adds to it. Cost: d^2 operations, or d times the rank.
    """
    classes = max(before.classes, batch.classes)
    old, new = before.grow(classes), batch.grow(classes)
    n, m = old.counts, new.counts
    free = n + m - 2
    squares = old.squares_around.clamp(min=0) + new.squares_around.clamp(min=0)
    lengths = old.lengths + new.lengths
    scatter = torch.where(squares > _ROUNDING * lengths, squares, 0.0) / free.clamp(min=1)
    gap = old.moment / n.clamp(min=1) - new.moment / m.clamp(min=1)
    ratio = gap.square().sum(dim=0) / scatter.clamp(min=1e-300)
    noise = 1 / n.clamp(min=1) + 1 / m.clamp(min=1)
    noise = noise if dependence is None else noise * dependence
    h = _directions_filled(old, new, float(squares.sum()))
    p = fdtrc(h, (h * free.clamp(min=1)).cpu().numpy(), (ratio / noise).cpu().numpy())
    moved = (ratio - noise).clamp(min=0).sqrt()
    there = (n > 0.5) & (m > 0.5) & (free > 0.5) & (scatter > 0)
    return [
        ClassDrift(far, chance) if known else None
        for far, chance, known in zip(moved.tolist(), p.tolist(), there.tolist(), strict=True)
    ]


def _directions_filled(old: AnySums, new: AnySums, trace: float) -> float:
    """h, without what few rows add to `tr S^2`; each side has its own class means."""
    seen = old.products_around + new.products_around
    columns = 1 if isinstance(old, ClassSums) else old.rank  # E |S w|^2 = tr S^2 for w ~ N(0, I)
    free = sum(s.count - int((s.counts > 0.5).sum()) for s in (old, new))
    if free < 2 or trace <= 0:
        return 1.0
    square = (float(seen.square().sum()) / columns - trace**2 / free) / ((free + 2) * (free - 1))
    most = min(old.width, free)
    return most if square <= 0 else min(max((trace / free) ** 2 / square, 1.0), most)
