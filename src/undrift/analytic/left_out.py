"""What would be detected of each known class, were it unknown: it is left out of the sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from undrift.analytic.calibration import noise_of
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.novelty import Strangeness
from undrift.analytic.thin_sums import AnySums, ThinSums

_FEW_ROWS = 20  # of a class: fewer hardly tell how far its rows vary
_FEW_DIRECTIONS = 128  # of a thin Gram: with 64 Photo has 13 % of alarms for 5, with 256 it has 5


@dataclass(frozen=True)
class NoveltyReport:
    """The share of each class's rows that would be called unknown, were it unknown, or None.

    A rough forecast: of rows alone, without what neighbours tell, and of classes like the known
    ones. `alarms`: the false-alarm rate. `detected`: in the order of the classes that have rows.
    """

    alarms: float
    detected: tuple[float | None, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, sums: AnySums, alarms: float = 0.05, *, rarity: bool = True) -> NoveltyReport:
        """Of the classes that have rows; cost: a `Strangeness` for each."""
        sums = replace(sums.select((sums.counts > 0.5).nonzero().flatten().tolist()))
        each = range(sums.classes)
        found = [left_out(sums, c, alarms, rarity=rarity) for c in each] if len(each) > 2 else []
        return cls(alarms, tuple(found) or (None,) * len(each), _notes(sums, rarity=rarity))

    @property
    def mean(self) -> float | None:
        """The mean over the classes; None without any."""
        shares = [each for each in self.detected if each is not None]
        return sum(shares) / len(shares) if shares else None


def without(sums: AnySums, place: int) -> AnySums:
    """The sums of the other classes, as far as these tell.

    Moments, lengths and counts are exact, and with a whole Gram squares and the diagonal of R. What
    R holds of the class beside the diagonal is not kept: columns are taken to go together in it as
    in all others. Thin sums keep no column's squares per class: those are taken to go with the
    class's mean, as in `balanced`.
    """
    others: Any = sums.select([c for c in range(sums.classes) if c != place])
    if isinstance(sums, ClassSums):
        every, left = sums.scatter.sum(dim=1), others.scatter.sum(dim=1)
    else:
        every, left = (each.moment.abs().sum(dim=1) for each in (sums, others))
    share = torch.where(every > 0, left / every.clamp(min=1e-300), 0.0)
    if isinstance(sums, ClassSums):
        root = share.clamp(0, 1).sqrt()
        gram = sums.products_around.mul_(torch.outer(root, root))
        whole: ClassSums = replace(others, gram=gram.addmm_(others.moment, others.means.T))
        return whole
    squares = float(others.scatter.clamp(min=0).sum())
    share = share * (squares / max(float(sums.within.diag @ share), 1e-300))
    within, omega, means = sums.within.stretched(share.sqrt()), sums.directions(), others.means
    thin: ThinSums = replace(
        others,
        seen=within.times(omega) + others.moment @ (means.T @ omega),
        diagonal=within.diag + (others.moment * means).sum(dim=1),
    )
    return thin


def left_out(sums: AnySums, place: int, alarms: float, *, rarity: bool = True) -> float:
    """The share of a class's drawn rows that are stranger to the others than all but `alarms`.

    The others' sums are not exactly those of a learner that never saw the class (`without`): how
    columns go together within a class is kept for all classes in one.
    """
    others = without(sums, place)
    strange = Strangeness.of(others, rarity=rarity)
    covariance, widths = sums.score_covariance(strange.weights)
    rows = sums.means[:, place] @ strange.weights + widths[place].sqrt() * noise_of(covariance)
    squares = (sums.diagonal - others.diagonal).clamp(min=0)
    rare = float(squares @ strange.rare) / max(float(squares.sum()), 1e-300)
    scores = strange.of_draws(strange.distance(rows), rare)
    return float((strange.novelty(scores) > 1 - alarms).double().mean())


def _notes(sums: AnySums, *, rarity: bool) -> tuple[str, ...]:
    """What the sums cannot tell well."""
    notes = []
    few = int((sums.counts < _FEW_ROWS).sum())
    if sums.classes < 3:
        notes.append("fewer than three classes: none can be left out to see what is detected")
    if few:
        notes.append(f"{few} of {sums.classes} classes have fewer than {_FEW_ROWS} rows")
    if Strangeness.of(sums, rarity=rarity).leverage > 0.5:
        notes.append("few rows for so many columns: false alarms may be more or fewer")
    if isinstance(sums, ThinSums) and sums.rank < min(_FEW_DIRECTIONS, sums.width):
        notes.append(
            f"a Gram seen through {sums.rank} directions, for {sums.width:,} columns: false alarms "
            "may be more or fewer"
        )
    return tuple(notes)
