"""How strange rows look to sums: unknown classes without one stored row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from undrift.analytic.calibration import noise_of
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.solve import solve
from undrift.analytic.thin_sums import ThinSums

_RIDGE = 1.0  # of the mean variance within classes
_STEPS = 512  # places at which the distribution of known rows is kept
_FLOOR = 1e-6  # of the mean variance of the discriminants: no direction is without any


@dataclass(frozen=True, eq=False)
class Strangeness:
    """The relative Mahalanobis distance, as a function of `a = z V` with a column per class.

        s(z) = min_c |z - m_c|^2_P - |z - m|^2_T,    P = (S + r I)^-1,  T = (S + B + r I)^-1

    S is the covariance within classes, each class weighing the same, B that of the class means
    m_c around their mean m, `V = P M`. As T is P less a matrix of C columns, `z^T P z` cancels,
    and nothing but a is left of a row. `between = M^T P M`, `spread`: the covariance of a within
    classes, `widths`: each class's variance over it, `shares`: of all rows.
    """

    weights: Tensor
    between: Tensor
    spread: Tensor
    widths: Tensor
    shares: Tensor

    @classmethod
    def of(cls, sums: ClassSums | ThinSums) -> Strangeness:
        """Of the classes that have rows; cost: one solution, and 2 d^2 C operations."""
        sums = sums.select((sums.counts > 0.5).nonzero().flatten().tolist())
        means, classes = sums.moment / sums.counts, max(sums.classes, 1)
        if isinstance(sums, ThinSums):
            thin = sums.balanced()
            diagonal = thin.matrix.diag
            raw = thin.solution(_ridge(diagonal, means), None)[0]
        else:
            whole = sums.balanced()
            diagonal = whole.gram.diagonal()
            raw = solve(whole, _ridge(diagonal, means))
        # raw = (C S + M M^T + g I)^-1 M, from which the means are taken out again
        seen = means.T @ raw
        eye = torch.eye(sums.classes, dtype=seen.dtype, device=seen.device)
        weights = classes * torch.linalg.solve(eye - (seen + seen.T) / 2, raw.T).T
        covariance, widths = sums.score_spread(weights)
        return cls(weights, means.T @ weights, covariance, widths, sums.counts / sums.counts.sum())

    @property
    def classes(self) -> int:
        """How many classes have rows."""
        return int(self.shares.numel())

    @cached_property
    def _inner(self) -> tuple[Tensor, Tensor]:
        """`U^T P U` and its shift, for the centred means over the root of C."""
        centred = self.between - self.between.mean(dim=0)
        centred = (centred - centred.mean(dim=1, keepdim=True)) / self.classes
        centred.diagonal().add_(1.0)
        return torch.linalg.cholesky(centred), self.between.mean(dim=0)

    def coordinates(self, a: Tensor) -> Tensor:
        """`U^T P (z - m)`: where rows lie between the class means."""
        place = a - self._inner[1]
        found: Tensor = (place - place.mean(dim=1, keepdim=True)) / self.classes**0.5
        return found

    def places(self, a: Tensor) -> Tensor:
        """Where rows lie among the class means, in units of the scatter within classes."""
        values, vectors = torch.linalg.eigh(self.spread)
        root = values.clamp(min=_FLOOR * float(values.sum())).rsqrt()
        found: Tensor = (a - self.between.mean(dim=0)) @ (vectors * root)
        return found

    def scores(self, a: Tensor) -> Tensor:
        """`s` of rows of which `a = z V`; larger is stranger."""
        lower, _ = self._inner
        nearest = (self.between.diagonal() - 2 * a).amin(dim=1)
        centre = 2 * a.mean(dim=1) - self.between.mean()
        whole = torch.linalg.solve_triangular(lower, self.coordinates(a).T, upper=False)
        found: Tensor = nearest + centre + whole.square().sum(dim=0)
        return found

    @cached_property
    def usual(self) -> Tensor:
        """Scores of rows of known classes at even shares, rising, as the sums tell them."""
        noise = noise_of(self.spread + _FLOOR * torch.diag(self.spread.diagonal()))
        drawn = [
            self.scores(self.between[c] + self.widths[c].sqrt() * noise)
            for c in range(self.classes)
        ]
        shares = (self.shares / noise.shape[0]).repeat_interleave(noise.shape[0])
        found, order = torch.cat(drawn).sort()
        below = shares[order].cumsum(dim=0) - shares[order] / 2
        places = (torch.arange(_STEPS, dtype=found.dtype, device=found.device) + 0.5) / _STEPS
        return interpolated(places, below, found)

    def novelty(self, scores: Tensor) -> Tensor:
        """One minus the share of known rows that would look at least as strange, 0 to 1."""
        usual = self.usual
        places = (torch.arange(_STEPS, dtype=usual.dtype, device=usual.device) + 0.5) / _STEPS
        return interpolated(scores, usual, places)


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
