"""Probabilities from scores, calibrated on sums of validation rows."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums

_TEMPERATURES = tuple(10 ** (k / 16) for k in range(-40, 17))  # 0.003 to 10
_DRAWS = 256


def best_temperature(weights: Tensor, validation: ClassSums) -> float | None:
    """T of the least expected loss of `softmax(W^T x / T)`; None without validation rows.

    The rows of a class are taken as normal with the class's mean, and with the pooled covariance
    scaled to the class's own variances: all that the sums tell. Its scores are then normal in C
    dimensions, and the mean of -log p of the true class is taken over 256 fixed draws. Each class
    weighs the same. A function of the sums: no node is kept, and no order matters.

    Cost: 2 d^2 C operations, and 57 x 256 C^2 exponentials.
    """
    there = (validation.counts > 0.5).nonzero().flatten().tolist()
    if not there or weights.shape[1] < 2:
        return None
    sizes = validation.counts.clamp(min=1)
    centres = (validation.moment / sizes).T @ weights  # [C, C]: a class's mean scores
    means = validation.moment / sizes
    pooled = torch.addmm(validation.gram, validation.moment, means.T, alpha=-1)
    pooled.div_(float(validation.counts.sum()))
    spread = weights.T @ (pooled @ weights)
    diagonal = pooled.diagonal()
    # how much wider or narrower a class is than the pool, in the directions that scores look
    look = (weights - weights.mean(dim=1, keepdim=True)).square().sum(dim=1) * diagonal
    width = (look @ validation.variance_ratios(diagonal)) / look.sum().clamp(min=1e-300)
    root = _root(spread)
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(_DRAWS, weights.shape[1], dtype=torch.float64, generator=generator)
    noise = draws.to(root.device) @ root.T
    losses = torch.zeros(len(_TEMPERATURES), dtype=torch.float64, device=root.device)
    for c in there:
        scores = centres[c] + width[c].sqrt() * noise
        for k, t in enumerate(_TEMPERATURES):
            losses[k] -= (scores / t).log_softmax(dim=1)[:, c].mean()
    return _TEMPERATURES[int(losses.argmin())]


def _root(covariance: Tensor) -> Tensor:
    """A square root of a covariance that rounding may have made slightly indefinite."""
    values, vectors = torch.linalg.eigh((covariance + covariance.T) / 2)
    root: Tensor = vectors * values.clamp(min=0).sqrt()
    return root
