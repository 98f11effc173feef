"""How strange rows look to sums: unknown classes without one stored row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from undrift.analytic.calibration import noise_of
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.selection import solution_at
from undrift.analytic.thin import ThinStatistics
from undrift.analytic.thin_sums import ThinSums

_RIDGE = 1.0  # of the mean variance within classes
_RARE = 0.1  # of a column's mean square: what keeps columns that no row has from deciding alone
_MOST = 0.95  # mean leverage beyond which nothing is left to judge by
_MOST_VARIED = 0.5  # how far the rarity of a row varies from one to the next, at most
_STEPS = 512  # places at which the distribution of known rows is kept
_FLOOR = 1e-6  # of the mean variance of the discriminants: no direction is without any
_FEW_ROWS = 20  # of a class: fewer hardly tell how far its rows vary
_FEW_ALARMS = 0.05  # the false-alarm rate of a report


@dataclass(frozen=True, eq=False)
class Strangeness:
    """How strange a row z looks, as a function of `a = z V`, a column per class, and its rarity.

        s = (min_c |z - m_c|^2_P - |z - m|^2_T) / scale + q / q0,    q = sum_j z_j^2 / (g_j + e)

    `P = (S + r I)^-1` and `T = (S + B + r I)^-1`: S is the covariance within classes, each class
    weighing the same, B that of the class means m_c around their mean m. As T is P less a matrix
    of C columns, `z^T P z` cancels, and `V = P M` is all that is asked of z. The rarity q is large
    for a row in columns that known rows hardly have; g are mean squares, q0 is its mean.

    `between = M^T P M`, `spread`: the covariance of a within classes, `widths`: each class's
    variance over it, `shares`: of all rows, `own`: what a summed row adds to its own `a` per unit
    of leverage, `leverage`: its mean, `varies`: the deviation of `q / q0`.
    """

    weights: Tensor
    rare: Tensor
    between: Tensor
    spread: Tensor
    widths: Tensor
    shares: Tensor
    own: Tensor
    leverage: float
    varies: float
    counts: Tensor

    @classmethod
    def of(cls, sums: ClassSums | ThinSums) -> Strangeness:
        """Of the classes that have rows; cost: one solution, and 2 d^2 C operations."""
        sums = replace(sums.select((sums.counts > 0.5).nonzero().flatten().tolist()))
        means, classes = sums.moment / sums.counts, max(sums.classes, 1)
        weighed = sums.balanced()
        if isinstance(weighed, ThinStatistics):
            diagonal = weighed.matrix.diag
        else:
            diagonal = weighed.gram.diagonal()
        mean = max(float(diagonal.mean()), 1e-300)
        solved = solution_at(weighed, _ridge(diagonal, means) / mean, sums.spread())
        freedoms = [solved.freedom]
        if isinstance(weighed, ThinStatistics):  # one is too many, the other too few
            freedoms.append(weighed.freedom_of_rows(solved.freedom))
        leverages = [min(max(f / max(sums.count, 1), 0.0), _MOST) for f in freedoms]
        # weights are (C S + M M^T + g I)^-1 M, from which the means are taken out again
        seen = means.T @ solved.weights
        own = torch.eye(sums.classes, dtype=seen.dtype, device=seen.device)
        own = classes * torch.linalg.inv(own - (seen + seen.T) / 2)
        weights = solved.weights @ own
        covariance, widths = sums.score_spread(weights)
        between = means.T @ weights
        squares = diagonal / classes
        rare = (squares + _RARE * squares.mean()).clamp(min=1e-300).reciprocal()
        usual = float(squares @ rare)
        entries = max(float(sums.moment.sum().abs()) / max(sums.count, 1), 1.0)
        second = classes * float(squares @ rare.square()) / max(float(diagonal.sum()), 1e-300)
        first = classes * usual / max(float(diagonal.sum()), 1e-300)
        apart = math.sqrt(max(second / first**2 - 1, 0.0) / entries) if first > 0 else 0.0
        return cls(
            weights,
            rare / max(usual, 1e-300),
            (between + between.T) / 2,
            covariance + _FLOOR * torch.diag(covariance.diagonal()),
            widths,
            sums.counts / max(float(sums.counts.sum()), 1.0),
            own,
            sum(leverages) / len(leverages),
            min(apart, _MOST_VARIED),
            sums.counts,
        )

    @property
    def classes(self) -> int:
        """How many classes have rows."""
        return int(self.shares.numel())

    def without(self, place: int) -> Strangeness:
        """With one class less: its mean is gone, the scatter within classes stays as it is."""
        kept = [c for c in range(self.classes) if c != place]
        pairs = {name: getattr(self, name)[kept][:, kept] for name in ("between", "spread", "own")}
        each = {name: getattr(self, name)[kept] for name in ("widths", "shares", "counts")}
        each["shares"] = each["shares"] / each["shares"].sum().clamp(min=1e-300)
        return replace(self, weights=self.weights[:, kept], **pairs, **each)

    # scores ------------------------------------------------------------------------------

    def distance(self, a: Tensor) -> Tensor:
        """The relative distance; beside one class alone the part of its own that a tells."""
        nearest = (self.between.diagonal() - 2 * a).amin(dim=1)
        if self.classes < 2:
            return nearest
        centred = self.between - self.between.mean(dim=0)
        inner = (centred - centred.mean(dim=1, keepdim=True)) / self.classes
        inner.diagonal().add_(1.0)
        place = a - self.between.mean(dim=0)
        place = (place - place.mean(dim=1, keepdim=True)) / self.classes**0.5
        whole = torch.linalg.solve_triangular(torch.linalg.cholesky(inner), place.T, upper=False)
        centre = 2 * a.mean(dim=1) - self.between.mean()
        found: Tensor = nearest + centre + whole.square().sum(dim=0)
        return found

    def scores(self, seen: Tensor) -> Tensor:
        """`s` of rows of which `[z V, q / q0]` is given; larger is stranger."""
        return self.distance(seen[:, :-1]) / self.scale + seen[:, -1]

    def places(self, seen: Tensor) -> Tensor:
        """Where rows lie among the class means, in units of the scatter within classes."""
        values, vectors = torch.linalg.eigh(self.spread)
        root = values.clamp(min=_FLOOR * float(values.sum())).rsqrt()
        found: Tensor = (seen[:, :-1] - self.between.mean(dim=0)) @ (vectors * root)
        return found

    # what is usual -------------------------------------------------------------------------

    @cached_property
    def _noise(self) -> Tensor:
        return noise_of(self.spread)

    def drawn(self, place: int) -> Tensor:
        """`a` of unseen rows of a class, as in `held_out_scores`."""
        summed = self.between[place] + self.widths[place].sqrt() * self._noise
        found: Tensor = (summed - self.leverage * self.own[place]) / (1 - self.leverage)
        return found

    @cached_property
    def _known(self) -> tuple[Tensor, Tensor]:
        """Distances of unseen rows of known classes, and the share that each stands for."""
        each = [self.distance(self.drawn(c)) for c in range(self.classes)]
        draws = each[0].numel()
        return torch.cat(each), (self.shares / draws).repeat_interleave(draws)

    @cached_property
    def scale(self) -> float:
        """From the middle of the known rows' distances to the strangest in twenty."""
        middle, far = _quantiles(*self._known, self.shares.new_tensor([0.5, 0.95]))
        return max(float(far - middle), 1e-300)

    @cached_property
    def usual(self) -> Tensor:
        """Scores of rows of known classes at even shares, rising, as the sums tell them."""
        distances, shares = self._known
        noise = torch.Generator().manual_seed(1)
        rare = torch.randn(distances.numel() // self.classes, generator=noise, dtype=torch.float64)
        rarity = 1 + self.varies * rare.to(distances.device).repeat(self.classes)
        return _quantiles(distances / self.scale + rarity, shares, _even(shares))

    def novelty(self, scores: Tensor) -> Tensor:
        """One minus the share of known rows that would look at least as strange, 0 to 1."""
        return interpolated(scores, self.usual, _even(self.usual))

    def report(self, alarms: float = _FEW_ALARMS) -> NoveltyReport:
        """What would be detected of each class if it were unknown, and what sums cannot tell.

        A class is left out, and rows drawn of it are judged by the others. Cost: C^2 draws.
        """
        found: list[float | None] = [None] * self.classes
        notes = []
        for place in range(self.classes) if self.classes > 2 else ():
            others = self.without(place)
            kept = [c for c in range(self.classes) if c != place]
            scores = others.distance(self.drawn(place)[:, kept]) / others.scale + 1
            found[place] = float((others.novelty(scores) > 1 - alarms).double().mean())
        few = int((self.counts < _FEW_ROWS).sum())
        if self.classes < 3:
            notes.append("fewer than three classes: none can be left out to see what is detected")
        if few:
            notes.append(f"{few} of {self.classes} classes have fewer than {_FEW_ROWS} rows")
        if self.leverage > 0.5:
            notes.append("few rows for so many columns: false alarms may be more or fewer")
        return NoveltyReport(alarms, tuple(found), tuple(notes))


@dataclass(frozen=True)
class NoveltyReport:
    """The expected share of each class's rows that would be called unknown, were it unknown.

    `alarms`: the false-alarm rate. `detected`: in the order of the classes that have rows; None
    where it cannot be told. `notes`: what the sums cannot tell.
    """

    alarms: float
    detected: tuple[float | None, ...]
    notes: tuple[str, ...]

    @property
    def mean(self) -> float | None:
        """The mean over the classes; None without any."""
        told = [each for each in self.detected if each is not None]
        return sum(told) / len(told) if told else None


def _even(like: Tensor) -> Tensor:
    return (torch.arange(_STEPS, dtype=like.dtype, device=like.device) + 0.5) / _STEPS


def _quantiles(values: Tensor, shares: Tensor, at: Tensor) -> Tensor:
    """Of values that each stand for a share of all."""
    values, order = values.sort()
    below = shares[order].cumsum(dim=0) - shares[order] / 2
    return interpolated(at, below, values)


def _ridge(diagonal: Tensor, means: Tensor) -> float:
    """A part of the mean diagonal of C S, of that of `C S + M M^T`."""
    total = float(diagonal.sum())
    within = max(total - float(means.square().sum()), 1e-9 * total, 1e-300)
    return _RIDGE * within / diagonal.numel()


def interpolated(x: Tensor, at: Tensor, values: Tensor) -> Tensor:
    """The broken line through (at, values), `at` rising, level beyond its ends.

    >>> at, values = torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0])
    >>> interpolated(torch.tensor([-1.0, 1.0, 9.0]), at, values).tolist()
    [0.0, 0.5, 1.0]
    """
    right = torch.searchsorted(at, x).clamp(1, at.numel() - 1)
    low, high = at[right - 1], at[right]
    step = torch.where(high > low, (x - low) / torch.where(high > low, high - low, 1.0), 0.5)
    return torch.lerp(values[right - 1], values[right], step.clamp(0, 1))
