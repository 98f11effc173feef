"""How strange rows look to sums: unknown classes without one stored row."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from undrift.analytic.calibration import noise_of
from undrift.analytic.rounding import likely
from undrift.analytic.selection import solution_at
from undrift.analytic.solve import ThinStatistics
from undrift.analytic.statistics import chunks
from undrift.analytic.thin_sums import AnySums
from undrift.typing import Rows

_RIDGE = 1.0  # of the mean variance within classes
_ALIKE = 1e-9  # of all squares: so little within classes is none
_UNTOLD = 1e-4  # of all squares: how far rows of a class vary where the sums do not tell
_RARE = 0.1  # of a column's mean square: what keeps columns that no row has from deciding alone
_MOST = 0.95  # mean leverage beyond which nothing is left to judge by
_VARIED = (0.02, 0.5)  # how far the rarity of a row varies from one to the next, at least and most
_RARITY = 0.2  # of the scale: how far the rarity of known rows may move their scores
_MOST_NOISE = 0.5  # leverage beyond which noise grows no more: the mean over neighbours evens it
_FAR = 5.0  # scales
_BEYOND = 0.01  # of a scale for every e-fold beyond: so that no two rows are exactly as strange
_NOISES = tuple(k * math.log(2) for k in range(-2, 5))  # between them it is interpolated
_STEPS = 512  # places at which the distribution of known rows is kept
LEAST_ALARMS = 0.001  # the least false-alarm rate that so many places tell
_FLOOR = 1e-6  # of the mean variance of the discriminants: no direction is without any
_AT_ONCE_MB = 8.0  # of rows whose squares are made: they stay in the cache


@dataclass(frozen=True, eq=False)
class Strangeness:
    """How strange a row z looks, as a function of `a = z V`, a column per class, and its rarity.

        s = (min_c |z - m_c|^2_P - |z - m|^2_T - middle) / scale + w q / q0
        q = sum_j z_j^2 / (g_j + e) / |z|^2

    `P = (S + r I)^-1` and `T = (S + B + r I)^-1`: S is the covariance within classes, each class
    weighing the same, B that of the class means m_c around their mean m. As T is P less a matrix
    of C columns, `z^T P z` cancels, and `V = P M` is all that is asked of z. The rarity q is large
    for a row in columns that known rows hardly have; g are mean squares, q0 is its mean. Its weight
    `w = 0.2 / varies` makes it vary by a fifth of the scale among known rows. The scale leads from
    the middle of the known rows' distances to the strangest in twenty. The first part hardly grows
    beyond five: more would say no more, and outweigh the neighbours.

    A row that averages fewer neighbours than those behind the sums varies more, and is strange by
    that alone. So middle and scale are those of drawn rows with as much noise, where it is known.

    `between = M^T P M`, `covariance`: the covariance of a within classes, `widths`: each class's
    variance over it, `shares`: of all rows, `own`: what a summed row adds to its own `a` per unit
    of leverage, `leverage`: its mean, `varies`: the deviation of `q / q0`, `steady`: the share
    of a class's squares that its mean has.
    """

    weights: Tensor
    rare: Tensor
    between: Tensor
    covariance: Tensor
    widths: Tensor
    shares: Tensor
    own: Tensor
    leverage: float
    varies: float
    counts: Tensor
    steady: Tensor

    @classmethod
    def of(cls, sums: AnySums, *, rarity: bool = True) -> Strangeness:
        """Of the classes that have rows; cost: one solution, and 2 d^2 C operations.

        Without `rarity` w is 0: columns of a trained encoder are not rare or common.
        """
        sums = replace(sums.select((sums.counts > 0.5).nonzero().flatten().tolist()))
        means, classes = sums.moment / sums.counts, max(sums.classes, 1)
        weighed = sums.balanced()
        if isinstance(weighed, ThinStatistics):
            diagonal = weighed.matrix.diag
        else:
            diagonal = weighed.gram.diagonal()
        mean = max(float(diagonal.mean()), 1e-300)
        left = classes * likely(sums) * math.sqrt(diagonal.numel()) / sums.total
        within, known = _within(diagonal, means, left)
        solved = solution_at(weighed, _RIDGE * within / mean, sums.at_mean_weight())
        freedoms = [solved.freedom]
        if isinstance(weighed, ThinStatistics):  # one is too many, the other too few
            freedoms.append(weighed.freedom_of_rows(solved.freedom))
        leverages = [min(max(f / sums.total, 0.0), _MOST) for f in freedoms]
        # weights are (C S + M M^T + g I)^-1 M, from which the means are taken out again
        seen = means.T @ solved.weights
        own = torch.eye(sums.classes, dtype=seen.dtype, device=seen.device)
        own = classes * torch.linalg.inv(own - (seen + seen.T) / 2)
        weights = solved.weights @ own
        covariance, widths = sums.score_covariance(weights)
        if not known:
            covariance = within / classes * (weights.T @ weights)
            widths = torch.ones_like(widths)
        between = means.T @ weights
        squares = diagonal / mean
        rare = (squares + _RARE).reciprocal()
        every, usual = float(squares.sum()), max(float(squares @ rare), 1e-300)
        entries = max(float(sums.moment.sum().abs()) / sums.total, 1.0)
        ratio = every * float(squares @ rare.square()) / usual**2 if every > 0 else 1.0
        apart = math.sqrt(max(ratio - 1, 0.0) / entries)
        return cls(
            weights,
            rare * (every / usual),
            (between + between.T) / 2,
            covariance + _FLOOR * torch.diag(covariance.diagonal()),
            widths,
            sums.counts / sums.total,
            own,
            sum(leverages) / len(leverages),
            min(max(apart, _VARIED[0]), _VARIED[1]) if rarity else math.inf,
            sums.counts,
            ((means * sums.moment).sum(dim=0) / sums.lengths.clamp(min=1e-300)).clamp(0, 1),
        )

    @property
    def classes(self) -> int:
        """How many classes have rows."""
        return int(self.shares.numel())

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

    def seen(self, pieces: Iterable[Rows]) -> Tensor:
        """`[Z V, (Z o Z) w, |z|^2]`: all that is asked of rows, some at a time."""
        parts = [self.weights.new_zeros(0, self.weights.shape[1] + 2)]
        asked = torch.stack([self.rare, torch.ones_like(self.rare)], dim=1)
        for rows in pieces:
            for _, part in chunks(rows, _AT_ONCE_MB):
                exact = part.double()
                parts.append(torch.cat([exact @ self.weights, exact.square() @ asked], dim=1))
        return torch.cat(parts)

    def scores(self, seen: Tensor, noise: Tensor | None = None) -> Tensor:
        """`s` of rows of which `[z V, q |z|^2 / q0, |z|^2]` is given; larger is stranger.

        `noise`: how much more their features vary than those of summed rows, as a logarithm.
        """
        rarity = seen[:, -2] / seen[:, -1].clamp(min=1e-300)
        near = self._near(self.distance(seen[:, :-2]), noise)
        return near + _RARITY / self.varies * rarity

    def _near(self, distances: Tensor, noise: Tensor | None = None) -> Tensor:
        if noise is None:
            middle, scale = self._middle_and_scale
            found = (distances - middle) / scale
        else:
            at, *curves = self._by_noise
            middles, scales = (interpolated(noise.to(at), at, each) for each in curves)
            found = (distances - middles) / scales.exp()
        beyond = (found.abs() - _FAR).clamp(min=0).log1p()
        return found.clamp(-_FAR, _FAR) + _BEYOND * found.sign() * beyond

    @cached_property
    def _noise(self) -> Tensor:
        return noise_of(self.covariance)

    def drawn(self, place: int, most: float = _MOST_NOISE, noise: float = 0.0) -> Tensor:
        """`a` of unseen rows of a class, as in `held_out_scores`; noise by `most` leverage.

        A row has the length that it has: with more noise the part of the mean is smaller.
        """
        mean = (self.between[place] - self.leverage * self.own[place]) / (1 - self.leverage)
        wider = self.widths[place].sqrt() / (1 - min(self.leverage, most))
        steady, more = self.steady[place], math.exp(noise)
        found: Tensor = (mean + math.sqrt(more) * wider * self._noise) / torch.sqrt(
            steady + more * (1 - steady)
        )
        return found

    def _known(self, most: float, noise: float = 0.0) -> tuple[Tensor, Tensor]:
        """Distances of unseen rows of known classes, and the share that each stands for."""
        each = [self.distance(self.drawn(c, most, noise)) for c in range(self.classes)]
        draws = each[0].numel()
        return torch.cat(each), (self.shares / draws).repeat_interleave(draws)

    @cached_property
    def _middle_and_scale(self) -> tuple[float, float]:
        return self._with_noise(0.0)

    def _with_noise(self, noise: float) -> tuple[float, float]:
        """The middle of the known rows' distances, and from there to the strangest in twenty."""
        at = self.shares.new_tensor([0.5, 0.95])
        middle, far = _quantiles(*self._known(1.0, noise), at).tolist()
        return middle, max(far - middle, 1e-300)

    @cached_property
    def _by_noise(self) -> Tensor:
        """Some logarithms of noise, the middle at each, and the logarithm of the scale."""
        each = ((noise, *self._with_noise(noise)) for noise in _NOISES)
        return self.shares.new_tensor([(n, m, math.log(s)) for n, m, s in each]).T.contiguous()

    @cached_property
    def usual(self) -> Tensor:
        """Scores of nodes of known classes at even shares, rising, as the sums tell them."""
        distances, shares = self._known(_MOST_NOISE)
        found = self.of_draws(distances.reshape(self.classes, -1)).flatten()
        return _quantiles(found, shares, _even(shares))

    def of_draws(self, distances: Tensor, rarity: float = 1.0) -> Tensor:
        """`s` of drawn rows, the last dimension, of this mean rarity over that of known rows."""
        noise = torch.Generator().manual_seed(1)
        rare = torch.randn(distances.shape[-1], generator=noise, dtype=torch.float64)
        varied = rarity / self.varies + rare.to(distances.device)
        return self._near(distances) + _RARITY * varied

    def novelty(self, scores: Tensor) -> Tensor:
        """One minus the share of known rows that would look at least as strange, 0 to 1."""
        usual = self.usual
        asked = scores.to(usual).clamp(max=float(usual[-1]))
        return interpolated(asked, usual, _even(usual)).to(scores.device)


def _even(like: Tensor) -> Tensor:
    return (torch.arange(_STEPS, dtype=like.dtype, device=like.device) + 0.5) / _STEPS


def _quantiles(values: Tensor, shares: Tensor, at: Tensor) -> Tensor:
    """Of values that each stand for a share of all, whatever their order."""
    shares, order = shares.sort()  # equal values come by their shares
    values, places = values[order].sort(stable=True)
    shares = shares[places]
    below = shares.cumsum(dim=0) - shares / 2
    return interpolated(at, below, values)


def _within(diagonal: Tensor, means: Tensor, rounding: float) -> tuple[float, bool]:
    """The mean diagonal of C S, by that of `C S + M M^T`, and whether it is more than rounding."""
    total = float(diagonal.sum())
    within = total - float(means.square().sum())
    known = within > max(_ALIKE * total, rounding)
    return max(within if known else _UNTOLD * total, 1e-300) / diagonal.numel(), known


def interpolated(x: Tensor, at: Tensor, values: Tensor) -> Tensor:
    """The broken line through (at, values), `at` rising, level beyond its ends."""
    right = torch.searchsorted(at, x).clamp(1, at.numel() - 1)
    low, high = at[right - 1], at[right]
    step = torch.where(high > low, (x - low) / torch.where(high > low, high - low, 1.0), 0.5)
    return torch.lerp(values[right - 1], values[right], step.clamp(0, 1))
