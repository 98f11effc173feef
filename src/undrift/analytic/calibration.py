"""How good scores are, and what probabilities they give, from sums of validation rows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums

_TEMPERATURES = tuple(10 ** (k / 16) for k in range(-40, 17))  # 0.003 to 10
_DRAWS = 1024
_FREEDOM = 3  # degrees of freedom: rows are heavier in their tails than normal ones


def best_temperature(weights: Tensor, validation: ClassSums) -> float | None:
    """T of the least expected loss of `softmax(W^T x / T)`; None without validation rows.

    The mean of -log p of the true class is taken over scores drawn as `score_draws` says; each
    class weighs the same. A function of the sums: no node is kept, and no order matters.

    Cost: 2 d^2 C operations, and about 12 x 1,024 C^2 exponentials.
    """
    if weights.shape[1] < 2 or validation.count == 0:
        return None
    drawn = score_draws(weights, validation)

    def loss(t: float) -> float:
        return -sum(float((s / t).log_softmax(dim=1)[:, c].mean()) for c, s in drawn.items())

    return _least(loss)


def expected_accuracy(weights: Tensor, validation: ClassSums) -> dict[int, float]:
    """The share of each class's validation rows that `argmax W^T x` gets right, as sums tell it.

    By place of the class; those without validation rows are not in it.
    """
    drawn = score_draws(weights, validation)
    return {c: float((s.argmax(dim=1) == c).double().mean()) for c, s in drawn.items()}


def score_draws(weights: Tensor, validation: ClassSums) -> dict[int, Tensor]:
    """1,024 rows of scores for every class with validation rows, by its place.

    The rows of a class are taken as drawn from Student's t with 3 degrees of freedom around the
    class's mean, with the pooled covariance scaled to the class's own variances: all that the
    sums tell. Its scores then have a t in C dimensions.
    """
    means = validation.moment / validation.counts.clamp(min=1)
    centres = means.T @ weights  # [C, C]: a class's mean scores
    pooled = torch.addmm(validation.gram, validation.moment, means.T, alpha=-1)
    pooled.div_(max(float(validation.counts.sum()), 1.0))
    noise = _noise(weights.T @ (pooled @ weights))
    # how much wider or narrower a class is than the pool, in the directions that scores look
    diagonal = validation.without_rounding(pooled.diagonal())
    look = (weights - weights.mean(dim=1, keepdim=True)).square().sum(dim=1) * diagonal
    width = (look @ validation.variance_ratios(diagonal)) / look.sum().clamp(min=1e-300)
    there = (validation.counts > 0.5).nonzero().flatten().tolist()
    return {c: centres[c] + width[c].sqrt() * noise for c in there}


def _least(loss: Callable[[float], float]) -> float:
    """The temperature of the least loss, which is convex in 1 / T: bisection finds it."""
    low, high = 0, len(_TEMPERATURES) - 1
    while low < high:
        middle = (low + high) // 2
        if loss(_TEMPERATURES[middle]) <= loss(_TEMPERATURES[middle + 1]):
            high = middle
        else:
            low = middle + 1
    return _TEMPERATURES[low]


def _noise(covariance: Tensor) -> Tensor:
    """Rows of Student's t with this covariance, the same ones for the same covariance.

    Columns are taken in the order of their variances, so that no order of the classes matters.
    """
    width = covariance.shape[0]
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
