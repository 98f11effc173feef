"""How good scores are and what probabilities they give, told by the sums they come from."""

from bisect import bisect_left
from collections.abc import Mapping

import torch
from torch import Tensor

from undrift.analytic.thin_sums import AnySums

_TEMPERATURES = tuple(10 ** (k / 16) for k in range(-40, 17))  # 0.003 to 10
_DRAWS = 1024
_MOST = 0.95  # mean leverage beyond which nothing is left to judge by
_FREEDOM = 3  # degrees of freedom: rows are heavier in their tails than normal ones


def best_temperature(scores: Mapping[int, Tensor]) -> float | None:
    """T of the least loss of `softmax(s / T)` on `held_out_scores`; None for under two classes."""
    if len(scores) < 2:
        return None
    drawn = torch.stack(list(scores.values()))
    own = torch.stack([s[:, c] for c, s in scores.items()])

    def loss(place: int) -> float:
        t = _TEMPERATURES[place]
        return float(((drawn / t).logsumexp(dim=2) - own / t).mean(dim=1).sum())

    # it is convex in 1 / T: the least is where it begins to rise
    rises = range(len(_TEMPERATURES) - 1)
    return _TEMPERATURES[bisect_left(rises, True, key=lambda k: loss(k) <= loss(k + 1))]


def expected_accuracy(scores: Mapping[int, Tensor]) -> dict[int, float]:
    """The share of each class's drawn scores whose largest is its own, by place of the class."""
    return {c: float((s.argmax(dim=1) == c).double().mean()) for c, s in scores.items()}


def held_out_scores(weights: Tensor, sums: AnySums, freedom: float) -> dict[int, Tensor]:
    """1,024 scores of unseen rows for every class with rows, by its place, as the sums tell them.

    Rows of a class are taken as drawn from Student's t with 3 degrees of freedom around the
    class's mean, with the pooled covariance scaled to the class's own variances. A summed row has
    been fitted: one of class c and leverage h, left out, would have the scores `(s - h e_c) / (1 -
    h)`, with h the mean leverage, `freedom / n`. Cost: 2 d^2 C operations.
    """
    centres = sums.means.T @ weights  # [C, C]: a class's mean scores
    covariance, width = sums.score_covariance(weights)
    noise = noise_of(covariance)
    h = min(max(freedom / sums.total, 0.0), _MOST)
    drawn = {}
    for c in (sums.counts > 0.5).nonzero().flatten().tolist():
        drawn[c] = centres[c] + width[c].sqrt() * noise
        drawn[c][:, c] -= h
        drawn[c] /= 1 - h
    return drawn


def noise_of(covariance: Tensor) -> Tensor:
    """Rows of Student's t with this covariance, the same ones for the same covariance."""
    width = covariance.shape[0]
    # by variance, so that no order of the classes matters
    order = covariance.diagonal().argsort()
    values, vectors = torch.linalg.eigh(covariance[order][:, order])
    # rounding may have made it slightly indefinite; the symmetric root is unique
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(_DRAWS, width + _FREEDOM, dtype=torch.float64, generator=generator)
    squares = normal[:, width:].square().sum(dim=1, keepdim=True)
    drawn = normal[:, :width] * ((_FREEDOM - 2) / squares).sqrt()
    noise: Tensor = (drawn.to(root.device) @ root)[:, order.argsort()]
    return noise
